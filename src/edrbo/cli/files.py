"""Commands that read and write files: import, export, report."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, TextIO

import typer

from edrbo.cli.output import print_json, say
from edrbo.cli.place import JsonOption, StudyOption, opened
from edrbo.errors import StudyError


def register(app: typer.Typer) -> None:
    app.command("import")(import_table)
    app.command("export")(export_table)
    app.command("report")(report)


def import_table(
    file: Annotated[Path, typer.Argument(help="CSV file: a column per variable, and `value`.")],
    study: StudyOption = None,
    again: Annotated[bool, typer.Option("--again", help="Take in rows that are known already once more.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Take in evaluations and contexts from a CSV file; all rows are checked first."""
    from edrbo.study.csv_import import import_csv

    with opened(study) as opened_study:
        found = import_csv(opened_study, file, again=again)
    if as_json:
        print_json({**found.counts, "known": found.known})
        return
    words = [f"{count} {status}" for status, count in found.counts.items()]
    words += [f"{found.known} known already"] * (found.known > 0)
    say(", ".join(words) or "the table is empty")


def export_table(
    file: Annotated[str, typer.Argument(help="CSV file to write; - for standard output.")] = "-",
    study: StudyOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Write everything as CSV; `edrbo import` gives it back exactly."""
    from edrbo.study.csv_file import export_csv

    with opened(study) as opened_study:
        if file == "-":
            export_csv(opened_study.state, sys.stdout)
            return
        with open_private(Path(file), force) as out:
            rows = export_csv(opened_study.state, out)
    say(f"{rows} rows in {file}")


def report(
    study: StudyOption = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="HTML file; by default NAME.html here.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a page about the study that opens in any browser, without a network."""
    from edrbo.report import report_page

    with opened(study) as opened_study:
        page = report_page(opened_study)
        path = out or Path(f"{safe_file_name(opened_study.name)}.html")
        with open_private(path, force or out is None) as file:
            file.write(page)
    if as_json:
        print_json({"file": str(path), "bytes": path.stat().st_size})
    else:
        say(f"report: {path}")


def safe_file_name(name: str) -> str:
    """A study's name as a file name in this folder, whatever is in it."""
    safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:80]
    return safe.strip("-") or "study"


def open_private(path: Path, force: bool) -> TextIO:
    """A new text file that only its owner may read."""
    flags = os.O_CREAT | os.O_WRONLY | (os.O_TRUNC if force else os.O_EXCL)
    try:
        return os.fdopen(os.open(path, flags, 0o600), "w", newline="", encoding="utf-8")
    except FileExistsError:
        raise StudyError(f"{path} exists already", "choose another name, or add --force") from None
    except OSError as problem:
        raise StudyError(f"cannot write {path}: {problem.strerror}") from None
