"""Reading and writing the records of one study. Every write is durable when its method returns."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.trial import TrialState, create_trial

from edrbo.errors import UnknownSuggestionError
from edrbo.space import Space
from edrbo.study.owner import this_process
from edrbo.study.records import ABANDONED, DESIGN, FIT, OWNER, TOLD, Array, Snapshot, distribution, read
from edrbo.study.storage import guard


class Ledger:
    """The trials and attributes of the study ``study_id`` in ``storage``."""

    def __init__(self, storage: BaseStorage, study_id: int, space: Space, where: str | Path) -> None:
        self.storage, self.study_id, self.where = storage, study_id, where
        self._space = space
        self._distributions = {name: distribution(variable) for name, variable in space.design.items()}

    def read(self) -> Snapshot:
        with guard(self.where, "read"):
            trials = self.storage.get_all_trials(self.study_id, deepcopy=False)
            return read(self._space, trials, self.storage.get_study_system_attrs(self.study_id))

    def publish(self, number: int, design: Mapping[str, Any], x: Array) -> None:
        """The suggestion that took ``number`` is handed out: ``design`` for people, ``x`` (d_x) for us."""
        with guard(self.where, "write"):
            trial = self._trial(number)
            for name, value in design.items():
                kind = self._distributions[name]
                self.storage.set_trial_param(trial, name, kind.to_internal_repr(value), kind)
            self.storage.set_trial_system_attr(trial, DESIGN, x.tolist())

    def finish(self, number: int, record: Mapping[str, Any]) -> None:
        """A pending suggestion has an outcome (``records.told_record``)."""
        value = record["value"]
        with guard(self.where, "write"):
            trial = self._trial(number)
            try:
                self.storage.set_trial_system_attr(trial, TOLD + _token(), dict(record))
                for name, shown in self._shown(record).items():
                    self.storage.set_trial_user_attr(trial, name, shown)
                state = TrialState.FAIL if value is None else TrialState.COMPLETE
                self.storage.set_trial_state_values(trial, state, None if value is None else [value])
            except UpdateFinishedTrialError:
                raise UnknownSuggestionError(
                    f"suggestion {number} was told already, by another process",
                    "tell a design of your own as a dict of names and values",
                ) from None

    def create(self, x: Array, record: Mapping[str, Any] | None) -> int:
        """A design (d_x) that was not asked for, with its outcome, or None while it is evaluated; gives its number."""
        state, value = TrialState.RUNNING, None
        attributes: dict[str, Any] = {OWNER: this_process(), DESIGN: x.tolist()}
        if record is not None:
            value = record["value"]
            state = TrialState.FAIL if value is None else TrialState.COMPLETE
            attributes[TOLD + _token()] = dict(record)
        trial = create_trial(
            state=state,
            value=value,
            params=self._space.decode_designs(x)[0],
            distributions=self._distributions,
            user_attrs=self._shown(record),
            system_attrs=attributes,
        )
        with guard(self.where, "write"):
            return self.storage.get_trial(self.storage.create_new_trial(self.study_id, trial)).number

    def add(self, kind: str, record: Mapping[str, Any]) -> None:
        """An event that belongs to no single trial (``records.CONTEXTS`` or ``LATE``)."""
        with guard(self.where, "write"):
            self.storage.set_study_system_attr(self.study_id, kind + _token(), dict(record))

    def load_fit(self) -> dict[str, Any] | None:
        with guard(self.where, "read"):
            record: dict[str, Any] | None = self.storage.get_study_system_attrs(self.study_id).get(FIT)
            return record

    def save_fit(self, record: Mapping[str, Any]) -> None:
        with guard(self.where, "write"):
            self.storage.set_study_system_attr(self.study_id, FIT, dict(record))

    def take_number(self) -> int:
        """The number of a suggestion to come."""
        with guard(self.where, "write"):
            trial = create_trial(state=TrialState.RUNNING, system_attrs={OWNER: this_process()})
            return self.storage.get_trial(self.storage.create_new_trial(self.study_id, trial)).number

    def abandon(self, number: int) -> None:
        """Nobody waits any more for the design of ``number``."""
        with guard(self.where, "write"):
            self.storage.set_trial_system_attr(self._trial(number), ABANDONED, True)

    def _trial(self, number: int) -> int:
        return self.storage.get_trial_id_from_study_id_trial_number(self.study_id, number)

    def _shown(self, record: Mapping[str, Any] | None) -> dict[str, Any]:
        """The context as optuna-dashboard shows it; never read back."""
        if record is None or record["context"] is None:
            return {}
        return {"context": dict(zip(self._space.context_names, record["context"], strict=True))}


def _token() -> str:
    return uuid.uuid4().hex
