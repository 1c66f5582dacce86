"""What the benchmark asks of a method: suggest a design, observe the outcome, recommend in the end.

A learner is a function of its setup and of what it observed: a fresh one that is reported the same evaluations goes on
exactly as the first. Chance comes from streams named by the seed and the number of evaluations, never from a generator
that lives on. This is what lets an interrupted replicate go on to the same numbers.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from edrbo.acquisition.methods import Method
from edrbo.contexts.distributions import sobol_points
from edrbo.errors import ImplausibleWarning
from edrbo.optimizer.optimizer import Optimizer
from edrbo.records.events import Asked
from edrbo.records.goals import Expected, Goal
from edrbo.records.settings import Purpose
from edrbo.space import Space
from edrbo.streams import stream_seed

Array = NDArray[np.float64]


EXPECTED = Expected()


@dataclass(frozen=True)
class Setup:
    """All a learner knows before the first evaluation: sizes, its seed, how many designs are quasi-random, the goal,
    the ``design`` space where some variables are whole numbers or choices (d_x is its coded width), and how many
    ``evaluations`` there will be, if that is known."""

    d_x: int
    d_c: int
    seed: int
    initial: int
    goal: Goal = EXPECTED
    design: Space | None = None
    evaluations: int | None = None

    @cached_property
    def space(self) -> Space:
        """Designs and contexts; without a ``design`` the unit cube."""
        design = {f"x{j + 1}": (0.0, 1.0) for j in range(self.d_x)} if self.design is None else self.design.design
        return Space(design, {f"c{k + 1}": (0.0, 1.0) for k in range(self.d_c)})

    def snap(self, x: Array) -> Array:
        """Points of the unit cube (…, d_x) → the designs nearest to them."""
        return x if self.design is None else self.design.snap(x)


class Learner(ABC):
    """Maximizes E_c f(x, c), or what the goal makes of f(x, ·), over x in the unit cube, or over coded designs."""

    @abstractmethod
    def suggest(self) -> Array:
        """The next design, shape (d_x,)."""

    @abstractmethod
    def observe(self, x: Array, c: Array, y: float) -> None:
        """An evaluation: design (d_x,), context (d_c,) and outcome. It may be one that was never suggested here."""

    @abstractmethod
    def recommend(self) -> Array:
        """The design this learner would put to use, shape (d_x,)."""

    def recommend_under(self, goal: Goal) -> Array:
        """The same if the goal were this one; of a learner that knows nothing of goals, the same design."""
        return self.recommend()


LearnerFactory = Callable[[Setup], Learner]


def initial_designs(setup: Setup) -> Array:
    """The designs every method begins with, (initial × d_x): those of ``Optimizer`` with the same seed."""
    points = sobol_points(setup.d_x, setup.initial, stream_seed(setup.seed, "initial design"))
    return setup.snap(np.asarray(points.numpy(), dtype=np.float64))


class OptimizerLearner(Learner):
    """edrbo's own methods."""

    def __init__(self, setup: Setup, method: str | Method, aim: Purpose = "operate") -> None:
        self._optimizer = Optimizer(
            setup.space,
            method,
            goal=setup.goal,
            seed=setup.seed,
            initial=setup.initial,
            aim=aim,
            evaluations=setup.evaluations if aim == "identify" else None,
        )

    def suggest(self) -> Array:
        # as it was coded, not decoded and coded again: a run that is gone on with holds the very same numbers
        suggestion = self._optimizer.ask()
        return np.array(self._optimizer.state.pending[suggestion.id])

    def observe(self, x: Array, c: Array, y: float) -> None:
        optimizer = self._optimizer
        if not optimizer.state.pending:  # an evaluation of an earlier process, whose suggestion counts as asked
            optimizer.apply(Asked(id=optimizer.state.next_id, x=x))
        (key,) = optimizer.state.pending
        with warnings.catch_warnings():  # nobody typed these
            warnings.simplefilter("ignore", ImplausibleWarning)
            optimizer.tell(key, context=list(map(float, c)), value=y)

    def recommend(self) -> Array:
        return self._coded(self._optimizer.recommend().design)

    def recommend_under(self, goal: Goal) -> Array:
        return self._coded(self._optimizer.recommend(goal=goal).design)

    def _coded(self, design: Mapping[str, Any]) -> Array:
        coded: Array = self._optimizer.space.encode_designs(dict(design))[0]
        return coded


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
