"""Studies as tables: one row per run, then contexts. What is exported and imported again is the same, bit for bit.

    status      reported, failed, pending, cancelled; left out (reported), failed, left out; context (seen without an
                outcome); late (the context of an earlier row), row (one more row of the run above)
    id          the run; a late row names the row it belongs to
    variables   under their names; one that is also a heading here is written design:NAME or context:NAME
    value, noise, weight, run_cost
    control     what a reference run gave in the same context; ``value`` is as it was measured beside it
    outcomes    besides the main one, which is ``value``, under their names; what is known of their noise:
                noise_variance:NAME
    batch       rows of one batch of contexts share it; count is how many contexts the batch stands for
    coded       the coded design, exactly; not needed where a table is written by hand
    why, note, by, at

A table of one's own needs only the variables and ``value``; a row without a design and a value is a context.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from edrbo.cancellation import checkpoint
from edrbo.lab.entry import local_text, time_text
from edrbo.lab.tables.cell_text import shielded
from edrbo.records import events as e
from edrbo.records.context_log import ContextBatch
from edrbo.records.descriptions import STATUSES, heading, measured, outcome_headings, outcome_of, remarks_of
from edrbo.records.frame import other_columns
from edrbo.records.run import Run
from edrbo.records.settings import Settings
from edrbo.records.state import State, spending
from edrbo.space import Space
from edrbo.text import PolicyText

Array = NDArray[np.float64]
Row = dict[str, str]

FIRST = ("status", "id")
COST = "run_cost"
CONTROL = "control"
LAST = ("value", CONTROL, "noise_variance", "weight", COST, "batch", "count", "coded", "why", "note", "by", "at")
HEADINGS = (*FIRST, *LAST)


def columns(space: Space) -> dict[str, tuple[str, str]]:
    """Heading → (role, name) of every variable."""
    roles = [("design", name) for name in space.design_names] + [("context", name) for name in space.context_names]
    return {(f"{role}:{name}" if name in HEADINGS else name): (role, name) for role, name in roles}


def outcome_columns(settings: Settings) -> dict[str, tuple[str, str]]:
    """Heading → (role, name) of the outcomes besides the main one and of their noise."""
    named = other_columns(settings, HEADINGS)
    found = {heading: ("outcome", name) for heading, name in named.items()}
    return found | {f"noise_variance:{name}": ("noise_variance", name) for name in named.values()}


def headings(state: State) -> list[str]:
    """Those of all columns; those of costs and of control runs only where something is known of them."""
    every = [*FIRST, *columns(state.space), *outcome_columns(state.settings), *LAST]
    unused = {COST} if spending(state) is None else set()
    if all(run.control is None for run in state.runs.values()):
        unused.add(CONTROL)
    return [heading for heading in every if heading not in unused]


def export_csv(state: State, file: TextIO) -> int:
    """Write everything; gives the number of rows."""
    writer, names = csv.writer(file, lineterminator="\n"), headings(state)
    writer.writerow(map(shielded, names))
    count = 0
    for row in table_rows(state):
        writer.writerow(shielded(row.get(name, "")) for name in names)
        count += 1
    return count


def plain_table(state: State) -> tuple[list[str], list[dict[str, str]]]:
    """Headings with units and a row a run, for people: what was set, met and measured, what became of it, and what was
    said. What nothing is known of has no column; conditions that were seen alone come last."""
    space, settings = state.space, state.settings
    names = {name: heading(name, v.unit) for name, v in {**space.design, **space.context}.items()}
    results, stamps, remarks = outcome_headings(settings), measured(state), remarks_of(state)
    rows = []
    for run in sorted(state.runs.values(), key=lambda run: run.id):
        (design,) = space.decode_designs(run.x)
        known = {} if run.context is None else space.name_contexts(run.context[None])[0]
        values = {name: outcome_of(run, name, settings) for name in results}
        if run.control is not None:
            values[settings.outcome] = run.measured
        stamp = stamps.get(run.id)
        row = {"run": str(run.id), **{names[name]: _plain(value) for name, value in (design | known).items()}}
        row |= {results[name]: _plain(value) for name, value in values.items()}
        row |= {CONTROL: _plain(run.control), "cost": _plain(run.cost)}
        row["status"] = ", ".join(filter(None, [STATUSES[run.status] or "result", "left out" * run.dropped]))
        row["note"] = "; ".join([*filter(None, [run.why]), *remarks.get(run.id, [])])
        row |= {"who": "" if stamp is None else stamp.by or "", "when": "" if stamp is None else local_text(stamp.at)}
        rows.append(row)
    for batch in (entry for entry in state.seen if isinstance(entry, ContextBatch)):
        seen = space.name_contexts(batch.rows)
        rows += [{**{names[n]: _plain(v) for n, v in one.items()}, "status": "conditions only"} for one in seen]
    every = ["run", *names.values(), *results.values(), CONTROL, "cost", "status", "note", "who", "when"]
    needed = {"run", *names.values(), *results.values(), "status"}
    heads = [head for head in dict.fromkeys(every) if head in needed or any(row.get(head) for row in rows)]
    return heads, rows


def _plain(value: Any) -> str:
    """A number as people write it."""
    return "" if value is None else f"{value:.12g}" if isinstance(value, float) else str(value)


def export_plain(state: State, file: TextIO) -> int:
    """Write ``plain_table`` as CSV; gives the number of rows."""
    writer, (names, rows) = csv.writer(file, lineterminator="\n"), plain_table(state)
    writer.writerow(map(shielded, names))
    writer.writerows([shielded(row.get(name, "")) for name in names] for row in rows)
    return len(rows)


def table_rows(state: State) -> Iterator[Row]:
    """The rows of the table, texts by heading."""
    batches = 0
    for event in minimal_events(state):
        checkpoint()
        if isinstance(event, e.Seen):
            batches += 1
            yield from _batch(state.space, event, batches)
        elif isinstance(event, e.ContextReported):
            yield {"status": "late", "id": str(event.id), **_context(state.space, event.context)}
        elif isinstance(event, e.Asked | e.Reported | e.Failed):
            first, *more = _rows(state, event)
            yield {**first, **_stamp(event)}
            yield from more


def _rows(state: State, event: e.Asked | e.Reported | e.Failed) -> Iterator[Row]:
    """The row of a run, or the rows: those after the first say which run they belong to."""
    row, series = _run(state, event), state.runs[event.id].series
    if series is None:
        yield row
        return
    for k, (context, reported) in enumerate(zip(series.contexts, series.rows(), strict=True)):
        head = row if k == 0 else {"status": "row", "id": str(event.id)}
        yield {**head, **_context(state.space, context), **_measured(state.settings, reported)}


def _measured(settings: Settings, reported: Mapping[str, tuple[float, float]]) -> Row:
    """Values and known noises of one row by heading; "" is the main outcome."""
    roles = {"value": ("outcome", ""), "noise_variance": ("noise_variance", ""), **outcome_columns(settings)}
    place = {"outcome": 0, "noise_variance": 1}
    known = {head: reported[name][place[role]] for head, (role, name) in roles.items() if name in reported}
    return {head: "" if head not in known or math.isnan(known[head]) else _text(known[head]) for head in roles}


def policy_csv(found: PolicyText) -> str:
    """The table of a policy with exact numbers: what is met, what to set, what to expect with its 95 % interval."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    first = found.rows[0]
    names = [*first.context, *first.design, "expected", "lower", "upper"]
    writer.writerow(map(shielded, names))
    for row in found.rows:
        cells = [*row.context.values(), *row.design.values(), row.expected, *row.interval]
        writer.writerow(shielded(_text(cell)) for cell in cells)
    return text.getvalue()


