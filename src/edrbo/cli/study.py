"""Commands of durable studies: ask, tell, context, recommend; the others live beside this module."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from edrbo.cli import files, new, run, show
from edrbo.cli.output import print_json, print_points, print_table, say
from edrbo.cli.place import (
    ContextOption,
    ForecastOption,
    JsonOption,
    StudyOption,
    opened,
    read_context,
    read_design,
    read_forecast,
)
from edrbo.errors import StudyError

contexts = typer.Typer(help="Contexts: samples without an outcome, and those that come late.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands of studies to ``app``."""
    new.register(app)
    app.command("ask")(ask)
    app.command("tell")(tell)
    app.add_typer(contexts, name="context")
    app.command("recommend")(recommend)
    show.register(app)
    files.register(app)
    run.register(app)


def ask(
    study: StudyOption = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many suggestions.")] = 1,
    forecast: ForecastOption = None,
    context: ContextOption = None,
    as_json: JsonOption = False,
) -> None:
    """Suggest what to try next, and remember that it is being tried."""
    with opened(study) as opened_study:
        space = opened_study.space
        known = {"forecast": read_forecast(space, forecast), "context": read_context(space, context)}
        suggestions = opened_study.ask(count, **known)
    if as_json:
        print_json([{"id": suggestion.id, "design": suggestion.design} for suggestion in suggestions])
        return
    print_points("try", [suggestion.id for suggestion in suggestions], [s.design for s in suggestions])
    say(f"then: edrbo tell {suggestions[0].id} --value … {_context_words(space.context_names)}".rstrip(), style="dim")


def _context_words(names: tuple[str, ...]) -> str:
    return " ".join(f"--context {name}=…" for name in names)


def tell(
    suggestion: Annotated[int | None, typer.Argument(help="The id of a suggestion.")] = None,
    study: StudyOption = None,
    value: Annotated[float | None, typer.Option("--value", "-v", help="The outcome.")] = None,
    context: ContextOption = None,
    noise: Annotated[float | None, typer.Option(help="The variance of the outcome's noise, if known.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="The evaluation gave no outcome.")] = False,
    design: Annotated[
        list[str] | None, typer.Option("--design", "-d", help="A design of your own instead of an id, as NAME=VALUE.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Report an outcome, with the context it met if that is known."""
    if (suggestion is None) == (not design):
        raise StudyError("what was evaluated is not clear", "give either the id of a suggestion or --design")
    with opened(study) as opened_study:
        seen = read_context(opened_study.space, context)
        tried = suggestion if suggestion is not None else read_design(opened_study.space, design or [])
        opened_study.tell(tried, seen, value, noise=noise, failed=failed)
        told = len(opened_study)
    if as_json:
        print_json({"observations": told})
    else:
        say(f"noted; {told} observations")


@contexts.command("add")
def add_contexts(
    file: Annotated[Path, typer.Argument(help="CSV file with a column per context variable; `weight` is optional.")],
    study: StudyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take in contexts that were seen without an outcome."""
    from edrbo.study.csv_file import read_contexts_csv

    with opened(study) as opened_study:
        rows, weights = read_contexts_csv(opened_study.space, file)
        opened_study.observe_context(rows, weights)
        known = len(opened_study.context_log)
    if as_json:
        print_json({"added": len(rows), "contexts": known})
    else:
        say(f"{len(rows)} contexts added; {known} known")


@contexts.command("tell")
def tell_context(
    suggestion: Annotated[int, typer.Argument(help="The id of a suggestion that was told without a context.")],
    values: Annotated[list[str], typer.Argument(help="Its context, as NAME=VALUE …")],
    study: StudyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report the context of an outcome later than the outcome."""
    with opened(study) as opened_study:
        opened_study.tell_context(suggestion, read_context(opened_study.space, values))
    if as_json:
        print_json({"suggestion": suggestion})
    else:
        say("noted")


def recommend(
    study: StudyOption = None,
    forecast: ForecastOption = None,
    context: ContextOption = None,
    ball: Annotated[
        float, typer.Option(min=0.0, help="How far the context law may move in the worst case (share of the range).")
    ] = 0.1,
    as_json: JsonOption = False,
) -> None:
    """The design to use, and what to expect of it."""
    with opened(study) as opened_study:
        space = opened_study.space
        found = opened_study.recommend(
            forecast=read_forecast(space, forecast), context=read_context(space, context), ball=ball
        )
    if as_json:
        print_json(asdict(found))
        return
    print_table("use", list(found.design), [list(found.design.values())])
    low, high = found.interval
    rows = [
        ["expected value", f"{found.expected:.6g}"],
        ["95 % interval of it", f"{low:.6g} to {high:.6g}"],
        ["robust to disagreement of the experts", f"{found.robust:.6g}"],
        [f"worst case, contexts shifted by {ball:g} of their range", f"{found.worst_case:.6g}"],
        ["disagreement of the experts", f"{found.disagreement:.3g}"],
    ]
    rows += [[f"spread due to {name}", f"{effect:.3g}"] for name, effect in found.context_effect.items()]
    print_table(f"from {found.observations} observations", ["what to expect", "value"], rows)
