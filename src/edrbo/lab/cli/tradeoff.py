"""``edrbo tradeoff``: what robustness costs on average, design by design."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edrbo.errors import StudyError
from edrbo.lab.cli.files import check_new
from edrbo.lab.cli.location import opened
from edrbo.lab.cli.options import ForecastOption, JsonOption, NameOption, StudyOption
from edrbo.lab.cli.output import print_json, print_table, say
from edrbo.lab.cli.progress import progress
from edrbo.lab.cli.read_arguments import read_forecast


def register(app: typer.Typer) -> None:
    app.command("tradeoff")(tradeoff)


PICTURES = (".png", ".svg", ".pdf", "")  # without an ending it is a .png


def _check_picture(out: Path) -> None:
    if out.suffix.lower() not in PICTURES:
        raise StudyError(f"cannot draw a {out.suffix} file", "name a .png, .svg or .pdf file")


def tradeoff(
    study: StudyOption = None,
    name: NameOption = None,
    goal: Annotated[
        str | None, typer.Option(help="Against the mean: the study's own goal, or cvar:0.1, robust:0.1, …")
    ] = None,
    forecast: ForecastOption = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Draw it, as a .png, .svg or .pdf file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Designs between the best on average and the best under a robust goal: none is better in both."""
    from edrbo.records.descriptions import heading

    if out is not None:
        _check_picture(out)
        check_new(out, force)
    with progress("looking for what can be traded off", "tradeoff"), opened(study, name) as opened_study:
        space = opened_study.space_now
        found = opened_study.tradeoff(goal, forecast=read_forecast(space, forecast))
    if out is not None:
        from edrbo.lab.new_file import new_file

        with new_file(out, force=force) as file:
            found.draw().savefig(file, format=out.suffix.lower().removeprefix(".") or "png")
    if as_json:
        points = zip(found.designs, found.mean.tolist(), found.value.tolist(), strict=True)
        rows = [{"design": design, "mean": mean, "value": value} for design, mean, value in points]
        print_json({"goal": found.goal, "frontier": rows})
        return
    heads = [heading(name, variable.unit) for name, variable in space.design.items()]
    table = [
        [*(space.design[name].text(value) for name, value in design.items()), f"{mean:.6g}", f"{value:.6g}"]
        for design, mean, value in zip(found.designs, found.mean, found.value, strict=True)
    ]
    print_table(
        "from the best on average to the best under the goal", [*heads, found.mean_axis, found.value_axis], table
    )
    if out is not None:
        say(f"picture: {out}")
