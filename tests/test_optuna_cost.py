"""What a trial costs, in Optuna: a function of the parameters, or the trial's own word."""

from __future__ import annotations

import optuna
import pytest

import edrbo
from edrbo.errors import EdrboError, InvalidValueError


def run(sampler: edrbo.EDRBOSampler, *, reported: bool = False) -> list[int]:
    def objective(trial: optuna.Trial) -> float:
        x, dose = trial.suggest_float("x", 0, 1), trial.suggest_int("dose", 10, 100, step=10)
        trial.suggest_categorical("kind", ["plain", "matt"])
        if reported:
            trial.set_user_attr("cost", dose)
        return -((x - 0.3) ** 2) - 0.0002 * (dose - 40) ** 2

    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=8)
    return [trial.params["dose"] for trial in study.trials[4:]]


def test_trials_follow_the_cost() -> None:
    plain, written, called, reported = (
        run(edrbo.EDRBOSampler(method="erbo", seed=1, initial=4, cost=cost), reported=cost is None and k > 0)
        for k, cost in enumerate([None, "dose / 10", lambda params: params["dose"] / 10, None])
    )
    assert written == called
    assert sum(written) < sum(plain)
    assert sum(reported) < sum(plain)


def test_costs_that_cannot_be() -> None:
    with pytest.raises(InvalidValueError, match="3"):
        edrbo.EDRBOSampler(cost=3)
    with pytest.raises(EdrboError, match="'doze'"):
        run(edrbo.EDRBOSampler(seed=1, initial=1, cost="doze"))
