"""``edrbo context …``: contexts that were seen without an outcome, and those that come later than the outcome."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from edrbo.errors import ContextBoundsWarning, ImplausibleWarning
from edrbo.lab.cli.location import opened
from edrbo.lab.cli.options import (
    ByOption,
    JsonOption,
    NameOption,
    NoteOption,
    RunArgument,
    StudyOption,
    YesOption,
    complete_contexts,
)
from edrbo.lab.cli.output import print_json, say
from edrbo.lab.cli.read_arguments import read_context, settle


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


app = typer.Typer(help="Contexts: those seen without an outcome, and those that come late.", no_args_is_help=True)
app.command("add")(add)
app.command("tell")(tell)
