"""What a state holds: runs, contexts, changes of mind, and the history that led to them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edrbo.records.context_log import ContextBatch
from edrbo.records.events import Event
from edrbo.records.settings import Settings

Array = NDArray[np.float64]
Status = Literal["pending", "told", "failed", "cancelled"]


@dataclass(frozen=True, eq=False)
class Run:
    """One evaluation and what is known of it; ``x`` is coded (d_x), ``context`` in the user's units (d_c)."""

    id: int
    x: Array
    status: Status = "pending"
    context: Array | None = None
    value: float | None = None
    noise: float | None = None
    suggested: bool = True  # asked for, or a design of the user's own
    dropped: bool = False
    why: str | None = None  # it failed, was cancelled or was dropped
    expects: Mapping[str, Any] | None = None
    others: Mapping[str, float] = field(default_factory=dict)  # outcomes besides the main one, and …
    others_noise: Mapping[str, float] = field(default_factory=dict)  # … the variances that are known of them

    @property
    def complete(self) -> bool:
        """Whether a surrogate of (x, c) can learn from it."""
        return self.status == "told" and self.context is not None and not self.dropped


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
    told_order: tuple[int, ...] = ()  # ids in the order in which their outcomes came
    complete_order: tuple[int, ...] = ()  # ids in the order in which outcome and context were both known
    seen: tuple[int | ContextBatch, ...] = ()  # contexts in order of arrival: those of a run by its id
    suggested: int = 0  # how many numbers were taken for suggestions
    next_id: int = 0
    amendments: tuple[Amendment, ...] = ()
    history: tuple[Event, ...] = ()
    refs: Set[str] = frozenset()  # the names of all events