def _run(state: State, event: e.Asked | e.Reported | e.Failed) -> Row:
    run, space = state.runs[event.id], state.space
    status = run.status if not run.dropped else "left out" if run.status == "reported" else f"{run.status}, left out"
    row = {"status": status, **_design(space, run.id, run.x), "why": run.why or ""}
    if isinstance(event, e.Reported | e.Failed):
        row |= {**_context(space, event.context), COST: _text(event.cost)}
    if isinstance(event, e.Reported):
        row |= {
            "value": _text(event.value),
            CONTROL: _text(event.control),
            "noise_variance": _text(event.noise_variance),
        }
        reported = {"outcome": event.others or {}, "noise_variance": event.others_noise_variance or {}}
        for heading, (role, name) in outcome_columns(state.settings).items():
            row[heading] = _text(reported[role].get(name))
    return row


def _stamp(event: e.Event) -> Row:
    return {"note": event.note or "", "by": event.by or "", "at": time_text(event.at)}


def _batch(space: Space, event: e.Seen, number: int) -> Iterator[Row]:
    shared = {"batch": str(number), "count": str(event.count) if event.summary else ""}
    for row, weight in zip(event.rows, event.weights.tolist(), strict=True):
        yield {"status": "context", **_context(space, row), "weight": _text(weight), **shared}


def _design(space: Space, number: int, x: Array) -> Row:
    (design,) = space.decode_designs(x)
    named = {heading: design[name] for heading, (role, name) in columns(space).items() if role == "design"}
    texts = {heading: _text(value) for heading, value in named.items()}
    return {"id": str(number), **texts, "coded": " ".join(map(repr, x.tolist()))}


def _context(space: Space, context: Array | None) -> Row:
    if context is None:
        return {}
    (known,) = space.name_contexts(context[None])
    names = ((heading, name) for heading, (role, name) in columns(space).items() if role == "context")
    return {heading: _text(known[name]) for heading, name in names if name in known}


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else repr(value)


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
        parts |= {"value": run.value if run.control is None else run.measured, "control": run.control}
        return e.Reported(id=key, x=run.x, context=context, noise_variance=run.noise_variance, **parts)

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
