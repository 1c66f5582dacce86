"""``edrbo export``: everything as a table."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edrbo.errors import StudyError
from edrbo.lab.cli.files import check_new
from edrbo.lab.cli.location import opened
from edrbo.lab.cli.options import NameOption, StudyOption
from edrbo.lab.cli.output import say

if TYPE_CHECKING:
    from edrbo.records.state import State


def register(app: typer.Typer) -> None:
    app.command("export")(export)


def export(
    file: Annotated[str, typer.Argument(help="A .csv or .xlsx file to write; - for CSV on standard output.")] = "-",
    study: StudyOption = None,
    name: NameOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    to: Annotated[
        str | None,
        typer.Option(help="`optuna`: FILE is a database URL or a journal file, for optuna-dashboard to show."),
    ] = None,
) -> None:
    """Write everything as a table; `edrbo import` gives it back exactly."""
    from edrbo.lab.new_file import new_file
    from edrbo.lab.tables.csv_export import export_csv
    from edrbo.lab.tables.spreadsheet import export_xlsx
    from edrbo.records.descriptions import plural

    if file != "-" and to is None:
        check_new(Path(file), force)
    with opened(study, name) as opened_study:
        state = opened_study.state_now
        if to is not None:
            _to_optuna(state, opened_study.name, file, to)
            return
        if file == "-":
            export_csv(state, sys.stdout)
            return
        with new_file(Path(file), force=force) as out:
            if file.lower().endswith(".xlsx"):
                table = io.BytesIO()  # a disk that is full must not meet openpyxl in the middle
                rows = export_xlsx(state, table)
                out.write(table.getvalue())
            else:
                text = io.TextIOWrapper(out, encoding="utf-8", newline="")
                rows = export_csv(state, text)
                text.flush()
                text.detach()
    say(f"{plural(rows, 'row')} in {file}")


def _to_optuna(state: State, name: str, target: str, to: str) -> None:
    from edrbo.integrations.optuna.export import export_study
    from edrbo.lab.store.place import describe
    from edrbo.records.descriptions import plural

    if to != "optuna":
        raise StudyError(f"nothing is known of {to!r}", "write --to optuna, or leave it out for a table")
    if target == "-":
        raise StudyError("an Optuna study needs a place", "edrbo export --to optuna sqlite:///coating-optuna.db")
    say(f"{plural(export_study(state, name, target), 'trial')} in {describe(target)}")
