"""``edrbo context tell``: the context of an outcome that was told without one."""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

from edrbo.cli.completion import complete_contexts
from edrbo.cli.options import ByOption, JsonOption, NameOption, NoteOption, RunArgument, StudyOption, YesOption
from edrbo.cli.output import print_json, say
from edrbo.cli.place import opened
from edrbo.cli.questions import settle
from edrbo.cli.read_words import read_context
from edrbo.errors import ContextBoundsWarning, ImplausibleWarning


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
    from edrbo.records.plausible import context_doubts
    from edrbo.records.words import run_words

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
        say(run_words(state, state.runs[run]))
