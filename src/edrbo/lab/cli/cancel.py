"""``edrbo cancel``: a suggestion that will not be run."""

from __future__ import annotations

import typer

from edrbo.lab.cli.location import opened
from edrbo.lab.cli.options import (
    ByOption,
    JsonOption,
    NameOption,
    NoteOption,
    PendingArgument,
    StudyOption,
    WhyOption,
)
from edrbo.lab.cli.output import print_run


def register(app: typer.Typer) -> None:
    app.command("cancel")(cancel)


def cancel(
    run: PendingArgument,
    study: StudyOption = None,
    name: NameOption = None,
    why: WhyOption = None,
    note: NoteOption = None,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel a suggestion that will not be run. (One that was run and gave nothing: tell ID --failed.)"""
    with opened(study, name, by) as opened_study:
        opened_study.cancel(run, why, note=note)
        state = opened_study.state_now
    print_run(state, run, as_json=as_json)
