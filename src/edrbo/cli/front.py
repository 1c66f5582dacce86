"""``edrbo front``: the designs to choose from when several outcomes are the main one."""

from __future__ import annotations

from dataclasses import asdict

import typer

from edrbo.cli.options import CandidatesOption, FixOption, ForecastOption, JsonOption, NameOption, StudyOption
from edrbo.cli.output import print_json, print_table, say
from edrbo.cli.place import opened
from edrbo.cli.read_words import read_candidates, read_design, read_forecast


def register(app: typer.Typer) -> None:
    app.command("front")(front)


def front(
    study: StudyOption = None,
    name: NameOption = None,
    forecast: ForecastOption = None,
    fix: FixOption = None,
    candidates: CandidatesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Designs of which none is better than another in all main outcomes, with every limit kept."""
    from edrbo.records.words import heading, outcome_headings

    with opened(study, name) as opened_study:
        space, settings = opened_study.space_now, opened_study.settings
        found = opened_study.front(
            forecast=read_forecast(space, forecast),
            fixed=read_design(space, fix) or None,
            candidates=read_candidates(space, candidates),
        )
    if as_json:
        print_json(asdict(found))
        return
    heads = [heading(name, variable.unit) for name, variable in space.design.items()]
    of_outcomes = outcome_headings(settings)
    names = list(found.reference)
    limits = list(found.points[0].holds)
    rows = [
        [
            *(space.design[name].text(value) for name, value in point.design.items()),
            *(f"{point.values[name]:.6g}" for name in names),
            *(f"{point.holds[name]:.0%}" for name in limits),
        ]
        for point in found.points
    ]
    sure = [f"{name} holds" for name in limits]
    print_table("none is better in all", [*heads, *(of_outcomes[name] for name in names), *sure], rows)
    behind = ", ".join(f"{name} {value:.4g}" for name, value in found.reference.items())
    say(f"They dominate a hypervolume of {found.hypervolume:.4g}, down to {behind}.")
    if not found.sure:
        say("No design is known yet that keeps all limits as surely as was asked for.", style="yellow")
