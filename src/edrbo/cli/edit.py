"""``edrbo edit``: what was told of a run was wrong."""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

from edrbo.cli.options import (
    ByOption,
    ContextOption,
    DesignOption,
    JsonOption,
    NameOption,
    NoteOption,
    RunArgument,
    StudyOption,
    WhyOption,
    YesOption,
)
from edrbo.cli.output import print_json, say
from edrbo.cli.place import opened
from edrbo.cli.questions import settle
from edrbo.cli.read_words import read_amount, read_context, read_design, read_result, read_variances
from edrbo.errors import ContextBoundsWarning


def register(app: typer.Typer) -> None:
    app.command("edit")(edit)


def edit(
    run: RunArgument,
    study: StudyOption = None,
    name: NameOption = None,
    value: Annotated[
        list[str] | None, typer.Option("--value", "-v", help="What the outcome really was; of several: NAME=NUMBER.")
    ] = None,
    context: ContextOption = None,
    design: DesignOption = None,
    noise: Annotated[list[str] | None, typer.Option(help="The variance of the outcome's noise.")] = None,
    cost: Annotated[str | None, typer.Option(help="What the run really cost.")] = None,
    row: Annotated[int | None, typer.Option(help="Which row of a run that has several, counted from 0.")] = None,
    why: WhyOption = None,
    note: NoteOption = None,
    by: ByOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Correct what was told of a run. What is left out stays, and the history keeps what was told before.

    edrbo edit 3 --value 1.9 --context humidity=55 --why "typo"
    """
    from edrbo.records.plausible import entry_doubts
    from edrbo.records.words import run_words

    with opened(study, name, by) as opened_study:
        before = opened_study.state_now
        known = before.runs.get(run)
        number, told = read_result(before.settings, value), read_context(before.space, context)
        settle(entry_doubts(before, run, number, told, own=bool(design)), yes=yes)
        with warnings.catch_warnings():  # it has been asked about
            warnings.simplefilter("ignore", ContextBoundsWarning)
            opened_study.correct(
                run,
                row=row,
                value=number,
                context=told,
                noise=read_variances(before.settings, noise),
                cost=read_amount(cost, "the cost"),
                design=read_design(before.space, design) if design else None,
                why=why,
                note=note,
            )
        after = opened_study.state_now
    if as_json:
        print_json({"id": run})
        return
    if known is not None:
        say(f"was  {run_words(before, known)}", style="dim")
    say(f"now  {run_words(after, after.runs[run])}")
