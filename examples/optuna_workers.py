"""An Optuna study with two workers: an ordinary ``study.optimize``, with contexts as user attributes.

The objective sees the temperature only after it has chosen. Two processes share the study through a journal file; each
knows what the other is trying.
"""

import os
import sys
import tempfile
from pathlib import Path

import optuna
from optuna.storages.journal import JournalFileBackend

from edrbo import EDRBOSampler


def objective(trial: optuna.Trial) -> float:
    dose = trial.suggest_float("dose", 0, 1)
    catalyst = trial.suggest_categorical("catalyst", ["iron", "nickel"])
    temperature = 0.2 + 0.6 * ((0.618 * trial.number) % 1)  # seen after the choice
    trial.set_user_attr("context", {"temperature": temperature})
    return (1.0 if catalyst == "nickel" else 0.5) - (dose - temperature) ** 2


def open_study(path: Path) -> optuna.Study:
    storage = optuna.storages.JournalStorage(JournalFileBackend(str(path)))
    sampler = EDRBOSampler(context={"temperature": (0, 1)}, method="edrbo", seed=1)
    return optuna.create_study(
        study_name="reactor", storage=storage, sampler=sampler, direction="maximize", load_if_exists=True
    )


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if len(sys.argv) > 1:  # a worker
        open_study(Path(sys.argv[1])).optimize(objective, n_trials=8)
        sys.exit()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reactor.log"
        study = open_study(path)
        workers = [os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, __file__, str(path)]) for _ in range(2)]
        assert all(os.waitpid(worker, 0)[1] == 0 for worker in workers)
        best = study.sampler.recommend(study)
        print(f"{len(study.trials)} trials; use {best.design}, expect {best.expected:.3f}")
        assert len(study.trials) == 16
        assert best.design["catalyst"] == "nickel"
        short = (best.design["dose"] - 0.5) ** 2  # the mean temperature is 0.5, and so is the best dose
        print(
            f"nickel with a dose of 0.5 is best on average; this is {short:.4f} short of it, where doses differ by 0.25"
        )
        assert short < 0.01
