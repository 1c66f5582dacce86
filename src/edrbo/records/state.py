"""Everything known of an experiment, as one immutable value, and the only way from one to the next: ``apply``.

``apply`` checks an event and gives the state after it; an event that cannot be is an error and leaves nothing behind.
Whatever writes (Optimizer, Study, tables, Optuna's trials, JSON) makes events and passes them through here, so what was
accepted once can always be read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from edrbo.records.context_log import ContextBatch, ContextLog
from edrbo.records.events import Event, Undone
from edrbo.records.observations import Observations
from edrbo.records.reducer import Draft, undone
from edrbo.records.run import Contents, Run, Status
from edrbo.records.settings import Settings
from edrbo.space import Space

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class State(Contents):
    """See ``Contents`` for what it holds."""

    @classmethod
    def start(cls, settings: Settings) -> State:
        """Nothing has happened yet."""
        return cls(settings)

    @property
    def space(self) -> Space:
        return self.settings.space

    @property
    def version(self) -> int:
        """How often the settings were amended."""
        return len(self.amendments)

    def apply(self, *events: Event) -> State:
        """The state after ``events``; if one of them cannot be, an error and no change."""
        draft = Draft(self)
        for event in events:
            draft.apply(event)
        return replace(self, **draft.fields())

    @property
    def last(self) -> Event | None:
        """The last event that was not undone, None if there is none."""
        gone = undone(self.history)
        past = (event for event in reversed(self.history) if not isinstance(event, Undone) and event.ref not in gone)
        return next(past, None)

    @property
    def free_ref(self) -> str:
        """A name for the next event: how many there were, or the next number that no event has."""
        number = len(self.history)
        while str(number) in self.refs:
            number += 1
        return str(number)

    # ---------------------------------------------------------------- what a model wants to know

    @cached_property
    def observations(self) -> Observations:
        """Outcomes in the order in which they came, without those that were dropped."""
        runs = [self.runs[key] for key in self.told]
        unknown = np.full(self.space.d_c, np.nan)
        return Observations(
            np.array([run.x for run in runs]).reshape(len(runs), self.space.d_x),
            np.array([unknown if run.context is None else run.context for run in runs]).reshape(
                len(runs), self.space.d_c
            ),
            np.array([run.value for run in runs], dtype=np.float64),
            np.array([np.nan if run.noise is None else run.noise for run in runs], dtype=np.float64),
        )

    @cached_property
    def told(self) -> dict[int, int]:
        """Id → row of the observations."""
        kept = (key for key in self.told_order if not self.runs[key].dropped)
        return {key: row for row, key in enumerate(kept)}

    @cached_property
    def training_order(self) -> NDArray[np.intp]:
        """Rows of the observations with a known context, in the order in which they became so.

        A context that comes late does not change the order of what was known before it.
        """
        return np.array([self.told[key] for key in self.complete_order if key in self.told], dtype=np.intp)

    @cached_property
    def pending(self) -> dict[int, Array]:
        """Id → design of what is being tried."""
        return self._designs("pending")

    @cached_property
    def failed(self) -> dict[int, Array]:
        """Id → design of what gave no outcome."""
        return self._designs("failed")

    def _designs(self, status: Status) -> dict[int, Array]:
        return {key: run.x for key, run in self.runs.items() if run.status == status and not run.dropped}

    @cached_property
    def log(self) -> ContextLog:
        """All contexts in order of arrival, without those of dropped runs."""
        return ContextLog(tuple(_batches(self.seen, self.runs)))


def _batches(seen: Iterable[int | ContextBatch], runs: Mapping[int, Run]) -> Iterable[ContextBatch]:
    for entry in seen:
        if isinstance(entry, ContextBatch):
            yield entry
        elif not runs[entry].dropped and (context := runs[entry].context) is not None:
            yield ContextBatch(context[None], np.ones(1), 1)


def same_state(one: State, other: State) -> bool:
    """Whether two states say the same of every run and every context, bit for bit, whatever led to them."""
    simple = ("settings", "told_order", "complete_order", "suggested", "next_id")
    if any(getattr(one, name) != getattr(other, name) for name in simple) or len(one.seen) != len(other.seen):
        return False
    if one.runs.keys() != other.runs.keys():
        return False
    same_runs = all(_same_run(run, other.runs[key]) for key, run in one.runs.items())
    return same_runs and all(_same_entry(a, b) for a, b in zip(one.seen, other.seen, strict=True))


def _same_run(one: Run, other: Run) -> bool:
    simple = ("status", "value", "noise", "suggested", "dropped", "why")
    if any(getattr(one, name) != getattr(other, name) for name in simple):
        return False
    if (one.context is None) != (other.context is None) or not np.array_equal(one.x, other.x):
        return False
    return one.context is None or other.context is None or np.array_equal(one.context, other.context)


def _same_entry(one: int | ContextBatch, other: int | ContextBatch) -> bool:
    if isinstance(one, ContextBatch) and isinstance(other, ContextBatch):
        arrays = np.array_equal(one.rows, other.rows) and np.array_equal(one.weights, other.weights)
        return arrays and one.count == other.count and one.summary == other.summary
    return one == other
