"""Optuna's sampler, and a study as one of Optuna's."""

from __future__ import annotations

import optuna
from common import a_study, run

import edrbo

run("export", "sqlite:///theirs.sqlite", "--to", "optuna", "--study", str(a_study()))
(summary,) = optuna.get_all_study_summaries("sqlite:///theirs.sqlite")
assert summary.n_trials == 3


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 0, 1)
    trial.set_user_attr("context", {"c": 0.5})
    return -((x - 0.5) ** 2)


theirs = optuna.create_study(direction="maximize", sampler=edrbo.EDRBOSampler(context={"c": (0, 1)}, seed=0, initial=2))
theirs.optimize(objective, n_trials=4)
assert len(theirs.trials) == 4
