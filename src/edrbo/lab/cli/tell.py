"""``edrbo tell``: report an outcome."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edrbo.errors import (
    ContextBoundsWarning,
    ImplausibleWarning,
    InvalidDesignError,
    InvalidValueError,
    UnknownSuggestionError,
)
from edrbo.lab.cli.completion import complete_pending
from edrbo.lab.cli.input_warnings import settle
from edrbo.lab.cli.location import opened
from edrbo.lab.cli.options import (
    AtOption,
    ByOption,
    ContextOption,
    DesignOption,
    JsonOption,
    NameOption,
    NoteOption,
    StudyOption,
    WhyOption,
    YesOption,
)
from edrbo.lab.cli.output import print_json, say
from edrbo.lab.cli.read_arguments import (
    read_amount,
    read_context,
    read_design,
    read_moment,
    read_result,
    read_variances,
)

if TYPE_CHECKING:
    from edrbo.records.run import Run
    from edrbo.records.state import State


ROWS_HELP = "A table of several rows of this run, each with a value and the context it met."


def register(app: typer.Typer) -> None:
    app.command("tell")(tell)


def tell(
    run: Annotated[
        int | None,
        typer.Argument(metavar="ID", help="The number of a suggestion.", autocompletion=complete_pending),
    ] = None,
    study: StudyOption = None,
    name: NameOption = None,
    value: Annotated[
        list[str] | None, typer.Option("--value", "-v", help="The outcome; of several: NAME=NUMBER, repeated.")
    ] = None,
    context: ContextOption = None,
    design: DesignOption = None,
    noise_variance: Annotated[
        list[str] | None, typer.Option(help="The variance of the outcome's noise, if known.")
    ] = None,
    cost: Annotated[str | None, typer.Option(help="What the run cost, in a unit of your own.")] = None,
    rows: Annotated[Path | None, typer.Option(help=ROWS_HELP)] = None,
    failed: Annotated[bool, typer.Option("--failed", help="It was tried and gave no outcome.")] = False,
    why: WhyOption = None,
    note: NoteOption = None,
    by: ByOption = None,
    at: AtOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Report an outcome, with the context it met if that is known.

    With an ID, --design says what was really set where that differs: edrbo tell 3 -v 1.7 -d speed=38
    Without one, it is a design of your own, and all its variables are needed.
    """
    from edrbo.records.sanity import entry_doubts, series_doubts

    if run is None and not design:
        raise InvalidDesignError(
            "what was tried is not clear", "give the number of a suggestion, or say what was set: -d NAME=…"
        )
    if not value and not failed and rows is None:
        raise InvalidValueError("the result is missing", "add --value NUMBER, or --failed if it gave none")
    if rows is not None and (value or context or noise_variance or failed):
        raise InvalidValueError(
            "both a table and an outcome are given", "values, contexts and noise stand in the table"
        )
    with opened(study, name, by, create="first") as opened_study:
        before = opened_study.state_now
        number, seen = read_result(before.settings, value), read_context(before.space, context)
        known = None if run is None else before.runs.get(run)
        if run is not None and known is None:
            raise UnknownSuggestionError(
                f"suggestion {run} was never asked", "leave the number out for a design of your own; see `edrbo show`"
            )
        reported_rows, asked = _rows(before, rows), None if design else known
        if known is None or known.status == "pending":  # else it is refused, and there is nothing to ask
            of_rows = None if reported_rows is None else series_doubts(before, asked, reported_rows)
            of_one = [] if of_rows is not None else entry_doubts(before, run, number, seen, own=bool(design))
            settle(of_rows or of_one, yes=yes)
        with warnings.catch_warnings():  # it has been asked about
            warnings.simplefilter("ignore", ContextBoundsWarning)
            warnings.simplefilter("ignore", ImplausibleWarning)
            opened_study.tell(
                run if run is not None else read_design(before.space, design),
                seen,
                number,
                **(reported_rows or {"noise_variance": read_variances(before.settings, noise_variance)}),
                cost=read_amount(cost, "the cost"),
                failed=failed,
                design=read_design(before.space, design) if run is not None and design else None,
                why=why,
                note=note,
                at=read_moment(at),
            )
        after = opened_study.state_now
    reported = after.runs[run] if run is not None else new_run(before, after)
    if as_json:
        print_json({"id": reported.id, "observations": len(after.reported)})
        return
    from edrbo.records.descriptions import describe_run, plural

    say(describe_run(after, reported))
    say(f"{plural(len(after.reported), 'result')} so far", style="dim")


def _rows(state: State, path: Path | None) -> dict[str, Any] | None:
    """As ``tell`` takes them."""
    if path is None:
        return None
    from edrbo.lab.tables.csv_import import read_outcomes

    return read_outcomes(state, path)


def new_run(before: State, after: State) -> Run:
    """The run that came last; another process may have brought others meanwhile, earlier or later."""
    return after.runs[max(key for key in after.runs if key not in before.runs)]
