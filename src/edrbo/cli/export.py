"""``edrbo export``: everything as a table."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edrbo.cli.files import check_new
from edrbo.cli.options import NameOption, StudyOption
from edrbo.cli.output import say
from edrbo.cli.place import opened
from edrbo.errors import StudyError

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
    from edrbo.records.words import plural
    from edrbo.study.csv_file import export_csv
    from edrbo.study.new_file import new_file
    from edrbo.study.spreadsheet import export_xlsx

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
    from edrbo.optuna.export import export_study
    from edrbo.records.words import plural
    from edrbo.study.store.place import describe

    if to != "optuna":
        raise StudyError(f"nothing is known of {to!r}", "write --to optuna, or leave it out for a table")
    if target == "-":
        raise StudyError("an Optuna study needs a place", "edrbo export --to optuna sqlite:///coating-optuna.db")
    say(f"{plural(export_study(state, name, target), 'trial')} in {describe(target)}")
