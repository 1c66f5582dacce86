"""What people would use instead: random search, Optuna's TPE and GP samplers, BoTorch's LogNEI, all on x alone.

They begin with the same designs as edrbo's methods, see the same contexts and outcomes, and ignore the contexts. The
samplers of Optuna and random search recommend the best design observed, which is what ``study.best_params`` gives;
LogNEI recommends the observed design with the best posterior mean.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import final

import numpy as np

from edrbo.bench.learner import Array, Learner, LearnerFactory, Setup, initial_designs
from edrbo.errors import MissingExtraError
from edrbo.streams import stream, stream_seed


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


@final
class RandomSearch(ContextFree):
    def propose(self) -> Array:
        return stream(self.setup.seed, "random search", len(self._y)).random(self.setup.d_x)

    def recommend(self) -> Array:
        return self.best_observed()


def tpe(setup: Setup) -> Learner:
    return _optuna("tpe", setup)


def optuna_gp(setup: Setup) -> Learner:
    return _optuna("gp", setup)


def _optuna(sampler: str, setup: Setup) -> Learner:
    try:
        from edrbo.bench.optuna_adapter import OptunaLearner
    except ModuleNotFoundError:
        raise MissingExtraError("Optuna is not installed", "pip install 'edrbo[bench]'") from None
    return OptunaLearner(setup, sampler)


def lognei(setup: Setup) -> Learner:
    from edrbo.bench.botorch_adapter import LogNEI

    return LogNEI(setup)


ADAPTERS: dict[str, LearnerFactory] = {"random": RandomSearch, "tpe": tpe, "optuna-gp": optuna_gp, "lognei": lognei}
# The package whose version is part of what an adapter is.
ADAPTER_PACKAGES = {"random": "numpy", "tpe": "optuna", "optuna-gp": "optuna", "lognei": "botorch"}
