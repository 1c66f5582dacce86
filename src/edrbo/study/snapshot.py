"""A study as read: the reducer over its records, going on from what was read before."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from optuna.trial import FrozenTrial

from edrbo.errors import EdrboError, InvalidEventError, UnknownSuggestionError
from edrbo.records import events as e
from edrbo.records.settings import Settings
from edrbo.records.state import State
from edrbo.study.trials import (
    ABANDONED,
    ALIVE,
    DESIGN,
    OWNER,
    TOLD,
    WON,
    Found,
    Order,
    Placed,
    Problem,
    event_of_attribute,
    events_of_trial,
)

KEPT = 64  # earlier states to go back to


@dataclass(frozen=True, eq=False)
class Snapshot:
    """``open`` are numbers that were taken and wait for their design, with their owners and the last sign of life
    of these; ``overtaken`` names events that came too late to count, and ``problems`` are records that cannot be
    read."""

    state: State
    clock: int
    open: Mapping[int, Mapping[str, Any]]
    problems: tuple[Problem, ...]
    overtaken: frozenset[str]
    suggestions: tuple[int, ...]  # numbers that were taken for suggestions, in order

    def before(self, number: int) -> State:
        """The state to compute suggestion ``number`` from."""
        earlier = sum(1 for key in self.suggestions if key < number)
        return replace(self.state, suggested=earlier, next_id=number)


@dataclass(frozen=True, eq=False)
class _Past:
    """How the reader stood after the first ``count`` events."""

    count: int
    state: State
    problems: tuple[Problem, ...]
    overtaken: frozenset[str]


class Reader:
    """Remembers what it has read, so that reading again costs only what is new."""

    def __init__(self, settings: Settings) -> None:
        self._start = State.start(settings)
        self._ended: dict[int, list[Found]] = {}  # what trials say that can change no more
        self._attributes: dict[str, Found | None] = {}
        self._forget()

        self._past: deque[_Past] = deque(maxlen=KEPT)

    def _forget(self) -> None:
        self._state, self._orders = self._start, list[Order]()
        self._problems: list[Problem] = []
        self._overtaken: set[str] = set()

    def _go_back(self, count: int) -> None:
        """To a state of at most the first ``count`` events."""
        while self._past and self._past[-1].count > count:
            self._past.pop()
        if not self._past:
            self._forget()
            return
        past = self._past[-1]
        self._state, self._problems, self._overtaken = past.state, list(past.problems), set(past.overtaken)
        del self._orders[past.count :]

    def read(self, trials: Iterable[FrozenTrial], attributes: Mapping[str, Any]) -> Snapshot:
        """The snapshot of a study from all its trials, in the order of their numbers, and its attributes."""
        found: list[Found] = []
        waiting: dict[int, Mapping[str, Any]] = {}
        suggestions: list[int] = []
        count = 0
        for trial in trials:
            count = trial.number + 1
            said = self._said(trial, attributes)
            found += said
            if OWNER in trial.system_attrs and not (said and _is_own(said[0])):
                suggestions.append(trial.number)
                if not {DESIGN, ABANDONED} & trial.system_attrs.keys() and not trial.state.is_finished():
                    sign = trial.system_attrs.get(ALIVE)
                    waiting[trial.number] = {**trial.system_attrs[OWNER], "alive": sign}
        for key, record in attributes.items():
            if key not in self._attributes:
                self._attributes[key] = event_of_attribute(key, record)
            event = self._attributes[key]
            if event is not None:
                found.append(event)
        placed = sorted((item for item in found if isinstance(item, Placed)), key=lambda item: item.order)
        self._go_on(placed)
        clock = placed[-1].order[0] if placed else 0
        state = replace(self._state, suggested=len(suggestions), next_id=max(count, self._state.next_id))
        problems = (*(item for item in found if isinstance(item, Problem)), *self._problems)
        return Snapshot(state, clock, waiting, problems, frozenset(self._overtaken), tuple(suggestions))

    def _said(self, trial: FrozenTrial, attributes: Mapping[str, Any]) -> list[Found]:
        number = trial.number
        if number in self._ended:
            return self._ended[number]
        won = attributes.get(f"{WON}{number}")
        said = list(events_of_trial(trial, won))
        claims = sum(1 for key in trial.system_attrs if key.startswith(TOLD))
        if trial.state.is_finished() and (claims < 2 or won is not None):
            self._ended[number] = said
        return said

    def _go_on(self, placed: list[Placed]) -> None:
        """Apply what is new. If something came in between, as it does when several write at once, what follows it is
        applied again."""
        orders = [item.order for item in placed]
        if orders[: len(self._orders)] != self._orders:
            same = zip(orders, self._orders, strict=False)
            self._go_back(next((k for k, (one, other) in enumerate(same) if one != other), len(orders)))
        new = placed[len(self._orders) :]
        if not new:
            return
        try:
            self._state = self._state.apply(*(item.event for item in new))
        except EdrboError:
            for item in new:
                self._apply_one(item)
        self._orders = orders
        self._past.append(_Past(len(orders), self._state, tuple(self._problems), frozenset(self._overtaken)))

    def _apply_one(self, item: Placed) -> None:
        try:
            self._state = self._state.apply(item.event)
        except (UnknownSuggestionError, InvalidEventError):
            self._overtaken.add(item.event.ref)  # two processes did what only one can: the first in order counts
        except EdrboError as problem:
            run = self._state.runs.get(getattr(item.event, "id", -1))
            if isinstance(item.event, e.ContextTold) and run is not None and run.context is not None:
                self._overtaken.add(item.event.ref)
            else:
                self._problems.append(Problem(f"{item.event.kind} ({item.event.ref})", problem.message, item.event.ref))


def _is_own(found: Found) -> bool:
    return isinstance(found, Placed) and isinstance(found.event, e.Told | e.Failed)
