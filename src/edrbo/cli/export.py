"""``edrbo export``: everything as a table."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from edrbo.cli.files import check_new, open_new
from edrbo.cli.options import NameOption, StudyOption
from edrbo.cli.output import say
from edrbo.cli.place import opened


def register(app: typer.Typer) -> None:
    app.command("export")(export)


def export(
    file: Annotated[str, typer.Argument(help="A .csv or .xlsx file to write; - for CSV on standard output.")] = "-",
    study: StudyOption = None,
    name: NameOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Write everything as a table; `edrbo import` gives it back exactly."""
    from edrbo.records.words import plural
    from edrbo.study.csv_file import export_csv
    from edrbo.study.spreadsheet import export_xlsx

    if file != "-":
        check_new(Path(file), force)
    with opened(study, name) as opened_study:
        state = opened_study.state_now
        if file == "-":
            export_csv(state, sys.stdout)
            return
        with open_new(Path(file), force) as out:
            if file.lower().endswith(".xlsx"):
                rows = export_xlsx(state, out)
            else:
                with io.TextIOWrapper(out, encoding="utf-8", newline="") as text:
                    rows = export_csv(state, text)
    say(f"{plural(rows, 'row')} in {file}")
