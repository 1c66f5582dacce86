"""Several outcomes in Optuna: constraints as limits over contexts, objectives as main outcomes."""

from __future__ import annotations

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import create_trial

import edrbo
from edrbo.errors import InvalidValueError, SeveralOutcomesError

UNIT = {"x": FloatDistribution(0.0, 1.0)}
LIMIT = edrbo.Limit(upper=0.0, probability=0.95)


def add(study: optuna.Study, n: int, *, objectives: int = 1) -> None:
    """y = x, and heat = x − 0.25 + (c − 0.95)/5 is at most 0 in 95 % of uniform contexts up to x = 0.25."""
    for x, c in np.random.default_rng(0).random((n, 2)):
        trial = create_trial(
            values=[x, (x - 0.1) ** 2][:objectives],
            params={"x": x},
            distributions=UNIT,
            user_attrs={"context": {"c": c}, "constraints": {"heat": x - 0.25 + 0.2 * (c - 0.95)}},
        )
        study.add_trial(trial)


def test_a_constraint_is_a_limit_over_contexts() -> None:
    outcomes = {"y": edrbo.Maximize(), "heat": LIMIT}
    sampler = edrbo.EDRBOSampler({"c": (0, 1)}, "erbo", 0, outcomes=outcomes)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    add(study, 46)
    found = sampler.recommend(study)
    assert 0.15 < found.design["x"] <= 0.25
    assert found.limits_hold
    assert found.observations == 46  # none of them failed
    asked = study.ask(UNIT)
    assert 0.15 < asked.params["x"] < 0.4


def test_objectives_are_main_outcomes() -> None:
    outcomes = {"y": edrbo.Maximize(), "loss": edrbo.Minimize()}
    sampler = edrbo.EDRBOSampler({"c": (0, 1)}, "erbo", 0, outcomes=outcomes)
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    add(study, 8, objectives=2)
    assert study.ask(UNIT).params["x"] > 0.3  # heat, which is no outcome here, makes most of the trials failures
    front = sampler.front(study)
    assert set(front.points[0].design) == {"x"}
    with pytest.raises(SeveralOutcomesError):
        sampler.recommend(study)


def test_contradictions() -> None:
    sampler = edrbo.EDRBOSampler(outcomes={"y": edrbo.Maximize(), "heat": LIMIT})
    for directions in (["minimize"], ["maximize", "minimize"]):
        with pytest.raises(InvalidValueError, match="directions"):
            optuna.create_study(directions=directions, sampler=sampler).ask(UNIT)
    with pytest.raises(ValueError, match="one objective"):
        optuna.create_study(directions=["maximize"] * 2, sampler=edrbo.EDRBOSampler()).ask(UNIT)


def test_outcomes_by_attribute_and_some_missing() -> None:
    outcomes = {"y": edrbo.Maximize(), "cost": edrbo.Minimize(weight=0.1)}
    sampler = edrbo.EDRBOSampler({"c": (0, 1)}, "erbo", 0, initial=3, outcomes=outcomes)
    study = optuna.create_study(direction="maximize", sampler=sampler)

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        trial.set_user_attr("context", {"c": 0.1 * trial.number})
        trial.set_user_attr("outcomes", {"cost": 30 * x} if trial.number % 2 else {"cost": "broken"})
        return x

    study.optimize(objective, n_trials=6)
    assert sampler.recommend(study).design["x"] < 0.6  # a unit of y costs thirty of cost, a tenth of which counts
    (optimizer,) = sampler._optimizers.values()
    assert list(optimizer.state.of_outcome("cost").reported) == [1, 3, 5]
