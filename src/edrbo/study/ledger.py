"""Reading and writing the records of one study. Every write is durable when its method returns."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from edrbo.errors import UnknownSuggestionError
from edrbo.records import events as e
from edrbo.records.checksum import is_sound, signed
from edrbo.records.settings import Settings
from edrbo.records.state import State
from edrbo.space import Space
from edrbo.study.journal import FileStorage
from edrbo.study.owner import this_process
from edrbo.study.snapshot import Reader, Snapshot
from edrbo.study.storage import guard, is_url, next_written, written
from edrbo.study.trials import ABANDONED, ALIVE, DESIGN, EVENT, FIT, OWNER, TOLD, WON, Problem, distribution, record_of

Array = NDArray[np.float64]


class Ledger:
    """The trials and attributes of the study ``study_id`` in ``storage``, which was made with ``settings``."""

    def __init__(self, storage: BaseStorage, study_id: int, settings: Settings, where: str | Path) -> None:
        self.storage, self.study_id, self.where = storage, study_id, where
        self._reader = Reader(settings)
        self._last: tuple[int | str | None, Snapshot] | None = None  # what was read, and how far
        # Of a database: the trials read last that can still change, the attributes, and what we have written since.
        self._kept: tuple[list[FrozenTrial], Mapping[str, Any]] = [], {}
        self._own: list[FrozenTrial] = []

    def read(self) -> Snapshot:
        with guard(self.where, "read"):
            position = self._position()
            if self._last is not None and position is not None and self._last[0] == position:
                return self._last[1]
            snapshot = self._read_on(position)
        snapshot = replace(snapshot, problems=(*self._damaged_lines(), *snapshot.problems))
        self._last = (position, snapshot)
        return snapshot

    def _read_on(self, position: int | str | None) -> Snapshot:
        """Of a file only what is new, so that a read costs the same in a long study as in a short one; of a database
        nothing if all that is new is a trial of our own."""
        if isinstance(self.storage, FileStorage):
            with self.storage.journal.held():
                new = self.storage.trials(self.study_id, self._reader.unended, self._reader.count)
                return self._reader.read(new, self.storage.get_study_system_attrs(self.study_id))
        own, self._own = self._own, []
        if len(own) == 1 and self._last is not None and next_written(self._last[0], position):
            trials, attributes = [*self._kept[0], *own], self._kept[1]
        else:
            trials = self.storage.get_all_trials(self.study_id, deepcopy=False)
            attributes = self.storage.get_study_system_attrs(self.study_id)
        snapshot = self._reader.read(trials, attributes)
        self._kept = [trial for trial in trials if trial.number in self._reader.unended], attributes
        return snapshot

    def _position(self) -> int | str | None:
        """How far the storage is written: if it is the same as the last time, nothing was. None if that is unknown."""
        if not isinstance(self.storage, FileStorage):
            return written(self.storage)
        self.storage.get_study_system_attrs(self.study_id)  # reads what is new
        return self.storage.journal.position

    def _damaged_lines(self) -> Iterator[Problem]:
        if isinstance(self.storage, FileStorage):
            for number, why in self.storage.journal.damaged.items():
                yield Problem(f"line {number}", why)

    # ---------------------------------------------------------------- suggestions

    def take_number(self) -> int:
        """The number of a suggestion to come."""
        with guard(self.where, "write"):
            trial = create_trial(state=TrialState.RUNNING, system_attrs={OWNER: this_process()})
            return self._create(trial)

    def publish(self, event: e.Asked, space: Space, clock: int) -> None:
        """The suggestion that took its number is handed out."""
        with guard(self.where, "write"):
            trial = self._trial(event.id)
            params, distributions = _params(event.x, space)
            for name, kind in distributions.items():
                with suppress(ValueError):  # it had other levels once: only what optuna-dashboard shows
                    self.storage.set_trial_param(trial, name, kind.to_internal_repr(params[name]), kind)
            self.storage.set_trial_system_attr(trial, DESIGN, record_of(event, clock))

    def beat(self, number: int, count: int) -> None:
        """A sign of life of the owner of ``number``: another count than before."""
        with guard(self.where, "write"), suppress(UpdateFinishedTrialError):
            self.storage.set_trial_system_attr(self._trial(number), ALIVE, count)

    def abandon(self, number: int) -> None:
        """Nobody waits any more for the design of ``number``. If its owner has ended it meanwhile, all the better."""
        with guard(self.where, "write"), suppress(UpdateFinishedTrialError):
            self.storage.set_trial_system_attr(self._trial(number), ABANDONED, True)

    # ---------------------------------------------------------------- events

    def write(self, event: e.Event, state: State, clock: int) -> str:
        """Keep an event that ``state`` has accepted; gives the ref it is read back with."""
        if isinstance(event, e.Told | e.Failed | e.Cancelled):
            if event.id in state.runs:
                return self._finish(event, state.space, clock)
            assert not isinstance(event, e.Cancelled)
            return f"{DESIGN}:{self.create(event, state.space, clock)}"
        return self._add(event, clock)

    def _add(self, event: e.Event, clock: int) -> str:
        key = EVENT + _token()
        with guard(self.where, "write"):
            self.storage.set_study_system_attr(self.study_id, key, record_of(event, clock))
        return key

    def _finish(self, event: e.Told | e.Failed | e.Cancelled, space: Space, clock: int) -> str:
        """A pending suggestion has ended. Of several who say so at once the first to end the trial is right."""
        key = TOLD + _token()
        with guard(self.where, "write"):
            trial = self._trial(event.id)
            if self.storage.get_trial(trial).state.is_finished():
                now = self.read()
                if now.state.runs[event.id].status != "pending":  # ended by another process just now
                    raise _told_already(event.id)
                return self._add(event, now.clock + 1)  # its end was undone, or could not be read
            try:
                self.storage.set_trial_system_attr(trial, key, record_of(event, clock))
                for name, shown in _shown(event, space).items():
                    self.storage.set_trial_user_attr(trial, name, shown)
                if isinstance(event, e.Told) and event.value is not None:
                    self.storage.set_trial_state_values(trial, TrialState.COMPLETE, [event.value])
                else:
                    self.storage.set_trial_state_values(trial, TrialState.FAIL)
            except UpdateFinishedTrialError:
                raise _told_already(event.id) from None
            claims = [name for name in self.storage.get_trial(trial).system_attrs if name.startswith(TOLD)]
            if len(claims) > 1 or is_url(self.where):  # in a database one more may still come: say which it was
                self.storage.set_study_system_attr(self.study_id, f"{WON}{event.id}", key)
        return key

    def create(self, event: e.Asked | e.Told | e.Failed, space: Space, clock: int) -> int:
        """A design that was not asked for here, with its outcome or while it is evaluated; gives its number."""
        assert event.x is not None
        attributes: dict[str, Any] = {DESIGN: record_of(event, clock, own=True)}
        if isinstance(event, e.Asked):
            state, shown = TrialState.RUNNING, {}
            attributes[OWNER] = this_process()
        else:
            told = isinstance(event, e.Told) and event.value is not None
            state = TrialState.COMPLETE if told else TrialState.FAIL  # without its main outcome there is no value
            shown = _shown(event, space)
        params, distributions = _params(event.x, space)
        trial = create_trial(
            state=state,
            value=event.value if isinstance(event, e.Told) else None,
            params=params,
            distributions=distributions,
            user_attrs=shown,
            system_attrs=attributes,
        )
        with guard(self.where, "write"):
            number = self._create(trial)
            if not isinstance(event, e.Asked) and is_url(self.where):  # it has ended, so Optuna remembers it
                self._own.append(self.storage.get_trial(self._trial(number)))
            return number

    # ---------------------------------------------------------------- fits

    def load_fit(self) -> Any:
        with guard(self.where, "read"):
            record = self.storage.get_study_system_attrs(self.study_id).get(FIT)
        return record if isinstance(record, dict) and is_sound(record) else None

    def save_fit(self, record: Mapping[str, Any]) -> None:
        with guard(self.where, "write"):
            self.storage.set_study_system_attr(self.study_id, FIT, signed(record))

    # ---------------------------------------------------------------- trials

    def _create(self, trial: FrozenTrial) -> int:
        return self.storage.get_trial(self.storage.create_new_trial(self.study_id, trial)).number

    def _trial(self, number: int) -> int:
        return self.storage.get_trial_id_from_study_id_trial_number(self.study_id, number)


def _told_already(number: int) -> UnknownSuggestionError:
    return UnknownSuggestionError(
        f"suggestion {number} was told already, by another process",
        "look at the run; correct it if this was another outcome of it",
    )


def _token() -> str:
    return uuid.uuid4().hex


def _params(x: Array, space: Space) -> tuple[dict[str, Any], dict[str, BaseDistribution]]:
    """A design (d_x) as optuna-dashboard shows it; never read back."""
    return space.decode_designs(x)[0], {name: distribution(kind) for name, kind in space.design.items()}


def _shown(event: e.Told | e.Failed | e.Cancelled, space: Space) -> dict[str, Any]:
    """The context, and why there is no outcome, as optuna-dashboard shows them; never read back."""
    shown: dict[str, Any] = {}
    if not isinstance(event, e.Told):
        shown["cancelled" if isinstance(event, e.Cancelled) else "failed"] = event.why or "yes"
    elif event.others:
        shown["outcomes"] = dict(event.others)
    context = None if isinstance(event, e.Cancelled) else event.context
    if isinstance(event, e.Told) and event.values is not None:
        shown["rows"] = len(event.values)
    if context is not None:
        shown["context"] = space.name_contexts(context[None])[0]
    return shown
