"""Compaction: the fewest events that lead to a state, for export."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edrbo.records import events as e
from edrbo.records.context_log import ContextBatch
from edrbo.records.run import Run
from edrbo.records.state import State


def minimal_events(state: State) -> Iterator[e.Event]:
    """Outcomes, contexts and failures each in the order in which they came; then what is pending, cancelled, left out.

    Numbers of runs are kept. Who said what and when is that of the first event of a run.
    """
    return _Minimal(state).events()


class _Minimal:
    def __init__(self, state: State) -> None:
        self._state = state
        self._reported = list(state.reported_order)  # not yet written, first last
        self._reported.reverse()
        self._written: set[int] = set()
        self._stamps = _stamps(state)

    def events(self) -> Iterator[e.Event]:
        for entry in self._state.seen:
            if isinstance(entry, ContextBatch):
                yield e.Seen(rows=entry.rows, weights=entry.weights, count=entry.count, summary=entry.summary)
                continue
            run = self._state.runs[entry]
            if run.status == "failed":
                yield self._failed(run)
            elif entry in self._written:
                assert run.context is not None
                yield e.ContextReported(id=entry, context=run.context)
            else:
                yield from self._tell_up_to(entry)
        while self._reported:
            yield self._tell(self._reported.pop(), with_context=False)
        for run in self._state.runs.values():
            yield from self._rest(run)

    def _tell_up_to(self, key: int) -> Iterator[e.Event]:
        while self._reported and key not in self._written:
            upper = self._reported.pop()
            yield self._tell(upper, with_context=upper == key)

    def _tell(self, key: int, *, with_context: bool) -> e.Event:
        run = self._state.runs[key]
        self._written.add(key)
        if run.series is not None:
            return e.Reported(id=key, x=run.x, cost=run.cost, **run.series.fields(), **self._stamps[key])
        context = run.context if with_context else None
        parts: dict[str, Any] = {
            "others": dict(run.others) or None,
            "others_noise_variance": dict(run.others_noise_variance) or None,
        }
        parts |= {"cost": run.cost, **self._stamps[key]}
        return e.Reported(id=key, x=run.x, context=context, value=run.value, noise_variance=run.noise_variance, **parts)

    def _failed(self, run: Run) -> e.Event:
        self._written.add(run.id)
        stamp = self._stamps[run.id]
        return e.Failed(id=run.id, x=run.x, context=run.context, cost=run.cost, why=run.why, **stamp)

    def _rest(self, run: Run) -> Iterator[e.Event]:
        if run.status == "failed" and run.id not in self._written:
            yield self._failed(run)
        if run.status in ("pending", "cancelled"):
            yield e.Asked(id=run.id, x=run.x, **self._stamps[run.id])
        if run.status == "cancelled":
            yield e.Cancelled(id=run.id, why=run.why)
        if run.dropped:
            yield e.Dropped(id=run.id, why=run.why)


def _stamps(state: State) -> dict[int, dict[str, Any]]:
    """By whom, when and with which words each run was reported, or else asked for."""
    found: dict[int, dict[str, Any]] = {key: {} for key in state.runs}
    for event in state.history:
        if isinstance(event, e.Asked | e.Reported | e.Failed) and event.id in found:
            found[event.id] = {"by": event.by, "at": event.at, "note": event.note or found[event.id].get("note")}
        elif isinstance(event, e.Noted) and event.id in found:
            notes = filter(None, [found[event.id].get("note"), event.note])
            found[event.id] = {**found[event.id], "note": "; ".join(notes)}
    return found
