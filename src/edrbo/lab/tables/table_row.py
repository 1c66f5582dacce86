"""Rows of a table: what its columns are (variables, words of ours, notes), and its texts as numbers, designs and
contexts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import EdrboError, InvalidContextError, InvalidDesignError, InvalidValueError, StudyError
from edrbo.lab.entry import NotANumberError, Point, read_number, read_time, read_variable_value
from edrbo.lab.tables.csv_export import HEADINGS, columns, outcome_columns
from edrbo.lab.tables.sheet import Sheet, SheetRow
from edrbo.records.settings import Settings
from edrbo.space import Space
from edrbo.space.variables import Variable

NOTED, UNREAD = "+", "-"  # of a column that is nobody's: its cells are added to the note, or passed over

ALIASES = {
    "id": ("run", "nr", "no", "number", "#"),
    "value": ("outcome", "result", "y"),
    "by": ("operator", "who", "user"),
    "at": ("date", "time", "datetime", "timestamp", "when", "datum", "zeit"),
    "note": ("notes", "comment", "comments", "remark", "remarks", "bemerkung"),
    "why": ("reason",),
    "status": ("state",),
    "control": ("reference", "control_value"),
    "run_cost": ("cost", "kosten"),
    "noise_variance": ("noise",),  # as version 0.2 named it
}


@dataclass(frozen=True)
class Columns:
    """``meaning``: heading → (role, name) with role design, context, outcome and noise (of those besides the main one),
    "" for a word of ours, note, or unread."""

    meaning: dict[str, tuple[str, str]]

    @property
    def noted(self) -> tuple[str, ...]:
        return tuple(heading for heading, (role, _) in self.meaning.items() if role == "note")


def match_columns(
    sheet: Sheet, settings: Settings | None, space: Space | None = None, chosen: Mapping[str, str] | None = None
) -> Columns:
    """Exact names first, then those that differ by capitals, spaces and units, then other words for ours.

    ``chosen`` says of some headings what their columns hold: one of ``targets``, or ``UNREAD`` for nothing.
    """
    known = settings.space if settings is not None else space
    assert known is not None
    exact = {heading: ("", heading) for heading in HEADINGS} | columns(known)
    exact |= {} if settings is None else outcome_columns(settings)
    loose = _loose(known, settings)
    meaning: dict[str, tuple[str, str]] = {}
    for heading in sheet.headings:
        meaning[heading] = exact.get(heading) or loose.get(_simple(heading)) or ("note", heading)
    exactly = {meaning[heading] for heading in sheet.headings if heading in exact}
    for heading in sheet.headings:
        other_word = heading not in exact and meaning[heading][0] == ""
        if other_word and meaning[heading] in exactly:  # date beside at: a note
            meaning[heading] = ("note", heading)
    for heading, target in (chosen or {}).items():
        if heading in meaning and target in (*exact, NOTED, UNREAD):
            meaning[heading] = exact.get(target) or ("note" if target == NOTED else "unread", heading)
    _check_once(sheet, meaning)
    return Columns(meaning)


def targets(settings: Settings) -> list[str]:
    """What a column can hold, as exports write their headings."""
    return [*columns(settings.space), "value", *outcome_columns(settings), *(h for h in HEADINGS if h != "value")]


def target_of(settings: Settings, kind: tuple[str, str]) -> str:
    """The one of ``targets`` that a column was taken for; ``NOTED`` or ``UNREAD``."""
    known = {("", heading): heading for heading in HEADINGS}
    known |= {kind: heading for heading, kind in (columns(settings.space) | outcome_columns(settings)).items()}
    return known.get(kind, UNREAD if kind[0] == "unread" else NOTED)


def _loose(space: Space, settings: Settings | None) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for ours, words in ALIASES.items():
        found |= {_simple(word): ("", ours) for word in words}
    found |= {_simple(heading): ("", heading) for heading in HEADINGS}
    if settings is not None:
        found[_simple(settings.outcome)] = ("", "value")
        found |= {_simple(heading): kind for heading, kind in outcome_columns(settings).items()}
    names = [("design", name) for name in space.design_names] + [("context", name) for name in space.context_names]
    simple = [_simple(name) for _, name in names]
    # Two variables that differ only by capitals must be written exactly.
    found |= {text: pair for text, pair in zip(simple, names, strict=True) if text and simple.count(text) == 1}
    return found


def _simple(heading: str) -> str:
    """Without capitals, spaces, and a unit in brackets at the end."""
    bare = re.sub(r"\s*[\[(][^\])]*[\])]\s*$", "", heading)
    return re.sub(r"[\s_\-.\x00-\x1f\ufffd]+", "", bare or heading).casefold()


def _check_once(sheet: Sheet, meaning: dict[str, tuple[str, str]]) -> None:
    seen: dict[tuple[str, str], str] = {}
    for heading, kind in meaning.items():
        if kind in seen and kind[0] not in ("note", "unread"):
            raise StudyError(
                f"{sheet.file}: the columns {seen[kind]!r} and {heading!r} both are {kind[1]}", "delete or rename one"
            )
        seen[kind] = heading


Array = NDArray[np.float64]

TOTALS = (
    "total",
    "sum",
    "average",
    "mean",
    "median",
    "min",
    "max",
    "sd",
    "summe",
    "mittel",
    "mittelwert",
    "durchschnitt",
)
WIDEN = "correct it, or amend the study"
STATUSES = {
    "told": "reported",  # as version 0.2 said it
    **{word: "reported" for word in ("reported", "ok", "done", "complete", "result")},
    **{word: "failed" for word in ("failed", "fail", "failure", "failed, no result")},
    **{word: "pending" for word in ("pending", "open", "waiting", "being tried")},
    **{word: "cancelled" for word in ("cancelled", "canceled", "not tried")},
    **{word: "left out" for word in ("left out", "dropped", "excluded", "result, left out")},
    "failed, left out": "failed, left out",
    "failed, no result, left out": "failed, left out",
    "context": "context",
    "conditions only": "context",
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
    noise_variance: float | None
    others: dict[str, float]
    others_noise_variance: dict[str, float]
    weight: float
    control: float | None
    cost: float | None
    batch: str | None
    count: int
    why: str | None
    stamp: dict[str, Any]


@dataclass(frozen=True, eq=False)
class WrongCell:
    """What is wrong with a row of a table, or with the cell under ``heading``; ``problem`` says it with the place."""

    line: int
    heading: str | None
    reason: str
    problem: EdrboError


class RowError(Exception):
    """A row cannot be read; ``cells`` say why, one at least."""

    def __init__(self, *cells: WrongCell) -> None:
        super().__init__(*cells)
        self.cells = cells


def wrong_row(sheet: Sheet, line: int, problem: EdrboError) -> WrongCell:
    """Of a row as a whole."""
    named = type(problem)(f"{sheet.place(line)}: {problem.message}", problem.hint)
    return WrongCell(line, None, problem.message, named)


class RowReader:
    """Reads the rows of one table for a space; of a study, results are in the units of its ``settings``."""

    def __init__(self, sheet: Sheet, columns: Columns, space: Space, settings: Settings | None = None) -> None:
        self._sheet, self._columns, self._space = sheet, columns, space
        self._design, self._context = space.design, space.context
        self._defaults = {name: v.default for name, v in self._design.items() if v.default is not None}
        self._outcome = "value" if settings is None else settings.outcome
        self._units = {} if settings is None else {"value": settings.unit}
        if settings is not None and settings.outcomes is not None:
            self._units |= {name: part.unit for name, part in settings.outcomes.items()}
        self._headings = {kind: heading for heading, kind in columns.meaning.items()}

    def parse(self, row: SheetRow) -> Parsed:
        """What a row says; RowError where it cannot be read."""
        reader = _Row(self, row)
        design, context = reader.design(), reader.context()
        value, others = reader.number("value"), reader.numbers("outcome")
        noise_variance, others_noise_variance = reader.number("noise_variance"), reader.numbers("noise_variance")
        weight, cost, count, control = (reader.number(name) for name in ("weight", "run_cost", "count", "control"))
        stamp = reader.stamp()
        reader.check()
        x = None if not design else reader.coded(design)
        status = reader.status(design=x is not None, value=value is not None or bool(others))
        parsed = Parsed(
            line=row.line,
            status=status,
            id=reader.ours.get("id", ""),
            x=x,
            context=context,
            value=value,
            noise_variance=noise_variance,
            others=others,
            others_noise_variance=others_noise_variance,
            weight=1.0 if weight is None else weight,
            control=control,
            cost=cost,
            batch=reader.ours.get("batch"),
            count=int(count or 0),
            why=reader.ours.get("why"),
            stamp=stamp,
        )
        _check(self._sheet, parsed)
        return parsed

    def design(self, row: SheetRow) -> dict[str, Any]:
        """The design of a row by name, whatever else stands there; empty if there is none."""
        reader = _Row(self, row)
        design = reader.design()
        reader.check()
        return design

    def outcome(self, settings: Settings, row: SheetRow) -> tuple[Array | None, Any, Any]:
        """Context (d_c), value and noise of a row, whatever else stands there; of several outcomes by name."""
        reader = _Row(self, row)
        value, noise_variance = reader.number("value"), reader.number("noise_variance")
        context, others, variances = reader.context(), reader.numbers("outcome"), reader.numbers("noise_variance")
        reader.check()
        if settings.outcomes is not None:
            main = settings.outcomes.main
            reported = {**({} if value is None else {main: value}), **others}
            return context, reported, {**({} if noise_variance is None else {main: noise_variance}), **variances}
        if value is None:
            raise RowError(reader.wrong(InvalidValueError, None, "there is no value", "every row needs one"))
        return context, value, noise_variance


class _Row:
    def __init__(self, table: RowReader, row: SheetRow) -> None:
        self._table, self._row = table, row
        self._texts: dict[str, dict[str, str]] = {
            "design": {},
            "context": {},
            "outcome": {},
            "noise_variance": {},
            "": {},
        }
        for heading, text in row.cells.items():
            role, name = table._columns.meaning[heading]
            if role in self._texts:
                self._texts[role][name] = text
        self.ours = self._texts[""]
        self._wrong: list[WrongCell] = []

    def wrong(
        self, kind: type[EdrboError], cell: tuple[str, str] | None, why: str, hint: str | None = None
    ) -> WrongCell:
        heading = None if cell is None else self._table._headings[cell]
        text = why if heading is None else f"{self._row.cells[heading]!r} is {why}"
        place = self._table._sheet.place(self._row.line, heading)
        return WrongCell(self._row.line, heading, text, kind(f"{place}: {text}", hint))

    def check(self) -> None:
        """Raise what was found wrong so far."""
        if self._wrong:
            raise RowError(*self._wrong)

    def _values(self, role: str, variables: Mapping[str, Variable]) -> dict[str, Any]:
        """Values by name; what is wrong with a cell is kept for ``check``."""
        error, found = InvalidDesignError if role == "design" else InvalidContextError, dict[str, Any]()
        for name, text in self._texts[role].items():
            try:
                value = read_variable_value(text, variables[name], self._point(text))
                if role == "design":
                    variables[name].encode(name, np.array([value], dtype=object))
                    found[name] = value
                else:
                    found |= self._table._space.context_numbers({name: value})
            except NotANumberError as problem:
                self._wrong.append(self.wrong(error, (role, name), str(problem), problem.hint))
            except EdrboError as problem:
                why = f"no value of {name}, which is {variables[name].describe()}"
                hint = problem.hint if problem.hint and problem.hint.startswith("did you mean") else WIDEN
                self._wrong.append(self.wrong(type(problem), (role, name), why, hint))
        return found

    def design(self) -> dict[str, Any]:
        variables, found = self._table._design, self._values("design", self._table._design)
        if found:  # a table from before a variable came
            found = {**self._table._defaults, **found}
        missing = [name for name in variables if name not in found and name not in self._texts["design"]]
        if found and missing:
            self._wrong.append(self.wrong(InvalidDesignError, None, *self._missing("design", missing[0])))
        return {name: found[name] for name in variables if name in found}

    def _missing(self, role: str, name: str) -> tuple[str, str]:
        """Why a setting is not there, and what to do."""
        if (role, name) in self._table._headings:
            return f"{name} is missing", "fill it in: a run needs all of its settings"
        return f"no column is called {name}", f"there are {', '.join(self._table._sheet.headings)}: rename one"

    def _no_result(self) -> tuple[str, str]:
        if any(role == "outcome" or (role, name) == ("", "value") for role, name in self._table._headings):
            return "there is no result", "write it; or failed, or pending, in a column status"
        headings = ", ".join(self._table._sheet.headings)
        return f"no column is called {self._table._outcome}", f"there are {headings}: rename the one with the results"

    def context(self) -> Array | None:
        variables = self._table._context
        found = self._values("context", variables)
        return np.array([found.get(name, np.nan) for name in variables]) if found else None

    def coded(self, design: Mapping[str, Any]) -> Array:
        """The design (d_x), exactly if the table says it exactly and was not edited."""
        space = self._table._space
        x: Array = space.encode_designs(dict(design))[0]
        text = self.ours.get("coded")
        if text is not None:
            try:
                exact = np.array(text.split(), dtype=np.float64)
            except ValueError:
                return x
            if exact.shape == x.shape and np.isfinite(exact).all() and ((exact >= 0) & (exact <= 1)).all():
                return exact if space.decode_designs(exact)[0] == space.decode_designs(x)[0] else x
        return x

    def number(self, name: str) -> float | None:
        """What stands under one of our words; a result is in its unit."""
        return self._number(("", name), self.ours[name]) if name in self.ours else None

    def numbers(self, role: str) -> dict[str, float]:
        """By name, of the cells that are filled."""
        named = {name: self._number((role, name), text) for name, text in self._texts[role].items()}
        return {name: number for name, number in named.items() if number is not None}

    def _number(self, cell: tuple[str, str], text: str) -> float | None:
        role, name = cell
        measured = role == "outcome" or name in ("value", "control")
        unit = self._table._units.get("value" if name == "control" else name, "") if measured else ""
        try:
            return read_number(text, unit, percent=measured, point=self._point(text))
        except NotANumberError as problem:
            self._wrong.append(self.wrong(InvalidValueError, cell, str(problem), problem.hint))
            return None

    def _point(self, text: str) -> Point | None:
        """In a table with a decimal comma, a point too may be one: exports have it."""
        return "," if self._table._sheet.point == "," and "," in text else None

    def status(self, *, design: bool, value: bool) -> str:
        text = self.ours.get("status")
        if text is None:
            if not design:
                return "context"
            if not value:
                raise RowError(self.wrong(InvalidValueError, None, *self._no_result()))
            return "reported"
        status = STATUSES.get(text.casefold())
        if status is None:
            known = "reported, failed, pending, cancelled, left out or context"
            raise RowError(self.wrong(InvalidValueError, ("", "status"), "no status", f"write {known}"))
        return "reported" if status == "pending" and value else status

    def stamp(self) -> dict[str, Any]:
        """Note, by and at; columns that are nobody's are added to the note."""
        cells = self._row.cells
        extra = [f"{heading}: {cells[heading]}" for heading in self._table._columns.noted if heading in cells]
        note = "; ".join([*filter(None, [self.ours.get("note")]), *extra])
        at = None
        if "at" in self.ours:
            try:
                at = read_time(self.ours["at"])
            except ValueError as problem:
                total = self.ours["at"].strip().rstrip(":").casefold() in TOTALS
                hint = "this looks like a total: delete the row" if total else "write it as 2026-03-14 15:30"
                self._wrong.append(self.wrong(InvalidValueError, ("", "at"), str(problem), hint))
        return {"note": note or None, "by": self.ours.get("by"), "at": at}


def _check(sheet: Sheet, row: Parsed) -> None:
    ran = row.x is not None
    reported = ran and (row.value is not None or bool(row.others))
    needs = {
        "reported": reported,
        "left out": reported,
        "failed": ran,
        "failed, left out": ran,
        "pending": ran,
        "cancelled": ran,
        "context": row.context is not None,
        "late": row.context is not None and bool(row.id),
        "row": row.value is not None or bool(row.others),
    }
    if not needs[row.status]:
        raise RowError(
            wrong_row(sheet, row.line, InvalidValueError(f"a cell is missing in a row that is {row.status}"))
        )
