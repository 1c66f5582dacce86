"""``edrbo ask``, ``recommend``, ``policy``, ``sensitivity``, ``tradeoff``, ``front``, ``report``: what to try next; the
design to use, that for each context, what matters, what robustness costs on average, the designs to choose from where
several outcomes are the main one, and all of it as a page.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edrbo.errors import StudyError
from edrbo.lab.cli.options import (
    ByOption,
    CandidatesOption,
    ContextOption,
    FixOption,
    ForecastOption,
    JsonOption,
    NameOption,
    StudyOption,
    YesOption,
)
from edrbo.lab.cli.output import check_new, confirm, print_facts, print_json, print_table, safe_file_name, say
from edrbo.lab.cli.progress import progress
from edrbo.lab.cli.read_arguments import opened, read_context, read_forecast, read_request_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edrbo.records.run import Suggestion
    from edrbo.space import Space


ASKED_WITHOUT_QUESTION = 20  # suggestions that are worth a question


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
        float, typer.Option(min=0.0, help="How far conditions may move in the worst case (share of their range).")
    ] = 0.1,
    as_json: JsonOption = False,
) -> None:
    """The answer: what to set, and what to expect of it."""
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


def policy(
    study: StudyOption = None,
    name: NameOption = None,
    known: Annotated[
        list[str] | None,
        typer.Option("--known", "-k", help="A condition that is known before. Repeat for each. Default: all."),
    ] = None,
    goal: Annotated[str | None, typer.Option(help="Look at the same data under another goal: cvar:0.1, …")] = None,
    forecast: ForecastOption = None,
    fix: FixOption = None,
    candidates: CandidatesOption = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the table to a .csv file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """The best settings for each condition, and what it is worth to know the conditions before choosing."""
    from edrbo.text import policy_table, policy_text

    if out is not None:
        if out.suffix.lower() != ".csv":
            raise StudyError(f"cannot write a table to {out.name}", "name a .csv file")
        check_new(out, force)
    with progress("looking for the best of each context", "policy"), opened(study, name) as opened_study:
        space, settings = opened_study.space_now, opened_study.settings
        request = read_request_options(space, forecast, fix, candidates)
        found = opened_study.policy(
            known=known or None,
            goal=goal,
            forecast=request["forecast"],
            fixed=request["fixed"],
            candidates=request["candidates"],
        )
    lines, table = policy_text(settings, found), policy_table(settings, found)
    if out is not None:
        from edrbo.lab.files import new_file
        from edrbo.lab.tables.csv_export import policy_csv

        with new_file(out, force=force) as file:
            file.write(policy_csv(found).encode())
    if as_json:
        print_json({**found.to_dict(), "facts": lines})
        return
    print_table("the best for each", *table)
    for line in lines:
        say(line)
    if out is not None:
        say(f"table: {out}")


def sensitivity(
    study: StudyOption = None,
    name: NameOption = None,
    outcome: Annotated[str | None, typer.Option(help="One of several results. Default: the main one.")] = None,
    forecast: ForecastOption = None,
    as_json: JsonOption = False,
) -> None:
    """What matters: how much of the differences comes from each variable, and from noise."""
    from edrbo.text import sensitivity_table, sensitivity_text

    with progress("working out what matters", "sensitivity"), opened(study, name) as opened_study:
        space = opened_study.space_now
        found = opened_study.sensitivity(outcome=outcome, forecast=read_forecast(space, forecast))
    if as_json:
        print_json({**found.to_dict(), "facts": sensitivity_text(found)})
        return
    print_table(f"what moves {found.outcome}", *sensitivity_table(found))
    for line in sensitivity_text(found):
        say(line)


def front(
    study: StudyOption = None,
    name: NameOption = None,
    forecast: ForecastOption = None,
    fix: FixOption = None,
    candidates: CandidatesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Settings of which none is better than another in all main results, with every limit kept."""
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
    """Settings between the best on average and the best under a robust goal: none is better in both."""
    from edrbo.records.descriptions import heading

    if out is not None:
        _check_picture(out)
        check_new(out, force)
    with progress("looking for what can be traded off", "tradeoff"), opened(study, name) as opened_study:
        space = opened_study.space_now
        found = opened_study.tradeoff(goal, forecast=read_forecast(space, forecast))
    if out is not None:
        from edrbo.lab.files import new_file

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


def report(
    study: StudyOption = None,
    name: NameOption = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="HTML file; by default NAME.html here.")] = None,
    context: ContextOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a page about the study that opens in any browser, without a network.

    With --context it also says what to do when that context is known to come.
    """
    with progress("working out the report", "report"), opened(study, name) as opened_study:
        from edrbo.lab.files import new_file
        from edrbo.lab.report import report_page

        path = out or Path(f"{safe_file_name(opened_study.name)}.html")
        check_new(path, force or out is None)
        page = report_page(opened_study, context=read_context(opened_study.space_now, context))
        with new_file(path, force=force or out is None) as file:
            file.write(page.encode())
    if as_json:
        print_json({"file": str(path), "bytes": path.stat().st_size})
    else:
        say(f"report: {path}")


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
        typer.Option(help="Whether candidates with a result may be tried again. Default: if there are conditions."),
    ] = None,
    by: ByOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Suggest what to try next, and remember that it is being tried."""
    from edrbo.records.sanity import read_outcome_forecast
    from edrbo.text import range_text

    if count > ASKED_WITHOUT_QUESTION:
        confirm(f"Really {count} suggestions at once? They are chosen without knowing each other's results.", yes=yes)
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
            ends = (outcome_forecast.overall.low, outcome_forecast.overall.high)
            expected = f"{settings.outcome} expected of run {one.id}: {range_text(ends, settings.unit)}"
            say(f"{expected} (95 % of single results)")
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
