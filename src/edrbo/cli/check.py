"""``edrbo check``: whether all records of a study can be read."""

from __future__ import annotations

import warnings

import typer

from edrbo.cli.options import JsonOption, NameOption, StudyOption
from edrbo.cli.output import print_json, say
from edrbo.cli.place import only_toml, open_place
from edrbo.errors import UnreadableRecordWarning


def register(app: typer.Typer) -> None:
    app.command("check")(check)


def check(study: StudyOption = None, name: NameOption = None, as_json: JsonOption = False) -> None:
    """Look at every record of a study; ends with code 1 if one cannot be read."""
    from edrbo.records.words import plural

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreadableRecordWarning)  # it is said below
        opened_study = open_place(study or str(only_toml()), name, None)
        problems, state = opened_study.problems, opened_study.state_now
    if as_json:
        print_json({"events": len(state.history), "problems": [str(problem) for problem in problems]})
    else:
        for problem in problems:
            say(str(problem), style="yellow")
        found = plural(len(problems), "record") + " set aside" if problems else "all can be read"
        say(f"{plural(len(state.history), 'event')}, {plural(len(state.runs), 'run')}: {found}")
    if problems:
        raise typer.Exit(1)
