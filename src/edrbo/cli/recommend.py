"""``edrbo recommend``: the design to use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from edrbo.cli.options import (
    CandidatesOption,
    ContextOption,
    FixOption,
    ForecastOption,
    JsonOption,
    NameOption,
    StudyOption,
)
from edrbo.cli.output import print_json, print_table, say
from edrbo.cli.place import opened
from edrbo.cli.progress import progress
from edrbo.cli.read_words import read_wishes

if TYPE_CHECKING:
    from edrbo.optimizer.recommendation import Recommendation


def register(app: typer.Typer) -> None:
    app.command("recommend")(recommend)


def recommend(
    study: StudyOption = None,
    name: NameOption = None,
    forecast: ForecastOption = None,
    context: ContextOption = None,
    fix: FixOption = None,
    candidates: CandidatesOption = None,
    goal: Annotated[
        str | None, typer.Option(help="Look at the same data under another goal: cvar:0.1, robust:0.1, reach:5, …")
    ] = None,
    ball: Annotated[
        float, typer.Option(min=0.0, help="How far contexts may move in the worst case (share of their range).")
    ] = 0.1,
    as_json: JsonOption = False,
) -> None:
    """The design to use, and what to expect of it."""
    with progress("working out the answer", "recommend"), opened(study, name) as opened_study:
        space = opened_study.space_now
        found = opened_study.recommend(goal=goal, ball=ball, **read_wishes(space, forecast, fix, candidates, context))
        settings, record = opened_study.settings, found.to_dict()  # computed here, where the line says so
    if as_json:
        print_json({key: part for key, part in record.items() if key != "gain_quantiles"})
        return
    from edrbo.optimizer.words import (
        interval_words,
        nearest_words,
        range_words,
        stopping_words,
        success_words,
        support_words,
    )
    from edrbo.records.goals import Expected, parse_goal
    from edrbo.records.words import heading, outcome_words, plural

    heads = [heading(name, variable.unit) for name, variable in space.design.items()]
    print_table("use", heads, [[space.design[name].text(value) for name, value in found.design.items()]])
    followed = settings.goal if goal is None else parse_goal(goal)
    rows = [] if followed == Expected() else _goal_rows(found, followed.unit(settings.unit))
    rows += [
        [f"{settings.outcome} to expect, on average", outcome_words(settings, found.expected)],
        ["  95 % sure that this is between", range_words(found.interval, settings.unit)],
        ["  and the next single outcome between", range_words(found.outcome, settings.unit)],
        ["  cautiously: models that differ most", outcome_words(settings, found.robust)],
    ]
    if found.context_effect and ball > 0:  # otherwise it is the expected value, and no bound
        worst = f"  95 % sure: no worse if contexts move by {100 * ball:g} %"
        rows.append([worst, outcome_words(settings, found.worst_case)])
    rows.append(["  models differ by", outcome_words(settings, found.disagreement)])
    rows += [[f"  {name} makes it vary by", outcome_words(settings, s)] for name, s in found.context_effect.items()]
    if (success := success_words(settings, found)) is not None:
        rows.append(["a run of it succeeds with", success])
    print_table(f"from {plural(found.observations, 'outcome')}", ["what to expect", settings.outcome], rows)
    if followed != Expected() and found.context_effect:
        _print_price(found)
    if found.outcomes:
        _print_outcomes(found)
    say(interval_words(found.value_interval, found.value_parts))
    say(stopping_words(found, followed.unit(settings.unit)))
    warning = support_words(settings, found)
    say(warning or nearest_words(settings, found), style="yellow" if warning else "")


def _goal_rows(found: Recommendation, unit: str) -> list[list[str]]:
    from edrbo.optimizer.words import range_words

    return [
        [found.title, f"{found.value:.6g}{unit and ' ' + unit}"],
        ["  95 % sure that this is between", range_words(found.value_interval, unit)],
    ]


def _print_outcomes(found: Recommendation) -> None:
    """Every outcome of several, and whether its limit holds."""
    from edrbo.optimizer.words import limits_words, outcome_rows

    rows = [[name, *cells] for name, cells in outcome_rows(found).items()]
    print_table("every outcome", ["name", "aim", "on average", "95 % sure between", "holds"], rows)
    if found.limits_hold is False:
        say(limits_words(found), style="yellow")


def _print_price(found: Recommendation) -> None:
    """What the goal costs on average, and what it buys."""
    heads = list(found.price["recommended"])
    rows = [[name, *(f"{values[head]:.6g}" for head in heads)] for name, values in found.price.items()]
    print_table("the price of robustness", ["design", *heads], rows)
