"""Studies as CSV: one row per event, in order. What is exported and imported again is the same, bit for bit.

    status      told, failed, pending; context (a sample without an outcome); late (the context of an earlier row)
    id          the suggestion; a late row names the row it belongs to
    variables   under their names; one that is also a heading here is written design:NAME or context:NAME
    value, noise, weight
    batch       rows of one batch of contexts share it; count is how many contexts the batch stands for
    coded       the coded design, exactly; not needed where a table is written by hand

A table of one's own needs only the variables and ``value``; a row without a design and a value is a context.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from edrbo.errors import StudyError
from edrbo.records.context_log import ContextBatch, ContextLog
from edrbo.space import Space
from edrbo.space.tables import check_names
from edrbo.study.records import CONTEXTS, LATE, Array, Late, Seen, Snapshot, Told, told_record
from edrbo.study.study import Study

HEADINGS = ("status", "id", "value", "noise", "weight", "batch", "count", "coded")
Row = dict[str, str]


def columns(space: Space) -> dict[str, tuple[str, str]]:
    """Heading → (role, name) of every variable."""
    roles = [("design", name) for name in space.design_names] + [("context", name) for name in space.context_names]
    return {(f"{role}:{name}" if name in HEADINGS else name): (role, name) for role, name in roles}


def export_csv(study: Study, file: TextIO) -> int:
    """Write every event; gives the number of rows."""
    headings = columns(study.space)
    writer = csv.DictWriter(file, [*HEADINGS[:2], *headings, *HEADINGS[2:]], restval="", lineterminator="\n")
    writer.writeheader()
    count = 0
    for row in _rows(study.space, study.ledger.read()):
        writer.writerow(row)
        count += 1
    return count


def _rows(space: Space, snapshot: Snapshot) -> Iterator[Row]:
    for event in snapshot.events:
        if isinstance(event, Told):
            status = "failed" if event.value is None else "told"
            outcome = {"value": _text(event.value), "noise": _text(event.noise)}
            yield {
                "status": status,
                **_design(space, event.number, event.x),
                **_context(space, event.context),
                **outcome,
            }
        elif isinstance(event, Late):
            yield {"status": "late", "id": str(event.number), **_context(space, event.context)}
        else:
            yield from _batch(space, event)
    for number, x in snapshot.state.pending.items():
        yield {"status": "pending", **_design(space, number, x)}


def _batch(space: Space, event: Seen) -> Iterator[Row]:
    batch, token = event.batch, event.order[3].rsplit(":", 1)[1]
    shared = {"batch": token, "count": str(batch.count) if batch.summary else ""}
    for row, weight in zip(batch.rows, batch.weights.tolist(), strict=True):
        yield {"status": "context", **_context(space, row[None]), "weight": _text(weight), **shared}


def _design(space: Space, number: int, x: Array) -> Row:
    (design,) = space.decode_designs(x)
    named = {heading: design[name] for heading, (role, name) in columns(space).items() if role == "design"}
    texts = {heading: _text(value) for heading, value in named.items()}
    return {"id": str(number), **texts, "coded": " ".join(map(repr, x.tolist()))}


def _context(space: Space, context: Array | None) -> Row:
    if context is None:
        return {}
    headings = [heading for heading, (role, _) in columns(space).items() if role == "context"]
    return dict(zip(headings, map(repr, context[0].tolist()), strict=True))


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else repr(value)


# -------------------------------------------------------------------- import


def import_csv(study: Study, path: Path) -> dict[str, int]:
    """Tell ``study`` every row of a table; gives how many rows of each status there were.

    The whole table is checked before the first row is told.
    """
    rows = list(_read_rows(study.space, path))
    counts: dict[str, int] = {}
    numbers: dict[str, int] = {}  # ids of the table → of the study
    clock = study.ledger.read().clock
    for group in _groups(rows):
        clock += 1
        counts[group[0].status] = counts.get(group[0].status, 0) + len(group)
        _take(study, clock, group, numbers)
    return counts


def _read_rows(space: Space, path: Path) -> Iterator[Parsed]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            known = columns(space)
            extra = [name for name in reader.fieldnames or [] if name not in known and name not in HEADINGS]
            if extra:
                raise StudyError(
                    f"{path.name}: {extra[0]!r} is no variable", f"the columns are {', '.join(known)}, value"
                )
            for line, row in enumerate(reader, start=2):
                try:
                    yield Parsed(space, row)
                except (StudyError, ValueError, TypeError) as problem:
                    message = getattr(problem, "message", "a cell is not a number")
                    raise StudyError(f"{path.name}, line {line}: {message}", getattr(problem, "hint", None)) from None
    except OSError as problem:
        raise StudyError(f"cannot read {path}: {problem.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise StudyError(f"{path} is not a CSV file in UTF-8") from None


class Parsed:
    """A row of a table, checked."""

    def __init__(self, space: Space, row: Mapping[str, str | None]) -> None:
        cells = {heading: text for heading, text in row.items() if heading is not None and text}
        known = columns(space)
        design = {name: cells[h] for h, (role, name) in known.items() if role == "design" and h in cells}
        context = {name: float(cells[h]) for h, (role, name) in known.items() if role == "context" and h in cells}
        self.context: Array | None = space.read_contexts(context) if context else None
        self.x = _read_design(space, design, cells.get("coded")) if design else None
        self.value = float(cells["value"]) if "value" in cells else None
        self.noise = float(cells["noise"]) if "noise" in cells else None
        self.weight = float(cells.get("weight", "1"))
        self.batch, self.count = cells.get("batch"), int(cells.get("count", "0"))
        self.id = cells.get("id", "")
        self.status = cells.get("status") or self._guess()
        self._check()

    def _guess(self) -> str:
        if self.value is not None:
            return "told"
        return "context" if self.x is None else "?"

    def _check(self) -> None:
        needs = {
            "told": self.x is not None and self.value is not None and np.isfinite(self.value),
            "failed": self.x is not None,
            "pending": self.x is not None,
            "context": self.context is not None,
            "late": self.context is not None and self.id,
        }
        if self.status not in needs:
            raise StudyError("a design without a value", "write its value, or failed or pending in a column `status`")
        if not needs[self.status]:
            raise StudyError(f"a cell is missing or not finite in a row that is {self.status}")


def _read_design(space: Space, texts: Mapping[str, str], coded: str | None) -> Array:
    design = {name: read_value(space, name, text) for name, text in texts.items()}
    x: Array = space.encode_designs(design)[0]
    if coded is not None:
        exact = np.array(coded.split(), dtype=np.float64)
        if exact.shape == x.shape and space.decode_designs(exact)[0] == space.decode_designs(x)[0]:
            return exact
    return x


def read_value(space: Space, name: str, text: str) -> Any:
    """The value of a design variable that was written as ``text``."""
    variable = space.design[name]
    if variable.kind == "categorical":
        choices = {_text(choice): choice for choice in variable.to_dict()["choices"]}
        return choices.get(text, text)
    return int(text) if variable.kind == "integer" and text.lstrip("+-").isdigit() else float(text)


def _groups(rows: Iterable[Parsed]) -> Iterator[list[Parsed]]:
    """Rows one by one, but contexts of one batch, and contexts without a batch in a row, together."""
    group: list[Parsed] = []
    for row in rows:
        if group and (row.status != "context" or row.batch != group[0].batch):
            yield group
            group = []
        if row.status == "context":
            group.append(row)
        else:
            yield [row]
    if group:
        yield group


def _take(study: Study, clock: int, group: list[Parsed], numbers: dict[str, int]) -> None:
    row = group[0]
    if row.status == "context":
        samples = np.concatenate([part.context for part in group if part.context is not None])
        weights = np.array([part.weight for part in group])
        if row.count:
            batch = ContextBatch(samples, weights, row.count, summary=True)
            study.ledger.add(CONTEXTS, {"clock": clock, "batch": ContextLog((batch,)).to_list()[0]})
        else:
            study.observe_context(samples, weights)
    elif row.status == "late" and row.context is not None:
        if row.id not in numbers:
            raise StudyError(f"a late row names {row.id!r}, which no earlier row has")
        study.ledger.add(LATE, {"clock": clock, "number": numbers[row.id], "context": row.context[0].tolist()})
    elif row.x is not None:
        record = None if row.status == "pending" else told_record(clock, row.context, row.value, row.noise)
        numbers[row.id] = study.ledger.create(row.x, record)


def read_contexts_csv(space: Space, path: Path) -> tuple[Array, Array | None]:
    """A table of contexts: rows (n × d_c) and, if there is a column ``weight``, weights (n)."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            headings = next(reader, [])
            check_names([name for name in headings if name != "weight"], space.context_names, "context", StudyError)
            rows = [row for row in reader if row]
    except OSError as problem:
        raise StudyError(f"cannot read {path}: {problem.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise StudyError(f"{path} is not a CSV file in UTF-8") from None
    try:
        table = np.array(rows, dtype=np.float64).reshape(len(rows), len(headings))
    except ValueError:
        raise StudyError(f"{path}: a cell is missing or not a number", "every row needs a number per column") from None
    order = [headings.index(name) for name in space.context_names]
    return table[:, order], table[:, headings.index("weight")] if "weight" in headings else None
