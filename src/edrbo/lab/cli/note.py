"""``edrbo note``: words about a run."""

from __future__ import annotations

from typing import Annotated

import typer

from edrbo.lab.cli.location import opened
from edrbo.lab.cli.options import ByOption, JsonOption, NameOption, RunArgument, StudyOption
from edrbo.lab.cli.output import print_json, say


def register(app: typer.Typer) -> None:
    app.command("note")(note)


def note(
    run: RunArgument,
    words: Annotated[list[str], typer.Argument(help="What there is to say.")],
    study: StudyOption = None,
    name: NameOption = None,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep words about a run: edrbo note 3 a bubble in the coating"""
    text = " ".join(words)
    with opened(study, name, by) as opened_study:
        opened_study.note(run, text)
    if as_json:
        print_json({"id": run, "note": text})
    else:
        say(f"run {run}: {text}")
