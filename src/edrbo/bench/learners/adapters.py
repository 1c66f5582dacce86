"""What people would use instead: random search, Optuna's TPE and GP samplers, BoTorch's LogNEI.

They begin with the same designs as edrbo's methods, see the same contexts and outcomes, and ignore the contexts, all
but ``expectation-nei``, which is what an expert would build of BoTorch's parts. The samplers of Optuna and random
search recommend the best design observed, which is what ``study.best_params`` gives; the two of BoTorch the observed
design with the best posterior mean.

Where designs are whole numbers or choices, random search draws from their levels and Optuna is reported its own
distributions; the two of BoTorch search the relaxed cube, in which a choice is a one-hot row, and take the design
nearest to what they find.
"""

from __future__ import annotations

from typing import final

from edrbo.bench.learners.learner import Array, ContextFree, Learner, LearnerFactory, Setup
from edrbo.errors import MissingExtraError
from edrbo.streams import stream


@final
class RandomSearch(ContextFree):
    def propose(self) -> Array:
        return self.setup.snap(stream(self.setup.seed, "random search", len(self._y)).random(self.setup.d_x))

    def recommend(self) -> Array:
        return self.best_observed()


def tpe(setup: Setup) -> Learner:
    return _optuna("tpe", setup)


def optuna_gp(setup: Setup) -> Learner:
    return _optuna("gp", setup)


def _optuna(sampler: str, setup: Setup) -> Learner:
    try:
        from edrbo.bench.learners.optuna_samplers import OptunaLearner
    except ModuleNotFoundError:
        raise MissingExtraError("Optuna is not installed", "pip install 'edrbo[bench]'") from None
    return OptunaLearner(setup, sampler)


def lognei(setup: Setup) -> Learner:
    try:
        from edrbo.bench.learners.botorch_learners import LogNEI
    except ModuleNotFoundError:
        raise MissingExtraError("BoTorch is not installed", "pip install 'edrbo[bench]'") from None
    return LogNEI(setup)


def expectation_nei(setup: Setup) -> Learner:
    try:
        from edrbo.bench.learners.botorch_learners import ExpectationNEI
    except ModuleNotFoundError:
        raise MissingExtraError("BoTorch is not installed", "pip install 'edrbo[bench]'") from None
    return ExpectationNEI(setup)


ADAPTERS: dict[str, LearnerFactory] = {
    "random": RandomSearch,
    "tpe": tpe,
    "optuna-gp": optuna_gp,
    "lognei": lognei,
    "expectation-nei": expectation_nei,
}
# The package whose version is part of what an adapter is.
ADAPTER_PACKAGES = {
    "random": "numpy",
    "tpe": "optuna",
    "optuna-gp": "optuna",
    "lognei": "botorch",
    "expectation-nei": "botorch",
}
