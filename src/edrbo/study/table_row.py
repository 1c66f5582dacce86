"""One row of a table: its texts as numbers, designs and contexts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import EdrboError, StudyError
from edrbo.records.settings import Settings
from edrbo.space import Space
from edrbo.study.columns import Columns
from edrbo.study.number_text import Point, read_number, read_setting
from edrbo.study.sheet import Row, Sheet
from edrbo.study.times import read_time

Array = NDArray[np.float64]

STATUSES = {
    **{word: "told" for word in ("told", "ok", "done", "complete")},
    **{word: "failed" for word in ("failed", "fail", "failure")},
    **{word: "pending" for word in ("pending", "open", "waiting")},
    **{word: "cancelled" for word in ("cancelled", "canceled")},
    **{word: "left out" for word in ("left out", "dropped", "excluded")},
    "failed, left out": "failed, left out",
    "context": "context",
    "late": "late",
    "row": "row",
}


@dataclass(frozen=True, eq=False)
class Parsed:
    """What a row says; ``x`` coded (d_x), ``context`` in the user's units (d_c)."""

    line: int
    status: str
    id: str
    x: Array | None
    context: Array | None
    value: float | None
    noise: float | None
    others: dict[str, float]
    others_noise: dict[str, float]
    weight: float
    cost: float | None
    batch: str | None
    count: int
    why: str | None
    stamp: dict[str, Any]


def parse_row(sheet: Sheet, columns: Columns, space: Space, row: Row) -> Parsed:
    """StudyError names the cell of what cannot be read."""
    reader = _Reader(sheet, columns, space, row)
    design, context = reader.design(), reader.context()
    x = None if not design else reader.coded(design)
    value, others = reader.number("value"), reader.numbers("outcome")
    status = reader.status(design=x is not None, value=value is not None or bool(others))
    parsed = Parsed(
        line=row.line,
        status=status,
        id=reader.ours.get("id", ""),
        x=x,
        context=context,
        value=value,
        noise=reader.number("noise"),
        others=others,
        others_noise=reader.numbers("noise"),
        weight=1.0 if (weight := reader.number("weight")) is None else weight,
        cost=reader.number("run_cost"),
        batch=reader.ours.get("batch"),
        count=int(reader.number("count") or 0),
        why=reader.ours.get("why"),
        stamp=reader.stamp(),
    )
    _check(sheet, parsed)
    return parsed


def parse_design(sheet: Sheet, columns: Columns, space: Space, row: Row) -> dict[str, Any]:
    """The design of a row by name, whatever else stands there; empty if there is none."""
    return _Reader(sheet, columns, space, row).design()


def parse_outcome(sheet: Sheet, columns: Columns, settings: Settings, row: Row) -> tuple[Array | None, Any, Any]:
    """Context (d_c), value and noise of a row, whatever else stands there; of several outcomes by name."""
    reader = _Reader(sheet, columns, settings.space, row)
    value, noise = reader.number("value"), reader.number("noise")
    if settings.outcomes is not None:
        main = settings.outcomes.main
        told = {**({} if value is None else {main: value}), **reader.numbers("outcome")}
        return reader.context(), told, {**({} if noise is None else {main: noise}), **reader.numbers("noise")}
    if value is None:
        raise StudyError(f"{sheet.file}, row {row.line}: there is no value", "every row needs one")
    return reader.context(), value, noise


