"""A table that somebody pasted: how it is understood, with errors by cell, before anything is stored."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from edrbo.errors import EdrboError, StudyError
from edrbo.records.state import State
from edrbo.space import Categorical
from edrbo.study.csv_file import HEADINGS, columns
from edrbo.study.csv_import import Import, read_table
from edrbo.web import bodies
from edrbo.web.desk import Desk
from edrbo.web.numbers import read_number
from edrbo.web.variables import read_context_value, read_design_value

MOST_ROWS = 20_000
SHOWN = 50
IGNORE = "-"


@dataclass(frozen=True)
class Preview:
    """``mapping`` says what each column is taken for; ``errors`` are (row, column, words), both from 0."""

    headings: list[str]
    rows: list[list[str]]
    mapping: list[str]
    targets: list[str]
    errors: list[tuple[int, int, str]]
    plan: Import | None
    problem: str

    def view(self) -> dict[str, Any]:
        return {
            "headings": self.headings,
            "mapping": self.mapping,
            "targets": self.targets,
            "rows": self.rows[:SHOWN],
            "total": len(self.rows),
            "errors": [{"row": row, "column": column, "words": words} for row, column, words in self.errors[:200]],
            "problem": self.problem,
            "counts": {} if self.plan is None else dict(self.plan.counts),
            "known": 0 if self.plan is None else self.plan.known,
            "ready": self.plan is not None and bool(self.plan.events),
        }


def preview(state: State, text: str, chosen: Mapping[str, str]) -> Preview:
    """Read ``text``; ``chosen`` says what the column of a number ("0", "1", …) holds."""
    headings, rows = _cells(text)
    targets = [*columns(state.space), *HEADINGS]
    names = {_plain(name): name for name in reversed(targets)}
    names.setdefault(_plain(state.settings.outcome), "value")
    mapping = [_target(chosen.get(str(k), ""), heading, targets, names) for k, heading in enumerate(headings)]
    errors, clean = _check(state, rows, mapping)
    twice = [name for name in mapping if name != IGNORE and mapping.count(name) > 1]
    problem = f"two columns are taken for {twice[0]}" if twice else ""
    plan = None
    if not errors and not problem:
        try:
            plan = _plan(state, mapping, clean)
        except EdrboError as trouble:
            problem = f"{trouble.message}" + (f" ({trouble.hint})" if trouble.hint else "")
    return Preview(headings, rows, mapping, targets, errors, plan, problem)


def take(desk: Desk, body: bodies.Import) -> dict[str, Any]:
    """Store a table that has no errors. Sent again, its rows are known and stored once."""
    with desk.importing:
        found = preview(desk.state, body.text, body.columns)
        if found.plan is None:
            raise StudyError(found.problem or "some cells cannot be read", "nothing was stored")
        if not found.plan.events and not found.plan.known:
            raise StudyError("nothing in this table is understood", "say what its columns hold")

        def make(state: State) -> list[Any]:
            nonlocal found
            if found.plan is None or found.plan.seen != len(state.history):
                found = preview(state, body.text, body.columns)
            if found.plan is None:
                raise StudyError(found.problem or "some cells cannot be read", "nothing was stored")
            return _stamped(found.plan, body)

        desk.study.record_all(make)
        return {**found.view(), "stored": True, "words": _words(found.plan), "observations": len(desk.state.told)}


def _stamped(plan: Import, body: bodies.Import) -> list[Any]:
    return [
        replace(event, by=event.by or body.by or None, note=event.note or body.note or None, key=f"{body.key}-{k}")
        for k, event in enumerate(plan.events)
    ]


def _words(plan: Import) -> str:
    parts = [f"{count} {status}" for status, count in plan.counts.items()]
    return ", ".join(parts + [f"{plan.known} known already"] * (plan.known > 0)) or "the table is empty"


# -------------------------------------------------------------------- cells


def _cells(text: str) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of text from a spreadsheet or a file: tabs, semicolons or commas between the cells."""
    clean = text.lstrip("\ufeff").strip("\r\n")
    first = clean.splitlines()[0] if clean else ""
    mark = next((mark for mark in ("\t", ";") if mark in first), ",")
    try:
        table = [row for row in csv.reader(io.StringIO(clean), delimiter=mark) if any(cell.strip() for cell in row)]
    except csv.Error as problem:
        raise StudyError(f"this is not a table: {problem}", "paste cells with their headings") from None
    if len(table) < 2:
        raise StudyError("there are no rows below the headings", "paste the headings and at least one row")
    if len(table) > MOST_ROWS:
        raise StudyError(f"the table has {len(table)} rows", f"at most {MOST_ROWS} at once")
    width = len(table[0])
    rows = [[cell.strip() for cell in row[:width]] + [""] * (width - len(row)) for row in table[1:]]
    return [cell.strip() for cell in table[0]], rows


def _target(chosen: str, heading: str, targets: list[str], names: Mapping[str, str]) -> str:
    """What was ``chosen`` for a column, else what its heading says; ``names`` are targets by their plain heading."""
    if chosen in targets or chosen == IGNORE:
        return chosen
    return names.get(_plain(heading), IGNORE)


def _plain(heading: str) -> str:
    """Without case, spaces and a unit in brackets: "Speed (m/min)" is speed."""
    return "".join(heading.split("(")[0].split("[")[0].lower().replace("_", " ").split())


def _check(
    state: State, rows: list[list[str]], mapping: list[str]
) -> tuple[list[tuple[int, int, str]], list[list[str]]]:
    """Errors by cell, and the cells as ``read_table`` wants them."""
    known, errors, clean = columns(state.space), list[tuple[int, int, str]](), []
    for row, cells in enumerate(rows):
        done = []
        for column, (target, cell) in enumerate(zip(mapping, cells, strict=True)):
            try:
                done.append(_cell(state, known, target, cell))
            except EdrboError as problem:
                errors.append((row, column, "; ".join(filter(None, (problem.message, problem.hint)))))
                done.append(cell)
        clean.append(done)
    return errors, clean


def _cell(state: State, known: Mapping[str, tuple[str, str]], target: str, cell: str) -> str:
    if not cell or target == IGNORE:
        return ""
    if target in ("value", "noise", "weight"):
        return repr(read_number(cell, target))
    role, name = known.get(target, ("", ""))
    if role == "context":
        value = read_context_value(state.space, name, cell)
        state.space.context_numbers({name: value})
        return cell if isinstance(state.space.context[name], Categorical) else repr(value)
    if role == "design":
        value = read_design_value(state.space, name, cell)
        variable = state.space.design[name]
        variable.encode(name, np.array([value], dtype=object))
        return cell if isinstance(variable, Categorical) else repr(value)
    return cell


def _plan(state: State, mapping: list[str], rows: list[list[str]]) -> Import:
    """By way of a private file of our own, since the importer reads files."""
    keep = [k for k, target in enumerate(mapping) if target != IGNORE]
    with tempfile.TemporaryDirectory(prefix="edrbo-") as folder:
        path = Path(folder) / "table.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([mapping[k] for k in keep])
            writer.writerows([[row[k] for k in keep] for row in rows])
        return read_table(state, path)
