"""``edrbo restore``: take a run in again."""

from __future__ import annotations

import typer

from edrbo.lab.cli.location import opened
from edrbo.lab.cli.options import ByOption, JsonOption, NameOption, NoteOption, RunArgument, StudyOption
from edrbo.lab.cli.output import print_run


def register(app: typer.Typer) -> None:
    app.command("restore")(restore)


def restore(
    run: RunArgument,
    study: StudyOption = None,
    name: NameOption = None,
    note: NoteOption = None,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Learn again from a run that was left out."""
    with opened(study, name, by) as opened_study:
        opened_study.restore(run, note=note)
        state = opened_study.state_now
    print_run(state, run, as_json=as_json)
