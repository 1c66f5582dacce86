"""Tables into a study: every row is read, checked and applied to a copy of the state before the first is written."""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import EdrboError, StudyError
from edrbo.records import events as e
from edrbo.records.recorder import read_one_context
from edrbo.records.reducer import undone
from edrbo.records.state import State
from edrbo.space import Space
from edrbo.study.csv_file import HEADINGS, columns
from edrbo.study.study import Study
from edrbo.study.times import read_time

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Import:
    """What a table comes to: events in order, rows of each status, and how many rows were known already."""

    events: tuple[e.Event, ...]
    counts: Mapping[str, int]
    known: int


def import_csv(study: Study, path: Path, *, again: bool = False) -> Import:
    """Tell ``study`` every row of a table, or none if one cannot be; rows that it knows already are passed over.

    ``again`` takes those too.
    """
    plan = read_table(study.state, path, again=again)
    study.take(plan.events)
    return plan


def read_table(state: State, path: Path, *, again: bool = False) -> Import:
    """The events of a table for ``state``, all of them checked; nothing is written."""
    rows = list(_read_rows(state.space, path))
    known = Counter() if again else Counter(_fingerprints(state))
    events: list[e.Event] = []
    counts: Counter[str] = Counter()
    old, numbers = 0, dict[str, int]()  # ids of the table → of the study
    after = state
    for group in _groups(rows):
        for event in _events(after, group, numbers):
            mark = fingerprint(event)
            if known[mark] > 0 and not isinstance(event, e.Asked | e.Cancelled):
                known[mark] -= 1
                old += len(group)
                break
            try:
                after = after.apply(replace(event, ref=f"row {group[0].line}"))
            except EdrboError as problem:
                raise StudyError(f"{path.name}, line {group[0].line}: {problem.message}", problem.hint) from None
            events.append(event)
        else:
            counts[group[0].status] += len(group)
    return Import(tuple(events), dict(counts), old)


def fingerprint(event: e.Event) -> str:
    """What an outcome, a failure or a batch of contexts says, without its number and who said it when."""
    passing = ("id", "ref", "by", "at", "note", "key", "why", "version")
    body = {k: v for k, v in event.to_dict().items() if k not in passing}
    return hashlib.sha256(repr(sorted(body.items())).encode()).hexdigest()


def _fingerprints(state: State) -> Iterator[str]:
    """Of everything that was told, as it was told, whatever was corrected since."""
    gone = undone(state.history)
    designs: dict[int, Array] = {}
    for event in state.history:
        if event.ref in gone:
            continue
        if isinstance(event, e.Asked):
            designs[event.id] = event.x
        if isinstance(event, e.Told | e.Failed):
            x = designs.get(event.id) if event.x is None else event.x
            yield fingerprint(replace(event, x=x))
        if isinstance(event, e.Seen):
            yield fingerprint(event)


# -------------------------------------------------------------------- rows


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
                    yield Parsed(space, row, line)
                except EdrboError as problem:
                    raise StudyError(f"{path.name}, line {line}: {problem.message}", problem.hint) from None
                except (ValueError, TypeError, OverflowError):
                    raise StudyError(f"{path.name}, line {line}: a cell is not a number") from None
    except OSError as problem:
        raise StudyError(f"cannot read {path}: {problem.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise StudyError(f"{path} is not a CSV file in UTF-8") from None


class Parsed:
    """A row of a table."""

    def __init__(self, space: Space, row: Mapping[str, Any], line: int) -> None:
        cells = {heading: text for heading, text in row.items() if isinstance(heading, str) and text}
        known = columns(space)
        self.line = line
        design = {name: cells[h] for h, (role, name) in known.items() if role == "design" and h in cells}
        context = {name: float(cells[h]) for h, (role, name) in known.items() if role == "context" and h in cells}
        self.context = read_one_context(space, context) if context else None
        self.x = _read_design(space, design, cells.get("coded")) if design else None
        self.value = float(cells["value"]) if "value" in cells else None
        self.noise = float(cells["noise"]) if "noise" in cells else None
        self.weight = float(cells.get("weight", "1"))
        self.batch, self.count = cells.get("batch"), int(cells.get("count", "0"))
        self.id, self.why = cells.get("id", ""), cells.get("why")
        self.stamp: dict[str, Any] = {name: cells.get(name) for name in ("note", "by")}
        self.stamp["at"] = read_time(cells["at"]) if "at" in cells else None
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
            "cancelled": self.x is not None,
            "context": self.context is not None,
            "late": self.context is not None and self.id,
        }
        needs["dropped"] = needs["told"]
        if self.status not in needs:
            raise StudyError("a design without a value", "write its value, or failed or pending in a column `status`")
        if not needs[self.status]:
            raise StudyError(f"a cell is missing or not finite in a row that is {self.status}")


def _read_design(space: Space, texts: Mapping[str, str], coded: str | None) -> Array:
    design = {name: read_value(space, name, text) for name, text in texts.items()}
    x: Array = space.encode_designs(design)[0]
    if coded is not None:
        exact = np.array(coded.split(), dtype=np.float64)
        if exact.shape == x.shape and np.isfinite(exact).all() and ((exact >= 0) & (exact <= 1)).all():
            return exact if space.decode_designs(exact)[0] == space.decode_designs(x)[0] else x
    return x


def read_value(space: Space, name: str, text: str) -> Any:
    """The value of a design variable that was written as ``text``."""
    variable = space.design[name]
    if variable.kind == "categorical":
        choices = {_text(choice): choice for choice in variable.to_dict()["choices"]}
        return choices.get(text, text)
    return int(text) if variable.kind == "integer" and text.lstrip("+-").isdigit() else float(text)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


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


def _events(state: State, group: list[Parsed], numbers: dict[str, int]) -> Iterator[e.Event]:
    """What rows say of ``state``; ``numbers`` learns the ids of new runs."""
    row, version = group[0], state.version
    if row.status == "context":
        rows = np.stack([part.context for part in group if part.context is not None])
        weights = np.array([part.weight for part in group])
        count = row.count or len(group)
        yield e.Seen(rows=rows, weights=weights, count=count, summary=bool(row.count), version=version, **row.stamp)
        return
    if row.status == "late":
        if row.id not in numbers:
            raise StudyError(f"line {row.line}: a late row names {row.id!r}, which no earlier row has")
        assert row.context is not None
        yield e.ContextTold(id=numbers[row.id], context=row.context, version=version)
        return
    assert row.x is not None
    key = numbers[row.id] = _number(state, row)
    common: dict[str, Any] = {"id": key, "x": row.x, "version": version, **row.stamp}
    if row.status in ("pending", "cancelled"):
        yield e.Asked(**common)
        if row.status == "cancelled":
            yield e.Cancelled(id=key, why=row.why)
    elif row.status == "failed":
        yield e.Failed(context=row.context, why=row.why, **common)
    else:
        assert row.value is not None
        yield e.Told(context=row.context, value=row.value, noise=row.noise, **common)
        if row.status == "dropped":
            yield e.Dropped(id=key, why=row.why)


def _number(state: State, row: Parsed) -> int:
    """The pending suggestion that the row names and whose design it has, or a number of its own."""
    if row.id.isascii() and row.id.isdigit() and row.status != "pending":
        run = state.runs.get(int(row.id))
        if run is not None and run.status == "pending" and row.x is not None:
            names = state.space.decode_designs(np.stack([run.x, row.x]))
            if names[0] == names[1]:
                return run.id
    return state.next_id
