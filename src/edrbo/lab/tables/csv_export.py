"""Studies as tables: one row per run, then contexts. What is exported and imported again is the same, bit for bit.

    status      reported, failed, pending, cancelled; left out (reported), failed, left out; context (seen without an
                outcome); late (the context of an earlier row), row (one more row of the run above)
    id          the run; a late row names the row it belongs to
    variables   under their names; one that is also a heading here is written design:NAME or context:NAME
    value, noise, weight, run_cost
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

from edrbo.lab.entry import time_text
from edrbo.lab.tables.cell_text import shielded
from edrbo.records import events as e
from edrbo.records.compaction import minimal_events
from edrbo.records.frame import other_columns
from edrbo.records.settings import Settings
from edrbo.records.spending import spending
from edrbo.records.state import State
from edrbo.space import Space
from edrbo.text import PolicyText

Array = NDArray[np.float64]
Row = dict[str, str]

FIRST = ("status", "id")
COST = "run_cost"
LAST = ("value", "noise_variance", "weight", COST, "batch", "count", "coded", "why", "note", "by", "at")
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
    """Those of all columns; that of costs only where something is known of them."""
    every = [*FIRST, *columns(state.space), *outcome_columns(state.settings), *LAST]
    return every if spending(state) is not None else [heading for heading in every if heading != COST]


def export_csv(state: State, file: TextIO) -> int:
    """Write everything; gives the number of rows."""
    writer, names = csv.writer(file, lineterminator="\n"), headings(state)
    writer.writerow(map(shielded, names))
    count = 0
    for row in table_rows(state):
        writer.writerow(shielded(row.get(name, "")) for name in names)
        count += 1
    return count


def table_rows(state: State) -> Iterator[Row]:
    """The rows of the table, texts by heading."""
    batches = 0
    for event in minimal_events(state):
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
        row |= {"value": _text(event.value), "noise_variance": _text(event.noise_variance)}
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
