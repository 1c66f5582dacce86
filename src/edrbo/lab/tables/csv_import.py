"""Tables into a study: every row is read, checked and applied to a copy of the state before the first is written. Rows
that the study knows already are left out, so that importing a file again adds nothing.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from edrbo.cancellation import checkpoint
from edrbo.errors import EdrboError, InvalidContextError, InvalidEventError, StudyError
from edrbo.lab.study import Study
from edrbo.lab.tables.sheet import Sheet, read_sheet
from edrbo.lab.tables.table_row import Columns, Parsed, RowError, RowReader, WrongCell, match_columns, wrong_row
from edrbo.records import events as e
from edrbo.records.context_log import ContextBatch, read_weights
from edrbo.records.descriptions import plural
from edrbo.records.reducer import Draft, undone
from edrbo.records.run import Series
from edrbo.records.sanity import newly_doubtful
from edrbo.records.state import State
from edrbo.space import Space
from edrbo.space.point_tables import close_match

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
            others, rows = run.series.fields()["others_values"], _listed(run.series.values)
            yield _mark(run.status, run.x, run.series.contexts, rows, others), run.id
            continue
        value: Any = run.value if run.control is None else run.measured
        marks = {_mark(run.status, run.x, run.context, value, run.others)}
        if run.status in ("reported", "failed"):
            marks.add(_mark(run.status, run.x, None, value, run.others))  # reported before its context
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


T = TypeVar("T")
TABLE_KEY = "table-"
IMPORTED = re.compile(rf"({TABLE_KEY}[0-9a-f]{{16}}-)[0-9]+")  # the key of a row that a table brought
Progress = Callable[[int, int], None]  # rows done, of how many


@dataclass(frozen=True)
class Import:
    """What a table comes to: events in order, rows of each status, how many rows were known already, and the columns
    that became notes; ``wrong`` are the rows that cannot be taken, ``doubts`` lines with what looks mistyped there."""

    events: tuple[e.Event, ...]
    counts: Mapping[str, int]
    known: int
    noted: tuple[str, ...] = ()
    seen: int = 0  # events that the study had when it was read
    wrong: tuple[WrongCell, ...] = ()
    doubts: tuple[tuple[int, str], ...] = ()

    def describe(self) -> str:
        """5 runs, 1 of them failed; conditions 3 times; 2 rows known already."""
        runs = {status: count for status, count in self.counts.items() if status not in ("context", "late")}
        parts = [", ".join([plural(sum(runs.values()), "run"), *_parts_of(runs)])] if runs else []
        if seen := sum(self.counts.get(status, 0) for status in ("context", "late")):
            parts.append(f"conditions {plural(seen, 'time')}")
        if self.known:
            parts = [*(parts or ["nothing new"]), f"{plural(self.known, 'row')} known already and passed over"]
        return "; ".join(parts) or "nothing: the table is empty"

    def named_events(self) -> list[e.Event]:
        """The events as a state can take them, each with a name of its own."""
        return [replace(event, ref=f"row {k}") for k, event in enumerate(self.events)]


def _parts_of(runs: Mapping[str, int]) -> Iterator[str]:
    """What became of runs without a result; that is what one expects of the others."""
    names = {"failed": "failed", "pending": "being tried", "cancelled": "not tried"}
    for status, count in runs.items():
        if status != "reported":
            yield f"{count} of them {names.get(status, status)}"


def import_file(study: Study, path: Path, *, again: bool = False) -> Import:
    """Tell ``study`` every row of a table, or none if one cannot be; rows that it knows already are passed over.

    ``again`` takes those too.
    """
    sheet = read_sheet(path)
    plan = _sound(study.state, plan_table(study.state, sheet, again=again))
    return store_plan(study, plan, lambda state: plan_table(state, sheet, again=again))


def last_import(state: State) -> list[e.Event]:
    """The rows of the table that was taken in last, the last one first, without those that were taken back."""
    gone = undone(state.history)
    known = [event for event in state.history if event.ref not in gone and event.key and IMPORTED.fullmatch(event.key)]
    if not known:
        return []
    table = IMPORTED.fullmatch(known[-1].key or "")
    assert table is not None
    return [event for event in reversed(known) if event.key and event.key.startswith(table[1])]


def undo_import(study: Study, *, note: str | None = None, by: str | None = None, key: str | None = None) -> int:
    """Take back every row of the table that was taken in last, or none; gives how many.

    Args:
        study: Where it was taken in.
        note: Words to keep with the record.
        by: Who says so.
        key: The sender's own name for the record.
    """

    def make(state: State) -> list[e.Event]:
        found = last_import(state)
        if not found:
            raise InvalidEventError("no table was taken in that could be taken back", "edrbo undo takes back one entry")
        keys = [key, *(None if key is None else f"{key}-undo-{k}" for k in range(1, len(found)))]
        return [e.Undone(of=event.ref, note=note, by=by, key=own) for event, own in zip(found, keys, strict=True)]

    return len(study.record_all(make))


class _OvertakenError(Exception):
    """Something was recorded since the table was read."""


def store_plan(
    study: Study,
    plan: Import,
    read_again: Callable[[State], Import],
    stamped: Callable[[Import], Sequence[e.Event]] = lambda plan: as_one_table(plan.events),
) -> Import:
    """Store a table's events in one transaction, for the study as it is at that moment.

    If somebody was quicker, a row may be known now, or complete their run: then the table is read again, the last time
    while others wait.

    Args:
        study: Where to store them.
        plan: What the table comes to, for the state it was read for.
        read_again: What it comes to for another state.
        stamped: The events to store, with whom and under which keys.

    Returns:
        The plan that was stored.
    """
    for last in (False, False, True):

        def make(state: State, last: bool = last) -> Sequence[e.Event]:
            nonlocal plan
            if len(state.history) != plan.seen:
                if not last:
                    raise _OvertakenError
                plan = read_again(state)
            if plan.wrong:
                raise plan.wrong[0].problem
            return stamped(plan)

        try:
            study.record_all(make)
            break
        except _OvertakenError:
            plan = read_again(study.state)
    return plan


def as_one_table(events: Sequence[e.Event], name: str | None = None) -> list[e.Event]:
    """With keys that say which rows came together: the same for the same ``name`` of a table, by default new ones."""
    mark = hashlib.sha256((name or uuid.uuid4().hex).encode()).hexdigest()[:16]
    return [replace(event, key=f"{TABLE_KEY}{mark}-{k}") for k, event in enumerate(events)]


def _sound(state: State, plan: Import) -> Import:
    """The plan, if every row of it can be."""
    if plan.wrong:
        raise plan.wrong[0].problem
    met = [row for event in plan.events for row in _contexts(event)]
    if met:
        state.space.warn_outside(np.stack(met))
    return plan


def _contexts(event: e.Event) -> Iterable[Array]:
    rows = getattr(event, "rows", None) if isinstance(event, e.Seen) else getattr(event, "contexts", None)
    one = getattr(event, "context", None)
    return rows if rows is not None else [] if one is None else [one]


def plan_table(
    state: State,
    sheet: Sheet,
    columns: Columns | None = None,
    *,
    again: bool = False,
    progress: Progress | None = None,
) -> Import:
    """The same with everything that is wrong.

    Args:
        state: what is known; it stays as it is.
        sheet: the table.
        columns: what its columns hold; by their headings if that is not said.
        again: take rows that are known already once more.
        progress: is reported how many rows were checked, and of how many.
    """
    columns = match_columns(sheet, state.settings) if columns is None else columns
    rows, wrong = _parsed(sheet, RowReader(sheet, columns, state.space, state.settings))
    known = Known(state)
    events: list[e.Event] = []
    counts: Counter[str] = Counter()
    old, done, numbers = 0, 0, dict[str, int]()  # ids of the table → of the study
    lines: dict[int, int] = {}  # runs → lines that say what came of them
    draft = Draft(state)
    for group in _groups(rows):
        checkpoint()
        done += len(group)
        if progress is not None:
            progress(done, len(rows))
        run = None if again else known.find(group, numbers)
        if run is not None:
            old += len(group)
            if group[0].id:
                numbers[group[0].id] = run
            continue
        try:
            new = list(_events(draft, group, numbers, state.version))
            for k, event in enumerate(new):
                draft.apply(replace(event, ref=f"row {group[0].line} {k}"))
        except EdrboError as problem:
            wrong.append(wrong_row(sheet, group[0].line, problem))
            continue
        events += new
        counts[group[0].status] += len(group)
        lines |= {
            event.id: group[0].line for event in new if isinstance(event, e.Reported | e.Failed | e.ContextReported)
        }
    doubts = () if wrong else tuple(_doubts(state, state.after(draft), lines))
    unusable = tuple(sorted(wrong, key=_line))
    return Import(tuple(events), dict(counts), old, columns.noted, len(state.history), unusable, doubts)


def _parsed(sheet: Sheet, reader: RowReader) -> tuple[list[Parsed], list[WrongCell]]:
    rows, wrong = list[Parsed](), list[WrongCell]()
    for row in sheet.rows:
        checkpoint()
        try:
            rows.append(reader.parse(row))
        except RowError as problem:
            wrong += problem.cells
    return rows, wrong


def _line(problem: WrongCell) -> int:
    return problem.line


def _doubts(before: State, after: State, lines: Mapping[int, int]) -> Iterator[tuple[int, str]]:
    """What `tell` would have asked about the runs of a table, by their lines."""
    for one in newly_doubtful(before, after, lines):
        yield from ((lines[one.run], reason) for reason in one.reasons)


def _groups(rows: Iterable[Parsed]) -> Iterator[list[Parsed]]:
    """Rows one by one; but together those of one run, contexts of one batch, and contexts without a batch in a row."""
    group: list[Parsed] = []
    for row in rows:
        if group and not _together(group[0], row):
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def _together(first: Parsed, row: Parsed) -> bool:
    if row.status == "row":
        return first.status in ("reported", "left out") and row.id in ("", first.id)
    return first.status == row.status == "context" and row.batch == first.batch


def _events(state: Draft, group: list[Parsed], numbers: dict[str, int], version: int) -> Iterator[e.Event]:
    """What rows say of ``state``; ``numbers`` learns the ids of new runs."""
    row = group[0]
    if row.status == "context":
        rows = np.stack([part.context for part in group if part.context is not None])
        weights = read_weights([part.weight for part in group], len(group))
        count = row.count or len(group)
        yield e.Seen(rows=rows, weights=weights, count=count, summary=bool(row.count), version=version, **row.stamp)
        return
    if row.status == "row":
        raise InvalidEventError("a row has no run above it", "the first row of a run says what was set")
    if row.status == "late":
        if row.id not in numbers:
            raise InvalidEventError(f"a late row names {row.id!r}, which no earlier row has")
        assert row.context is not None
        yield e.ContextReported(id=numbers[row.id], context=row.context, version=version)
        return
    assert row.x is not None
    key = _number(state, row)
    if row.id:
        numbers[row.id] = key
    common: dict[str, Any] = {"id": key, "x": row.x, "version": version, **row.stamp}
    if row.status == "pending" or (row.status == "cancelled" and key not in state.runs):
        yield e.Asked(**common)
    if row.status == "cancelled":
        yield e.Cancelled(id=key, why=row.why)
    if row.status in ("failed", "failed, left out"):
        yield e.Failed(context=row.context, cost=row.cost, why=row.why, **common)
    if row.status in ("reported", "left out"):
        common["cost"] = row.cost
        if row.control is not None:
            common["control"] = row.control
        if len(group) > 1:
            yield e.Reported(**_series(group, state.settings.space).fields(), **common)
        else:
            common |= {"others": row.others or None, "others_noise_variance": row.others_noise_variance or None}
            yield e.Reported(context=row.context, value=row.value, noise_variance=row.noise_variance, **common)
    if row.status.endswith("left out"):
        yield e.Dropped(id=key, why=row.why)


def _series(group: list[Parsed], space: Space) -> Series:
    """The rows of one run."""
    nothing = np.full(space.d_c, np.nan)
    names = dict.fromkeys(name for row in group for name in (*row.others, *row.others_noise_variance))
    others = {name: [(row.others.get(name), row.others_noise_variance.get(name)) for row in group] for name in names}
    return Series(
        np.stack([nothing if row.context is None else row.context for row in group]),
        _floats([row.value for row in group]),
        _floats([row.noise_variance for row in group]),
        {name: (_floats([y for y, _ in pairs]), _floats([s for _, s in pairs])) for name, pairs in others.items()},
    )


def _floats(column: list[float | None]) -> Array:
    return np.array([np.nan if part is None else part for part in column], dtype=np.float64)


def _number(state: Draft, row: Parsed) -> int:
    """The pending suggestion that the row names and whose design it has, or a number of its own."""
    if row.id.isascii() and row.id.isdigit() and len(row.id) < 20 and row.status != "pending":
        run = state.runs.get(int(row.id))
        if run is not None and run.status == "pending" and row.x is not None and same_design(run.x, row.x):
            return run.id
    return state.next_id


def same_design(one: Array, other: Array) -> bool:
    """But for the digits that a table may have lost."""
    return one.shape == other.shape and bool(np.abs(one - other).max(initial=0.0) <= 1e-5)


# -------------------------------------------------------------------- designs or contexts alone


def read_designs(space: Space, path: Path) -> list[dict[str, Any]]:
    """A table of designs, of which other columns do not matter."""
    sheet = read_sheet(path)
    reader = RowReader(sheet, match_columns(sheet, None, space), space)
    found = _first_error(reader.design(row) for row in sheet.rows)
    if not any(found):
        hint = f"the columns are {', '.join(space.design_names)}"
        raise StudyError(f"{sheet.file} holds no design", hint)
    return [design for design in found if design]


def read_contexts(space: Space, path: Path) -> tuple[list[dict[str, Any]], Array | None]:
    """A table of contexts by name and, if there is a column ``weight``, weights (n)."""
    return contexts_of(space, read_sheet(path))


def contexts_of(space: Space, sheet: Sheet) -> tuple[list[dict[str, Any]], Array | None]:
    """The same of a table that was read."""
    columns = match_columns(sheet, None, space)
    _check_contexts(sheet, columns, space)
    reader = RowReader(sheet, columns, space)
    rows = _first_error(reader.parse(row) for row in sheet.rows)
    for row in rows:
        if row.context is None or np.isnan(row.context).any():
            place = sheet.place(row.line)
            raise InvalidContextError(f"{place}: a cell is empty", "every row needs a number per column")
    table = np.array([row.context for row in rows], dtype=np.float64).reshape(len(rows), space.d_c)
    weighted = any(kind == ("", "weight") for kind in columns.meaning.values())
    return space.name_contexts(table), np.array([row.weight for row in rows]) if weighted else None


def read_outcomes(state: State, path: Path) -> dict[str, Any]:
    """A table of the rows of one run, as ``tell`` takes them: contexts, values and, if there is a column, noise; of
    several outcomes by name."""
    sheet = read_sheet(path)
    reader = RowReader(sheet, match_columns(sheet, state.settings), state.space, state.settings)
    several = state.settings.outcomes is not None
    rows = _first_error(reader.outcome(state.settings, row) for row in sheet.rows)
    if not rows:
        raise StudyError(f"{sheet.file} holds no row", "give a column of values and one for each context variable")
    for line, (context, _, _) in zip(sheet.rows, rows, strict=True):
        if context is None and state.space.d_c:
            place = sheet.place(line.line)
            raise InvalidContextError(f"{place}: nothing of the context", "every row needs some of it")
    named = [state.space.name_contexts(context[None])[0] for context, _, _ in rows if context is not None]
    values, noise_variances = [value for _, value, _ in rows], [noise_variance for _, _, noise_variance in rows]
    unknown = several and not any(noise_variances)
    return {
        "contexts": named if state.space.d_c else None,
        "values": values,
        "noise_variance": None if unknown else noise_variances,
    }


def _first_error(rows: Iterator[T]) -> list[T]:
    """All of ``rows``; what is wrong with the first that cannot be read is an error."""
    try:
        return list(rows)
    except RowError as problem:
        raise problem.cells[0].problem from None


def _check_contexts(sheet: Sheet, columns: Columns, space: Space) -> None:
    names = {name for role, name in columns.meaning.values() if role == "context"}
    missing = [name for name in space.context_names if name not in names]
    if missing:
        unknown = next((h for h in sheet.headings if columns.meaning.get(h, ("note", ""))[0] == "note"), None)
        if unknown is not None:
            hint = close_match(
                unknown, space.context_names, f"the columns are {', '.join(space.context_names)}, weight"
            )
            raise StudyError(f"{sheet.file}: {unknown!r} is not a context variable", hint)
        raise StudyError(f"{sheet.file}: there is no column {missing[0]!r}", "every context variable needs one")
