"""``edrbo recommend``: the design to use."""

from __future__ import annotations

from typing import Annotated

import typer

from edrbo.lab.cli.location import opened
from edrbo.lab.cli.options import (
    CandidatesOption,
    ContextOption,
    FixOption,
    ForecastOption,
    JsonOption,
    NameOption,
    StudyOption,
)
from edrbo.lab.cli.output import print_facts, print_json, print_table, say
from edrbo.lab.cli.progress import progress
from edrbo.lab.cli.read_arguments import read_request_options


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
    radius: Annotated[
        float, typer.Option(min=0.0, help="How far contexts may move in the worst case (share of their range).")
    ] = 0.1,
    as_json: JsonOption = False,
) -> None:
    """The design to use, and what to expect of it."""
    from edrbo.records.descriptions import heading, plural
    from edrbo.text import answer_text

    with progress("working out the answer", "recommend"), opened(study, name) as opened_study:
        space = opened_study.space_now
        found = opened_study.recommend(
            goal=goal, radius=radius, **read_request_options(space, forecast, fix, candidates, context)
        )
        text = answer_text(found, opened_study.settings)  # computed here, where the line says so
        settings, record = opened_study.settings, found.to_dict() if as_json else {}
    if as_json:
        shown = {key: part for key, part in record.items() if key != "gain_quantiles"}
        print_json({**shown, "facts": text.records(), "doubts": text.doubts})
        return
    heads = [heading(name, variable.unit) for name, variable in space.design.items()]
    print_table("set this", heads, [[space.design[name].text(value) for name, value in found.design.items()]])
    for doubt in text.doubts:
        say(doubt, style="yellow")
    title = f"what to expect of {settings.outcome}, from {plural(found.observations, 'result')}"
    print_facts(title, text.facts)
    print_facts("where the uncertainty comes from", text.sources)
    if text.price:
        rows = [list(fact) for fact in text.price]
        print_table("the price of robustness", ["", "this answer", "best on average"], rows)
    say(text.nearest)
