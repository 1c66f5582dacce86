"""``edrbo front``: the designs to choose from when several outcomes are the main one."""

from __future__ import annotations

from dataclasses import asdict

import typer

from edrbo.cli.options import CandidatesOption, FixOption, ForecastOption, JsonOption, NameOption, StudyOption
from edrbo.cli.output import print_json, print_table, say
from edrbo.cli.place import opened
from edrbo.cli.progress import progress
from edrbo.cli.read_words import read_wishes


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
    from edrbo.text import doubt_words, front_table, volume_words

    with progress("looking for what none is better than", "front"), opened(study, name) as opened_study:
        space, settings = opened_study.space_now, opened_study.settings
        found = opened_study.front(**read_wishes(space, forecast, fix, candidates))
    if as_json:
        print_json(asdict(found))
        return
    heads, rows = front_table(settings, found)
    print_table("none is better in all", heads, rows)
    say(volume_words(found))
    if (doubt := doubt_words(found)) is not None:
        say(doubt, style="yellow")
