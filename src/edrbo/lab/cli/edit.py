"""``edrbo edit``: what was reported of a run was wrong."""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

from edrbo.errors import ContextBoundsWarning
from edrbo.lab.cli.input_warnings import settle
from edrbo.lab.cli.location import opened
from edrbo.lab.cli.options import (
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
from edrbo.lab.cli.output import print_json, say
from edrbo.lab.cli.read_arguments import read_amount, read_context, read_design, read_result, read_variances


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
    noise_variance: Annotated[list[str] | None, typer.Option(help="The variance of the outcome's noise.")] = None,
    cost: Annotated[str | None, typer.Option(help="What the run really cost.")] = None,
    row: Annotated[int | None, typer.Option(help="Which row of a run that has several, counted from 0.")] = None,
    why: WhyOption = None,
    note: NoteOption = None,
    by: ByOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Correct what was reported of a run. What is left out stays, and the history keeps what was reported before.

    edrbo edit 3 --value 1.9 --context humidity=55 --why "typo"
    """
    from edrbo.records.descriptions import describe_run
    from edrbo.records.sanity import entry_doubts

    with opened(study, name, by) as opened_study:
        before = opened_study.state_now
        known = before.runs.get(run)
        number, reported = read_result(before.settings, value), read_context(before.space, context)
        settle(entry_doubts(before, run, number, reported, own=bool(design)), yes=yes)
        with warnings.catch_warnings():  # it has been asked about
            warnings.simplefilter("ignore", ContextBoundsWarning)
            opened_study.correct(
                run,
                row=row,
                value=number,
                context=reported,
                noise_variance=read_variances(before.settings, noise_variance),
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
        say(f"was  {describe_run(before, known)}", style="dim")
    say(f"now  {describe_run(after, after.runs[run])}")
