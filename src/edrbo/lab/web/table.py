"""A table that somebody pasted or chose: how it is understood, with errors by cell, before anything is stored."""

from __future__ import annotations

import base64
import binascii
import itertools
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edrbo.errors import EdrboError, StudyError
from edrbo.lab.tables.csv_import import Import, Progress, as_one_table, plan_table, store_plan
from edrbo.lab.tables.sheet import Sheet, make_sheet, sheet_of_text
from edrbo.lab.tables.table_row import NOTED, match_columns, target_of, targets
from edrbo.lab.web import bodies
from edrbo.lab.web.jobs import Job
from edrbo.lab.web.session import StudySession
from edrbo.records.state import State

MOST_ROWS = 20_000
MAX_SHOWN_ROWS = 50
MOST_SAID = 200  # errors, and doubts
TABLE = "the table"


@dataclass(frozen=True)
class Preview:
    """``mapping`` says what each column is taken for; where that cannot be, a ``problem`` stands for the plan."""

    sheet: Sheet
    mapping: list[str]
    targets: list[str]
    plan: Import | None
    problem: EdrboError | None

    def view(self) -> dict[str, Any]:
        headings, plan = self.sheet.headings, self.plan
        numbers = {row.line: k for k, row in enumerate(self.sheet.rows)}
        places = {heading: k for k, heading in enumerate(headings)}
        wrong = () if plan is None else plan.wrong
        return {
            "headings": list(headings),
            "mapping": self.mapping,
            "targets": self.targets,
            "rows": [[row.cells.get(heading, "") for heading in headings] for row in self.sheet.rows[:MAX_SHOWN_ROWS]],
            "lines": [row.line for row in self.sheet.rows[:MAX_SHOWN_ROWS]],
            "total": len(self.sheet.rows),
            "errors": [
                {
                    "row": numbers[one.line],
                    "column": -1 if one.heading is None else places[one.heading],
                    "words": "; ".join(filter(None, (one.reason, one.problem.hint))),
                    "place": self.sheet.place(one.line, one.heading).removeprefix(f"{TABLE}, "),
                }
                for one in wrong[:MOST_SAID]
            ],
            "wrong": len(wrong),
            "doubts": [{"line": line, "words": text} for line, text in (plan.doubts if plan else ())[:MOST_SAID]],
            "problem": "" if self.problem is None else _describe(self.problem),
            "counts": {} if plan is None else dict(plan.counts),
            "known": 0 if plan is None else plan.known,
            "words": "" if plan is None else plan.describe(),
            "ready": plan is not None and not plan.wrong and bool(plan.events),
        }


def _describe(problem: EdrboError) -> str:
    return problem.message + (f"; {problem.hint}" if problem.hint else "")


def preview(state: State, body: bodies.Import, progress: Progress | None = None) -> Preview:
    """Read the table; ``body.columns`` says what the column of a number ("0", "1", …) holds."""
    sheet = _sheet(body)
    chosen = {h: body.columns[str(k)] for k, h in enumerate(sheet.headings) if str(k) in body.columns}
    known = targets(state.settings)
    try:
        columns = match_columns(sheet, state.settings, chosen=chosen)
    except EdrboError as problem:
        return Preview(sheet, [chosen.get(heading, NOTED) for heading in sheet.headings], known, None, problem)
    mapping = [target_of(state.settings, columns.meaning[heading]) for heading in sheet.headings]
    return Preview(sheet, mapping, known, plan_table(state, sheet, columns, progress=progress), None)


def _sheet(body: bodies.Import) -> Sheet:
    sheet = sheet_of_text(TABLE, body.text.lstrip("\ufeff").strip("\r\n")) if body.workbook is None else _book(body)
    if not sheet.rows:
        raise StudyError("there are no rows below the headings", "give the headings and at least one row")
    if len(sheet.rows) > MOST_ROWS:
        raise StudyError(f"the table has {len(sheet.rows)} rows", f"at most {MOST_ROWS} at once")
    return sheet


def _book(body: bodies.Import) -> Sheet:
    """By way of a private file of our own, since the reader of Excel files reads files."""
    from edrbo.lab.tables.spreadsheet import read_xlsx

    try:
        data = base64.b64decode(body.workbook or "", validate=True)
    except binascii.Error:
        raise StudyError("the file did not arrive whole", "choose it again") from None
    with tempfile.TemporaryDirectory(prefix="edrbo-") as folder:
        path = Path(folder) / "table.xlsx"
        path.write_bytes(data)
        try:
            return make_sheet(TABLE, read_xlsx(path), None)
        except StudyError as problem:
            raise StudyError(problem.message.replace(str(path), "the file"), problem.hint) from None


def take(session: StudySession, body: bodies.Import, who: str) -> Job:
    """Store a table that has no errors. Sent again, its rows are known and stored once."""

    def do() -> dict[str, Any]:
        book = session.book()
        found = preview(book.state, body, session.progress)

        def read_again(state: State) -> Import:
            nonlocal found
            found = preview(state, body, session.progress)
            return _sound(found)

        store_plan(book, _sound(found), read_again, lambda plan: _stamped(plan, body))
        return {**found.view(), "stored": True, "observations": len(book.state_now.reported)}

    tries = (f"import {body.key}" if k == 0 else f"import {body.key} {k}" for k in itertools.count())
    key = next(key for key in tries if (job := session.importer.get(key)) is None or job.status != "failed")
    return session.importer.submit(key, "import", "what the table holds", do, who)


def _sound(found: Preview) -> Import:
    """The plan of a table that can be stored; an error if it cannot be."""
    if found.problem is not None:
        raise found.problem
    assert found.plan is not None
    if found.plan.wrong:
        raise found.plan.wrong[0].problem
    if not found.plan.events and not found.plan.known:
        raise StudyError("nothing in this table is understood", "say what its columns hold")
    return found.plan


def _stamped(plan: Import, body: bodies.Import) -> list[Any]:
    events = [
        replace(event, by=event.by or body.by or None, note=event.note or body.note or None) for event in plan.events
    ]
    return as_one_table(events, body.key)
