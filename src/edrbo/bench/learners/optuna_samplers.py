"""Optuna's samplers as learners."""

from __future__ import annotations

import warnings
from typing import final

import optuna

from edrbo.bench.learners.learner import Array, ContextFree, Setup
from edrbo.integrations.optuna.export import distribution_of


@final
class OptunaLearner(ContextFree):
    """A sampler of Optuna with its default settings, after the shared initial designs.

    The sampler is seeded anew at every step, and the study holds finished trials alone: both depend on what was
    observed and on nothing else.
    """

    def __init__(self, setup: Setup, sampler: str) -> None:
        super().__init__(setup)
        optuna.logging.set_verbosity(optuna.logging.ERROR)  # workers share the terminal with the progress display
        self._sampler = sampler
        self._space = {name: distribution_of(variable) for name, variable in setup.space.design.items()}
        self._study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler())
        self._reported = 0

    def _seeded(self) -> optuna.samplers.BaseSampler:
        seed, startup = self.step_seed(self._sampler), self.setup.initial
        if self._sampler == "tpe":
            return optuna.samplers.TPESampler(seed=seed, n_startup_trials=startup)
        return optuna.samplers.GPSampler(seed=seed, n_startup_trials=startup)

    def propose(self) -> Array:
        for x, y in zip(self.x[self._reported :], self.y[self._reported :], strict=True):
            (params,) = self.setup.space.decode_designs(x)
            self._study.add_trial(optuna.trial.create_trial(value=float(y), params=params, distributions=self._space))
        self._reported = len(self.y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # experimental samplers say so at every step
            self._study.sampler = self._seeded()
            trial = self._study.ask(self._space)
        # The trial comes back as a finished one when it has been observed; samplers skip failed ones.
        self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
        coded: Array = self.setup.space.encode_designs(trial.params)[0]
        return coded

    def recommend(self) -> Array:
        return self.best_observed()