class _Reader:
    def __init__(self, sheet: Sheet, columns: Columns, space: Space, row: Row) -> None:
        self._sheet, self._columns, self._space, self._row = sheet, columns, space, row
        self.ours: dict[str, str] = {}
        self._headings: dict[tuple[str, str], str] = {}
        for heading, text in row.cells.items():
            role, name = columns.meaning[heading]
            self._headings[role, name] = heading
            if role == "":
                self.ours[name] = text

    def _wrong(self, kind: tuple[str, str], text: str, why: str, hint: str | None = None) -> StudyError:
        place = self._sheet.place(self._row.line, self._headings[kind])
        return StudyError(f"{place}: {text!r} is {why}", hint)

    def _texts(self, role: str) -> dict[str, str]:
        return {name: self._row.cells[h] for (kind, name), h in self._headings.items() if kind == role}

    @contextmanager
    def _at(self, role: str, name: str, text: str) -> Iterator[None]:
        """What is wrong with the ``text`` of a variable is said with the place of its cell."""
        try:
            yield
        except EdrboError as problem:
            raise self._wrong((role, name), text, f"no value of {name}: {problem.message}", problem.hint) from None
        except ValueError as problem:
            raise self._wrong((role, name), text, str(problem), "write a number") from None

    def design(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, text in self._texts("design").items():
            variable = self._space.design[name]
            with self._at("design", name, text):
                found[name] = read_setting(text, variable, self._point(text))
                variable.encode(name, np.array([found[name]], dtype=object))
        if found:  # a table from before a variable came
            found |= {k: v.default for k, v in self._space.design.items() if k not in found and v.default is not None}
        missing = [name for name in self._space.design_names if found and name not in found]
        if missing:
            raise StudyError(
                f"{self._sheet.file}, row {self._row.line}: {missing[0]} is missing", "a run needs them all"
            )
        return {name: found[name] for name in self._space.design_names} if found else {}

    def context(self) -> Array | None:
        found: dict[str, float] = {}
        for name, text in self._texts("context").items():
            with self._at("context", name, text):
                value = read_setting(text, self._space.context[name], self._point(text))
                found |= self._space.context_numbers({name: value})
        return np.array([found.get(name, np.nan) for name in self._space.context_names]) if found else None

    def coded(self, design: Mapping[str, Any]) -> Array:
        """The design (d_x), exactly if the table says it exactly and was not edited."""
        x: Array = self._space.encode_designs(dict(design))[0]
        text = self.ours.get("coded")
        if text is not None:
            try:
                exact = np.array(text.split(), dtype=np.float64)
            except ValueError:
                return x
            if exact.shape == x.shape and np.isfinite(exact).all() and ((exact >= 0) & (exact <= 1)).all():
                return exact if self._space.decode_designs(exact)[0] == self._space.decode_designs(x)[0] else x
        return x

    def number(self, name: str) -> float | None:
        return self._number(("", name), self.ours[name]) if name in self.ours else None

    def numbers(self, role: str) -> dict[str, float]:
        """By name, of the cells that are filled."""
        return {name: self._number((role, name), text) for name, text in self._texts(role).items()}

    def _number(self, kind: tuple[str, str], text: str) -> float:
        try:
            number = read_number(text, None, self._point(text))
        except ValueError as problem:
            raise self._wrong(kind, text, str(problem), "write a number") from None
        if not math.isfinite(number):
            raise self._wrong(kind, text, "not a finite number")
        return number

    def _point(self, text: str) -> Point | None:
        """In a table with a decimal comma, a point too may be one: exports have it."""
        return "," if self._sheet.point == "," and "," in text else None

    def status(self, *, design: bool, value: bool) -> str:
        text = self.ours.get("status")
        if text is None:
            if not design:
                return "context"
            if not value:
                hint = "write its value, or failed or pending in a column `status`"
                raise StudyError(f"{self._sheet.file}, row {self._row.line}: a design without a value", hint)
            return "told"
        status = STATUSES.get(text.casefold())
        if status is None:
            known = "told, failed, pending, cancelled, left out or context"
            raise self._wrong(("", "status"), text, "no status", f"write {known}")
        return "told" if status == "pending" and value else status

    def stamp(self) -> dict[str, Any]:
        """Note, by and at; columns that are nobody's are added to the note."""
        extra = [
            f"{heading}: {self._row.cells[heading]}" for heading in self._columns.noted if heading in self._row.cells
        ]
        note = "; ".join([*filter(None, [self.ours.get("note")]), *extra])
        at = None
        if "at" in self.ours:
            try:
                at = read_time(self.ours["at"])
            except ValueError as problem:
                raise self._wrong(("", "at"), self.ours["at"], str(problem), "write it as 2026-03-14 15:30") from None
        return {"note": note or None, "by": self.ours.get("by"), "at": at}


def _check(sheet: Sheet, row: Parsed) -> None:
    ran = row.x is not None
    told = ran and (row.value is not None or bool(row.others))
    needs = {
        "told": told,
        "left out": told,
        "failed": ran,
        "failed, left out": ran,
        "pending": ran,
        "cancelled": ran,
        "context": row.context is not None,
        "late": row.context is not None and bool(row.id),
        "row": row.value is not None or bool(row.others),
    }
    if not needs[row.status]:
        raise StudyError(f"{sheet.file}, row {row.line}: a cell is missing in a row that is {row.status}")
