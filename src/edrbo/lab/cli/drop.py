"""``edrbo drop``: leave a run out."""

from __future__ import annotations

import typer

from edrbo.lab.cli.location import opened
from edrbo.lab.cli.options import ByOption, JsonOption, NameOption, NoteOption, RunArgument, StudyOption, WhyOption
from edrbo.lab.cli.output import print_run


def register(app: typer.Typer) -> None:
    app.command("drop")(drop)


def drop(
    run: RunArgument,
    study: StudyOption = None,
    name: NameOption = None,
    why: WhyOption = None,
    note: NoteOption = None,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Leave a run out: it stays on record, and nothing is learned from it."""
    with opened(study, name, by) as opened_study:
        opened_study.drop(run, why, note=note)
        state = opened_study.state_now
    print_run(state, run, as_json=as_json)
