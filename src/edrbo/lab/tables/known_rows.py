"""Which rows of a table a study knows already, so that importing a file again adds nothing."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.lab.tables.table_row import Parsed
from edrbo.records import events as e
from edrbo.records.context_log import ContextBatch
from edrbo.records.reducer import undone
from edrbo.records.state import State

Array = NDArray[np.float64]
KIND = {"left out": "reported", "failed, left out": "failed"}


class Known:
    """Fingerprints of everything that was reported, as it was reported and as it is now; each run is found once."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._runs: dict[str, list[int]] = defaultdict(list)
        self._used: set[int] = set()
        for mark, key in _marks(state):
            self._runs[mark].append(key)
        self._batches: dict[str, int] = defaultdict(int)
        for entry in state.seen:
            if isinstance(entry, ContextBatch):
                self._batches[_digest(entry.rows, entry.weights, entry.count)] += 1

    def find(self, group: list[Parsed], numbers: dict[str, int]) -> int | None:
        """The run that rows speak of (−1 for contexts alone), None if they are new."""
        row = group[0]
        if row.status == "context":
            return self._find_batch(group)
        if row.status == "late":
            return self._find_late(row, numbers)
        context: Array | None = row.context
        value: Any = row.value
        others: Mapping[str, Any] = row.others
        if len(group) > 1:
            nothing = np.full(self._state.space.d_c, np.nan)
            context = np.stack([nothing if part.context is None else part.context for part in group])
            value = [part.value for part in group]
            names = dict.fromkeys(name for part in group for name in part.others)
            others = {name: [part.others.get(name) for part in group] for name in names}
        mark = _mark(KIND.get(row.status, row.status), row.x, context, value, others)
        free = [key for key in self._runs.get(mark, ()) if key not in self._used]
        named = [key for key in free if str(key) == row.id]  # of equal runs, the one with this number
        if not free:
            return None
        key = (named or free)[0]
        self._used.add(key)
        return key

    def _find_batch(self, group: list[Parsed]) -> int | None:
        rows = np.stack([part.context for part in group if part.context is not None])
        weights = np.array([part.weight for part in group])
        mark = _digest(rows, weights, group[0].count or len(group))
        if not self._batches[mark]:
            return None
        self._batches[mark] -= 1
        return -1

    def _find_late(self, row: Parsed, numbers: dict[str, int]) -> int | None:
        """Its outcome was known: its context is too, if it is this one."""
        key = numbers.get(row.id)
        run = None if key is None or key not in self._used else self._state.runs.get(key)
        known = run is not None and run.context is not None and row.context is not None
        return key if known and run is not None and np.array_equal(run.context, row.context, equal_nan=True) else None  # type: ignore[arg-type]


def _marks(state: State) -> Iterator[tuple[str, int]]:
    for run in state.runs.values():
        if run.series is not None:
            others, values = run.series.fields()["others_values"], _listed(run.series.values)
            yield _mark(run.status, run.x, run.series.contexts, values, others), run.id
            continue
        marks = {_mark(run.status, run.x, run.context, run.value, run.others)}
        if run.status in ("reported", "failed"):
            marks.add(_mark(run.status, run.x, None, run.value, run.others))  # reported before its context
        for mark in sorted(marks):
            yield mark, run.id
    gone = undone(state.history)
    designs: dict[int, Array] = {}
    for event in state.history:
        if isinstance(event, e.Asked):
            designs[event.id] = event.x
        if isinstance(event, e.Reported | e.Failed) and event.ref not in gone and event.id in state.runs:
            x = designs.get(event.id) if event.x is None else event.x
            context, value, others = event.context, getattr(event, "value", None), getattr(event, "others", None)
            if isinstance(event, e.Reported) and event.values is not None:
                context, value, others = event.contexts, _listed(event.values), event.others_values
            yield _mark(event.kind, x, context, value, others), event.id


def _mark(
    status: str, x: Array | None, context: Array | None, value: Any, others: Mapping[str, Any] | None = None
) -> str:
    """A design is known by what a table can hold of it."""
    rounded = None if x is None else np.round(x, 9) + 0.0
    known = None if context is None or not len(context) else context
    return _digest(status, rounded, known, value, *sorted((others or {}).items()))


def _listed(values: Array) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def _digest(*parts: object) -> str:
    texts = [repr(part.tolist()) if isinstance(part, np.ndarray) else repr(part) for part in parts]
    return hashlib.sha256("|".join(texts).encode()).hexdigest()
