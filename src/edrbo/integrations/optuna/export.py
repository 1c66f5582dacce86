"""A study as one of Optuna's, for optuna-dashboard and Optuna's plots. It is a copy: nothing is read back from it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial

from edrbo.errors import StudyError, UnavailableError
from edrbo.lab.files import describe, is_url
from edrbo.records.events import Asked
from edrbo.records.run import Run
from edrbo.records.state import State
from edrbo.space import Variable

STATES = {
    "pending": TrialState.RUNNING,
    "reported": TrialState.COMPLETE,
    "failed": TrialState.FAIL,
    "cancelled": TrialState.FAIL,
}


def export_study(state: State, name: str, target: str) -> int:
    """Write every run as a trial of a new Optuna study; gives how many.

    Args:
        state: What is known.
        name: The name of the new study.
        target: A URL of a database that Optuna can use, or a file for its journal.
    """
    settings = state.settings
    try:
        study = optuna.create_study(direction=settings.direction, study_name=name, storage=_storage(target))
    except optuna.exceptions.DuplicatedStudyError:
        raise StudyError(f"there is a study {name!r} in {describe(target)} already", "choose another name") from None
    except (optuna.exceptions.StorageInternalError, OSError, ImportError) as problem:
        raise UnavailableError(
            f"cannot write {describe(target)}: {type(problem).__name__}",
            "give a file, or a database Optuna can use",
        ) from None
    begun, ended = _times(state)
    designs = {key: state.space.decode_designs(run.x)[0] for key, run in state.runs.items()}
    kinds = {
        variable: distribution_of(kind, [design[variable] for design in designs.values()])
        for variable, kind in state.space.design.items()
    }
    for key, run in state.runs.items():
        missing = run.status == "reported" and run.value is None  # another outcome was measured, the main one was not
        trial = create_trial(
            state=TrialState.FAIL if missing else STATES[run.status],
            value=run.value if run.status == "reported" else None,
            params=designs[key],
            distributions=kinds,
            user_attrs=_shown(state, run),
        )
        trial.datetime_start = begun.get(key, trial.datetime_start)
        if trial.state.is_finished():
            trial.datetime_complete = ended.get(key, trial.datetime_complete)
        study.add_trial(trial)
    return len(state.runs)


def _storage(target: str) -> BaseStorage | str:
    return target if is_url(target) else JournalStorage(JournalFileBackend(str(Path(target))))


def distribution_of(variable: Variable, values: Sequence[Any] = ()) -> BaseDistribution:
    """The variable in Optuna's words, wide enough for ``values``, which may be older than its range."""
    if not variable.numeric:
        return CategoricalDistribution(tuple(dict.fromkeys((*variable.grid(variable.size), *values))))
    lower, upper = variable.limits()
    lower, upper = min([lower, *values]), max([upper, *values])
    if variable.size:
        return IntDistribution(int(lower), int(upper), log=variable.log)
    return FloatDistribution(lower, upper, log=variable.log)


def _times(state: State) -> tuple[dict[int, datetime], dict[int, datetime]]:
    """When each run was asked for, and when it ended."""
    begun: dict[int, datetime] = {}
    ended: dict[int, datetime] = {}
    for event in state.history:
        key = getattr(event, "id", None)
        if key is not None and event.at is not None:
            moment = datetime.fromtimestamp(event.at)  # Optuna's times are local and have no zone
            begun.setdefault(key, moment)
            if not isinstance(event, Asked):
                ended.setdefault(key, moment)
    return begun, ended


def _shown(state: State, run: Run) -> dict[str, Any]:
    """What Optuna has no place for."""
    shown: dict[str, Any] = {"run": run.id}
    if run.status in ("failed", "cancelled"):
        shown[run.status] = run.why or "yes"
    if run.dropped:
        shown["left out"] = run.why or "yes"
    if run.others:
        shown["outcomes"] = dict(run.others)
    if run.series is not None:
        shown["rows"] = len(run.series)
    elif run.context is not None and run.known and len(run.context):
        shown["context"] = state.space.name_contexts(run.context[None])[0]
    return shown
