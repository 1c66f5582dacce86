"""The base of every learner that ignores contexts."""

from __future__ import annotations

from abc import abstractmethod
from typing import final

import numpy as np

from edrbo.bench.learners.learner import Array, Learner, Setup, initial_designs
from edrbo.streams import stream_seed


class ContextFree(Learner):
    """A learner on (x, y): the shared initial designs first, then ``propose``."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._initial = initial_designs(setup)
        self._x: list[Array] = []
        self._y: list[float] = []

    @property
    def x(self) -> Array:
        """Designs so far, n × d_x."""
        return np.array(self._x).reshape(-1, self.setup.d_x)

    @property
    def y(self) -> Array:
        return np.array(self._y)

    @final
    def suggest(self) -> Array:
        n = len(self._y)
        return self._initial[n] if n < len(self._initial) else self.propose()

    @final
    def observe(self, x: Array, c: Array, y: float) -> None:
        self._x.append(np.array(x))
        self._y.append(y)

    def step_seed(self, name: str) -> int:
        """A 32-bit seed that belongs to this number of evaluations."""
        return stream_seed(self.setup.seed, name, len(self._y)) % 2**32

    def best_observed(self) -> Array:
        return self._x[int(np.argmax(self._y))]

    @abstractmethod
    def propose(self) -> Array:
        """The next design, from ``x`` and ``y``."""
