"""``edrbo context tell``: the context of an outcome that was reported without one."""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

from edrbo.errors import ContextBoundsWarning, ImplausibleWarning
from edrbo.lab.cli.completion import complete_contexts
from edrbo.lab.cli.input_warnings import settle
from edrbo.lab.cli.location import opened
from edrbo.lab.cli.options import ByOption, JsonOption, NameOption, NoteOption, RunArgument, StudyOption, YesOption
from edrbo.lab.cli.output import print_json, say
from edrbo.lab.cli.read_arguments import read_context


def register(app: typer.Typer) -> None:
    app.command("tell")(tell)


def tell(
    run: RunArgument,
    values: Annotated[list[str], typer.Argument(help="Its context, as NAME=VALUE …", autocompletion=complete_contexts)],
    study: StudyOption = None,
    name: NameOption = None,
    note: NoteOption = None,
    by: ByOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Report the context of an outcome later than the outcome."""
    from edrbo.records.descriptions import describe_run
    from edrbo.records.sanity import context_doubts

    with opened(study, name, by) as opened_study:
        seen = read_context(opened_study.space_now, values) or {}
        settle(context_doubts(opened_study.state_now, seen), yes=yes)
        with warnings.catch_warnings():  # it has been asked about
            warnings.simplefilter("ignore", ContextBoundsWarning)
            warnings.simplefilter("ignore", ImplausibleWarning)
            opened_study.tell_context(run, seen, note=note)
        state = opened_study.state_now
    if as_json:
        print_json({"id": run})
    else:
        say(describe_run(state, state.runs[run]))
