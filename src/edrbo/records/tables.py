"""What a model wants to know of a state, worked out when it is first asked for."""

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

GROWING = (e.Asked, e.Told, e.Failed, e.Cancelled, e.Seen)  # they change nothing of what was told before them


class Tables:
    """The runs of ``contents``, as ``State`` describes each. The numbers taken for suggestions play no part."""

    def __init__(self, contents: Contents) -> None:
        # Not the contents as a whole: a state holds its tables, and a circle would be kept until it is looked for.
        self._space, self._runs, self._seen = contents.settings.space, contents.runs, contents.seen
        self._told_order, self._complete_order = contents.told_order, contents.complete_order

    def followed_by(self, contents: Contents, events: Sequence[e.Event]) -> Tables:
        """The tables of ``contents``, to which ``events`` led from here.

        Most events only add: then what was worked out is gone on from, so that a step of a long study costs hardly
        more than one of a short one.
        """
        after = Tables(contents)
        if all(isinstance(event, GROWING) for event in events):
            vars(after).update(self._grown(contents, events))
        return after

    def _grown(self, after: Contents, events: Sequence[e.Event]) -> Iterator[tuple[str, object]]:
        """Name and value of what is known here and holds of ``after``, with what ``events`` add."""
        known, runs = vars(self), after.runs
        new = [key for key in after.told_order[len(self._told_order) :] if _counts(runs[key])]
        if "told" in known:
            yield "told", self.told | {key: len(self.told) + k for k, key in enumerate(new)}
        if "observations" in known:
            more = _observations([runs[key] for key in new], self._space)
            yield "observations", self.observations.followed_by(more) if new else self.observations
        if "pending" in known:
            asked = (event.id for event in events if isinstance(event, e.Asked))
            keys = dict.fromkeys((*self.pending, *asked))
            yield "pending", {key: runs[key].x for key in keys if _is(runs[key], "pending")}
        if "failed" in known and not any(isinstance(event, e.Failed) for event in events):
            yield "failed", self.failed

    @cached_property
    def observations(self) -> Observations:
        return _observations([self._runs[key] for key in self.told], self._space)

    @cached_property
    def told(self) -> dict[int, int]:
        kept = (key for key in self._told_order if _counts(self._runs[key]))
        return {key: row for row, key in enumerate(kept)}

    @cached_property
    def training_order(self) -> NDArray[np.intp]:
        return np.array([self.told[key] for key in self._complete_order if key in self.told], dtype=np.intp)

    @cached_property
    def pending(self) -> dict[int, Array]:
        return {key: run.x for key, run in self._runs.items() if _is(run, "pending")}

    @cached_property
    def failed(self) -> dict[int, Array]:
        return {key: run.x for key, run in self._runs.items() if _is(run, "failed")}

    @cached_property
    def log(self) -> ContextLog:
        return ContextLog(tuple(_batches(self._seen, self._runs)))


def _observations(runs: Sequence[Run], space: Space) -> Observations:
    unknown = np.full(space.d_c, np.nan)
    return Observations(
        np.array([run.x for run in runs]).reshape(len(runs), space.d_x),
        np.array([unknown if run.context is None else run.context for run in runs]).reshape(len(runs), space.d_c),
        np.array([run.value for run in runs], dtype=np.float64),
        np.array([np.nan if run.noise is None else run.noise for run in runs], dtype=np.float64),
    )


def _counts(run: Run) -> bool:
    """Whether there is something to learn from it; of several outcomes the main one may be missing."""
    return not run.dropped and run.value is not None


def _is(run: Run, status: Status) -> bool:
    return run.status == status and not run.dropped


def _batches(seen: Iterable[int | ContextBatch], runs: Mapping[int, Run]) -> Iterator[ContextBatch]:
    for entry in seen:
        if isinstance(entry, ContextBatch):
            yield entry
        elif not runs[entry].dropped and (context := runs[entry].context) is not None:
            yield ContextBatch(context[None], np.ones(1), 1)
