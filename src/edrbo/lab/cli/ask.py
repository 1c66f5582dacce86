"""``edrbo ask``: what to try next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from edrbo.lab.cli.location import opened
from edrbo.lab.cli.options import (
    ByOption,
    CandidatesOption,
    ContextOption,
    FixOption,
    ForecastOption,
    JsonOption,
    NameOption,
    StudyOption,
)
from edrbo.lab.cli.output import print_json, print_table, say
from edrbo.lab.cli.progress import progress
from edrbo.lab.cli.read_arguments import read_request_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edrbo.records.run import Suggestion
    from edrbo.space import Space


def ask(
    study: StudyOption = None,
    name: NameOption = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many suggestions.")] = 1,
    forecast: ForecastOption = None,
    context: ContextOption = None,
    fix: FixOption = None,
    candidates: CandidatesOption = None,
    repeat: Annotated[
        bool | None,
        typer.Option(help="Whether candidates that were reported may be tried again. Default: if there are contexts."),
    ] = None,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Suggest what to try next, and remember that it is being tried."""
    from edrbo.records.descriptions import format_outcome
    from edrbo.records.sanity import read_outcome_forecast

    with progress("looking for what to try", "ask"), opened(study, name, by, create="first") as opened_study:
        space = opened_study.space_now
        options = read_request_options(space, forecast, fix, candidates, context)
        suggestions = opened_study.ask(count, **options, repeat=repeat)
        settings = opened_study.settings
    if as_json:
        names = ("value", "low", "high")
        print_json(
            [
                {
                    "id": one.id,
                    "design": one.design,
                    "outcome_forecast": one.outcome_forecast and {name: one.outcome_forecast[name] for name in names},
                    **({} if one.cost is None else {"cost": one.cost}),
                }
                for one in suggestions
            ]
        )
        return
    print_suggestions("try", space, suggestions)
    for one in suggestions:
        if (outcome_forecast := read_outcome_forecast(one.outcome_forecast)) is not None:
            ends = (
                format_outcome(settings, end) for end in (outcome_forecast.overall.low, outcome_forecast.overall.high)
            )
            say(f"{settings.outcome} expected of run {one.id}: {' to '.join(ends)} (95 %)")
    values = ["--value …"] if settings.outcomes is None else [f"--value {name}=…" for name in settings.outcomes]
    reported = " ".join([*values, *(f"--context {name}=…" for name in space.context_names)])
    say(f"then: edrbo tell {suggestions[0].id} {reported}", style="dim")


def print_suggestions(title: str, space: Space, suggestions: Sequence[Suggestion]) -> None:
    """Designs with their units, one row each."""
    from edrbo.records.descriptions import heading
    from edrbo.space.variables import number_text

    heads = [heading(name, variable.unit) for name, variable in space.design.items()]
    costly = any(s.cost is not None for s in suggestions)
    rows = [
        [
            s.id,
            *(space.design[name].text(value) for name, value in s.design.items()),
            *["" if s.cost is None else number_text(s.cost)] * costly,
        ]
        for s in suggestions
    ]
    print_table(title, ["id", *heads, *["cost"] * costly], rows)
