"""What a state holds: runs, contexts, changes of mind, and the history that led to them.

What is handed out to be evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import InvalidEventError
from edrbo.records.context_log import ContextBatch
from edrbo.records.events import Corrected, Event
from edrbo.records.series import Series
from edrbo.records.settings import Settings


@dataclass(frozen=True)
class Suggestion(Mapping[str, Any]):
    """A design to evaluate, as a mapping of names to values. ``id`` names it until it is reported.

    ``outcome_forecast`` is what is believed of its outcome, if a model chose it (``records/outcome_forecast.py``);
    ``cost`` what its run will cost, as far as that is known.
    """

    id: int
    design: dict[str, Any]
    outcome_forecast: Mapping[str, Any] | None = field(default=None, compare=False)
    cost: float | None = field(default=None, compare=False)

    def __getitem__(self, name: str) -> Any:
        return self.design[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.design)

    def __len__(self) -> int:
        return len(self.design)


Array = NDArray[np.float64]
Status = Literal["pending", "reported", "failed", "cancelled"]


@dataclass(frozen=True, eq=False)
class Run:
    """One evaluation and what is known of it.

    ``x`` is coded (d_x), ``context`` in the user's units (d_c), NaN where it is not known.
    """

    id: int
    x: Array
    status: Status = "pending"
    context: Array | None = None
    value: float | None = None
    noise_variance: float | None = None
    suggested: bool = True  # asked for, or a design of the user's own
    dropped: bool = False
    why: str | None = None  # it failed, was cancelled or was dropped
    outcome_forecast: Mapping[str, Any] | None = None
    others: Mapping[str, float] = field(default_factory=dict)  # outcomes besides the main one, and …
    others_noise_variance: Mapping[str, float] = field(default_factory=dict)  # … the variances that are known of them
    series: Series | None = None  # several rows; then ``value`` is their mean and ``context`` None
    cost: float | None = None  # as it was reported
    cost_expected: float | None = None  # as it was believed when the design was asked for

    @property
    def known(self) -> bool:
        """Whether its context is known, all of it."""
        if self.series is not None:
            return bool(self.series.complete.all())
        return self.context is not None and not np.isnan(self.context).any()

    @property
    def complete(self) -> bool:
        """Whether a surrogate of (x, c) can learn from it."""
        return self.status == "reported" and self.known and not self.dropped

    @property
    def late(self) -> bool:
        """Whether its outcome waits for its context, or for some of it."""
        return self.status == "reported" and self.series is None and not self.known

    @property
    def contexts(self) -> Array:
        """All that is known of the contexts it met (n × d_c)."""
        if self.series is not None:
            return self.series.contexts
        return np.empty((0, 0)) if self.context is None else self.context[None]


def set_to(run: Run, x: Array | None) -> Run:
    """``run`` with the design that was really set; what was expected was expected of the other."""
    return (
        run if x is None or np.array_equal(x, run.x) else replace(run, x=x, outcome_forecast=None, cost_expected=None)
    )


def merged(known: Array | None, more: Array | None) -> Array | None:
    """A context (d_c) of which ``more`` is known, or something else."""
    if known is None or more is None:
        return known if more is None else more
    return np.where(np.isnan(more), known, more)


def corrected_row(run: Run, event: Corrected, context: Array | None) -> Run:
    """``run`` with something else in one of its rows, or in all of them where only its design was other."""
    if run.series is None:
        raise InvalidEventError(f"run {run.id} has no rows", "leave the row out")
    if event.row is None:
        if any(
            part is not None
            for part in (event.value, event.noise_variance, event.others, event.others_noise_variance, context)
        ):
            raise InvalidEventError(f"run {run.id} has {len(run.series)} rows", "say which row is corrected")
        return run
    series = run.series.with_row(event, context)
    return replace(run, series=series, value=series.mean, others=series.means)


@dataclass(frozen=True, eq=False)
class Amendment:
    """The settings ``before`` a change of mind, and the values that older runs had of variables it brought."""

    before: Settings
    defaults: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Contents:
    """``runs`` by id in the order of their first event; ``history`` holds every event that was applied."""

    settings: Settings
    runs: Mapping[int, Run] = field(default_factory=dict)
    reported_order: tuple[int, ...] = ()  # ids in the order in which their outcomes came
    complete_order: tuple[int, ...] = ()  # ids in the order in which outcome and context were both known
    seen: tuple[int | ContextBatch, ...] = ()  # contexts in order of arrival: those of a run by its id
    suggested: int = 0  # how many numbers were taken for suggestions
    next_id: int = 0
    amendments: tuple[Amendment, ...] = ()
    history: tuple[Event, ...] = ()
    refs: Set[str] = frozenset()  # the names of all events
    checkpoints: tuple[Checkpoint, ...] = field(default=(), repr=False)  # earlier contents, for what is taken back


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What was known earlier; ``gone`` are the names of events that had been taken back by then."""

    contents: Contents
    gone: Set[str]

    @property
    def count(self) -> int:
        return len(self.contents.history)
