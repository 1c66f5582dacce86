"""``edrbo context add``: contexts that were seen without an outcome."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edrbo.lab.cli.location import opened
from edrbo.lab.cli.options import ByOption, JsonOption, NameOption, StudyOption
from edrbo.lab.cli.output import print_json, say


def register(app: typer.Typer) -> None:
    app.command("add")(add)


def add(
    file: Annotated[Path, typer.Argument(help="A table with a column per context variable; `weight` is optional.")],
    study: StudyOption = None,
    name: NameOption = None,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take in contexts that were seen without an outcome."""
    from edrbo.lab.tables.csv_import import read_contexts
    from edrbo.records.descriptions import plural

    with opened(study, name, by, create="first") as opened_study:
        rows, weights = read_contexts(opened_study.space_now, file)
        opened_study.observe_context(rows, weights)
        known = len(opened_study.state_now.log)
    if as_json:
        print_json({"added": len(rows), "contexts": known})
    else:
        say(f"{plural(len(rows), 'context')} added; {known} known")
