"""``edrbo front``: the designs to choose from when several outcomes are the main one."""

from __future__ import annotations

from dataclasses import asdict

import typer

from edrbo.lab.cli.location import opened
from edrbo.lab.cli.options import CandidatesOption, FixOption, ForecastOption, JsonOption, NameOption, StudyOption
from edrbo.lab.cli.output import print_json, print_table, say
from edrbo.lab.cli.progress import progress
from edrbo.lab.cli.read_arguments import read_request_options


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
    from edrbo.text import describe_doubt, describe_hypervolume, front_table

    with progress("looking for what none is better than", "front"), opened(study, name) as opened_study:
        space, settings = opened_study.space_now, opened_study.settings
        found = opened_study.front(**read_request_options(space, forecast, fix, candidates))
    if as_json:
        print_json(asdict(found))
        return
    heads, rows = front_table(settings, found)
    print_table("none is better in all", heads, rows)
    say(describe_hypervolume(found))
    if (doubt := describe_doubt(found)) is not None:
        say(doubt, style="yellow")
