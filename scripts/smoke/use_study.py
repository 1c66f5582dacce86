"""Studies on disk, from Python and from the command line, and Optuna's sampler."""

from __future__ import annotations

from pathlib import Path

import optuna
from common import SPACE, a_study, run, values

import edrbo

study = edrbo.Study.open("smoke.db", SPACE, seed=0)
study.tell(study.ask(), {"c": 0.5}, 1.0)
assert len(edrbo.Study.open("smoke.db")) == 1

file = a_study()
assert values(file) == [1 / 3, 1e-300, 2.5]
run("ask", "--study", str(file))
run("recommend", "--study", str(file))
run("report", "--study", str(file), "--out", "report.html")
assert "<svg" in Path("report.html").read_text(encoding="utf-8")


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 0, 1)
    trial.set_user_attr("context", {"c": 0.5})
    return -((x - 0.5) ** 2)


theirs = optuna.create_study(direction="maximize", sampler=edrbo.EDRBOSampler(context={"c": (0, 1)}, seed=0, initial=2))
theirs.optimize(objective, n_trials=4)
assert len(theirs.trials) == 4
