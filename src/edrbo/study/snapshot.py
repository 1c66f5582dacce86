"""A study as read: the reducer over its records, going on from what was read before."""

from __future__ import annotations

from bisect import bisect, bisect_left
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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

KEPT = 8  # earlier states to go back to: eight processes at once have needed four


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
        return self.state.renumbered(bisect_left(self.suggestions, number), number)


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
        self._ended = _Ordered()  # what trials and attributes say that can change no more
        self.unended: dict[int, None] = {}  # numbers of the trials seen so far that can still change, in order
        self._suggestions: list[int] = []
        self.count = 0  # of the trials seen so far
        self._attributes: set[str] = set()
        self._state, self._orders = self._start, list[Order]()
        self._problems: list[Problem] = []
        self._overtaken: set[str] = set()
        self._past: deque[_Past] = deque(maxlen=KEPT)

    def read(self, trials: Iterable[FrozenTrial], attributes: Mapping[str, Any]) -> Snapshot:
        """The snapshot of a study from its attributes and its trials, in the order of their numbers.

        Of the trials those that are ``unended`` or new, from ``count`` on, are enough.
        """
        self._read_attributes(attributes)
        now, waiting, unended, read = self._ended.copy(), {}, dict[int, None](), 0
        for trial in trials:
            if (number := trial.number) < self.count and number not in self.unended:
                continue
            said = list(events_of_trial(trial, won := attributes.get(f"{WON}{number}")))
            if number >= self.count and OWNER in trial.system_attrs and not (said and _is_own(said[0])):
                self._suggestions.append(number)
            if _can_change(trial, won):
                unended[number] = None
            else:
                self._ended.add(said)
            now.add(said)
            if is_awaited(trial):
                waiting[number] = {**trial.system_attrs[OWNER], "alive": trial.system_attrs.get(ALIVE)}
            read = number + 1
        self.unended, self.count = unended, max(self.count, read)
        self._go_on(now)
        clock = now.orders[-1][0] if now.orders else 0
        suggested, next_id = len(self._suggestions), max(self.count, self._state.next_id)
        state = self._state.renumbered(suggested, next_id)
        problems = (*now.problems, *self._problems)
        return Snapshot(state, clock, waiting, problems, frozenset(self._overtaken), tuple(self._suggestions))

    def _read_attributes(self, attributes: Mapping[str, Any]) -> None:
        for key, record in attributes.items():
            if key not in self._attributes:
                self._attributes.add(key)
                found = event_of_attribute(key, record)
                self._ended.add([] if found is None else [found])

    def _go_on(self, now: _Ordered) -> None:
        """Apply what is new. If something came in between, as it does when several write at once, what follows it is
        applied again."""
        orders = now.orders
        if orders[: len(self._orders)] != self._orders:
            self._go_back(_common(orders, self._orders))
        new = now.events[len(self._orders) :]
        if not new:
            return
        try:
            self._state = self._state.apply(*new)
        except EdrboError:
            for event in new:
                self._apply_one(event)
        self._orders = orders
        self._past.append(_Past(len(orders), self._state, tuple(self._problems), frozenset(self._overtaken)))

    def _go_back(self, count: int) -> None:
        """To a state of at most the first ``count`` events."""
        while self._past and self._past[-1].count > count:
            self._past.pop()
        past = self._past[-1] if self._past else _Past(0, self._start, (), frozenset())
        self._state, self._problems, self._overtaken = past.state, list(past.problems), set(past.overtaken)
        self._orders = self._orders[: past.count]

    def _apply_one(self, event: e.Event) -> None:
        try:
            self._state = self._state.apply(event)
        except (UnknownSuggestionError, InvalidEventError):
            self._overtaken.add(event.ref)  # two processes did what only one can: the first in order counts
        except EdrboError as problem:
            run = self._state.runs.get(getattr(event, "id", -1))
            if isinstance(event, e.ContextTold) and run is not None and run.context is not None:
                self._overtaken.add(event.ref)
            else:
                self._problems.append(Problem(f"{event.kind} ({event.ref})", problem.message, event.ref))


class _Ordered:
    """Events in their order, and what could not be read."""

    def __init__(self) -> None:
        self.orders: list[Order] = []
        self.events: list[e.Event] = []
        self.problems: list[Problem] = []

    def add(self, found: Iterable[Found]) -> None:
        for item in found:
            if isinstance(item, Problem):
                self.problems.append(item)
                continue
            place = bisect(self.orders, item.order)
            self.orders.insert(place, item.order)
            self.events.insert(place, item.event)

    def copy(self) -> _Ordered:
        other = _Ordered()
        other.orders, other.events, other.problems = self.orders.copy(), self.events.copy(), self.problems.copy()
        return other


def _common(one: list[Order], other: list[Order]) -> int:
    """How many of the first are the same in both, by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _can_change(trial: FrozenTrial, won: str | None) -> bool:
    """Whether it has not ended, or several claims have ended it and nobody has yet said which."""
    claims = sum(1 for key in trial.system_attrs if key.startswith(TOLD))
    return not trial.state.is_finished() or (claims > 1 and won is None)


def is_awaited(trial: FrozenTrial) -> bool:
    """Whether a number was taken for it, and its design is still to come."""
    attributes = trial.system_attrs
    if OWNER not in attributes or trial.state.is_finished():
        return False
    return DESIGN not in attributes and ABANDONED not in attributes


def _is_own(found: Found) -> bool:
    return isinstance(found, Placed) and isinstance(found.event, e.Told | e.Failed)
