"""Tables derived from a state, computed when first read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from edrbo.records import events as e
from edrbo.records.context_log import ContextBatch, ContextLog
from edrbo.records.observations import Observations
from edrbo.records.run import Contents, Run, Status
from edrbo.space import Space

Array = NDArray[np.float64]

GROWING = (e.Asked, e.Reported, e.Failed, e.Cancelled, e.Seen)  # they change nothing of what was reported before them


class DerivedTables:
    """The runs of ``contents``, as ``State`` describes each. The numbers taken for suggestions play no part."""

    def __init__(self, contents: Contents) -> None:
        # Not the contents as a whole: a state holds its tables, and a circle would be kept until it is looked for.
        self._space, self._runs, self._seen = contents.settings.space, contents.runs, contents.seen
        self._reported_order, self._complete_order = contents.reported_order, contents.complete_order

    def followed_by(self, contents: Contents, events: Sequence[e.Event]) -> DerivedTables:
        """The tables of ``contents``, to which ``events`` led from here.

        Most events only add: then what was worked out is gone on from, so that a step of a long study costs hardly
        more than one of a short one.
        """
        after = DerivedTables(contents)
        if all(isinstance(event, GROWING) for event in events):
            vars(after).update(self._grown(contents, events))
        return after

    def _grown(self, after: Contents, events: Sequence[e.Event]) -> Iterator[tuple[str, object]]:
        """Name and value of what is known here and holds of ``after``, with what ``events`` add."""
        known, runs = vars(self), after.runs
        new = [key for key in after.reported_order[len(self._reported_order) :] if _counts(runs[key])]
        if "reported" in known:
            last = next(reversed(self.reported), None)
            first = 0 if last is None else self.reported[last] + count_of(self._runs[last])
            yield "reported", self.reported | _first_rows(new, runs, first)
        if "observations" in known:
            more = _observations([runs[key] for key in new], self._space)
            yield "observations", self.observations.followed_by(more) if new else self.observations
        if "pending" in known:
            asked = (event.id for event in events if isinstance(event, e.Asked))
            keys = dict.fromkeys((*self.pending, *asked))
            yield "pending", {key: runs[key].x for key in keys if _is(runs[key], "pending")}
        # a context of which more is reported goes to the end
        if "log" in known and after.seen[: len(self._seen)] == self._seen:
            met = tuple(_batches(after.seen[len(self._seen) :], runs))
            yield "log", ContextLog(self.log.batches + met) if met else self.log
        if "failed" in known and not any(isinstance(event, e.Failed) for event in events):
            yield "failed", self.failed

    @cached_property
    def observations(self) -> Observations:
        return _observations([self._runs[key] for key in self.reported], self._space)

    @cached_property
    def reported(self) -> dict[int, int]:
        return _first_rows([key for key in self._reported_order if _counts(self._runs[key])], self._runs, 0)

    @cached_property
    def training_order(self) -> NDArray[np.intp]:
        kept = [key for key in self._complete_order if key in self.reported]
        rows = [self.reported[key] + k for key in kept for k in range(count_of(self._runs[key]))]
        order = np.array(rows, dtype=np.intp)
        return order[self.observations.complete[order]]

    @cached_property
    def pending(self) -> dict[int, Array]:
        return {key: run.x for key, run in self._runs.items() if _is(run, "pending")}

    @cached_property
    def failed(self) -> dict[int, Array]:
        return {key: run.x for key, run in self._runs.items() if _is(run, "failed")}

    @cached_property
    def log(self) -> ContextLog:
        return ContextLog(tuple(_batches(self._seen, self._runs)))


def count_of(run: Run) -> int:
    """How many rows a run that was reported has among the observations."""
    return 1 if run.series is None else int(run.series.measured.sum())


def _first_rows(keys: Sequence[int], runs: Mapping[int, Run], first: int) -> dict[int, int]:
    """Id → the first row of each run, the first of them at ``first``."""
    found = {}
    for key in keys:
        found[key] = first
        first += count_of(runs[key])
    return found


def _observations(runs: Sequence[Run], space: Space) -> Observations:
    rows = [row for run in runs for row in _rows(run, space)]
    return Observations(
        np.array([row[0] for row in rows]).reshape(len(rows), space.d_x),
        np.array([row[1] for row in rows]).reshape(len(rows), space.d_c),
        np.array([row[2] for row in rows], dtype=np.float64),
        np.array([row[3] for row in rows], dtype=np.float64),
    )


def _counts(run: Run) -> bool:
    """Whether there is something to learn from it; of several outcomes the main one may be missing."""
    return not run.dropped and run.value is not None


def _rows(run: Run, space: Space) -> Iterator[tuple[Array, Array, float | None, float]]:
    """Design, context, value and noise of each row of a run; NaN for what is not known."""
    if run.series is not None:
        some = run.series.measured
        contexts, values, noise_variances = (
            part[some] for part in (run.series.contexts, run.series.values, run.series.noise_variances)
        )
        yield from (
            (run.x, c, y, s) for c, y, s in zip(contexts, values.tolist(), noise_variances.tolist(), strict=True)
        )
        return
    context = np.full(space.d_c, np.nan) if run.context is None else run.context
    yield run.x, context, run.value, np.nan if run.noise_variance is None else run.noise_variance


def _is(run: Run, status: Status) -> bool:
    return run.status == status and not run.dropped


def _batches(seen: Iterable[int | ContextBatch], runs: Mapping[int, Run]) -> Iterator[ContextBatch]:
    for entry in seen:
        if isinstance(entry, ContextBatch):
            yield entry
        elif not runs[entry].dropped and len(contexts := runs[entry].contexts):
            yield ContextBatch(contexts, np.ones(len(contexts)), len(contexts), one_run=True)
