"""The options that commands share, and what the shell offers when Tab is pressed: numbers of runs, names of variables
and their levels.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edrbo.errors import EdrboError
from edrbo.lab.cli.read_arguments import only_toml, open_place

if TYPE_CHECKING:
    from edrbo.records.state import State


Offer = list[tuple[str, str]]


def complete_ids(ctx: typer.Context, incomplete: str) -> Offer:
    """Every run."""
    return _ids(ctx, incomplete, only=None)


def complete_pending(ctx: typer.Context, incomplete: str) -> Offer:
    """Suggestions that wait for their outcome."""
    return _ids(ctx, incomplete, only="pending")


def complete_designs(ctx: typer.Context, incomplete: str) -> Offer:
    """speed= and, for a variable with levels, kind=plain."""
    state = _state(ctx)
    return [] if state is None else _describe(state.space.design, incomplete)


def complete_contexts(ctx: typer.Context, incomplete: str) -> Offer:
    state = _state(ctx)
    return [] if state is None else _describe(state.space.context, incomplete)


def _ids(ctx: typer.Context, incomplete: str, only: str | None) -> Offer:
    state = _state(ctx)
    if state is None:
        return []
    from edrbo.records.descriptions import describe_run

    chosen = [run for run in state.runs.values() if only is None or run.status == only]
    return [(str(run.id), describe_run(state, run)) for run in reversed(chosen) if str(run.id).startswith(incomplete)]


def _describe(variables: dict[str, Any], incomplete: str) -> Offer:
    offers = [pair for name, variable in variables.items() for pair in _of_variable(name, variable)]
    return [(word, about) for word, about in offers if word.startswith(incomplete)]


def _of_variable(name: str, variable: Any) -> Iterator[tuple[str, str]]:
    if variable.kind == "categorical":
        for choice in variable.choices:
            yield f"{name}={variable.text(choice)}", name
    else:
        yield f"{name}=", variable.describe()


def _state(ctx: typer.Context) -> State | None:
    """The study's records; None, and no word, if there is none: this runs while somebody types."""
    given = ctx.params
    with suppress(EdrboError, OSError):
        return open_place(given.get("study") or str(only_toml()), given.get("name"), None, asks=False).state_now
    return None


StudyOption = Annotated[
    str | None,
    typer.Option(
        "--study",
        "-s",
        envvar="EDRBO_STUDY",
        help="The study: its .toml file, its .db file or a PostgreSQL URL. Default: the only .toml file here.",
        show_envvar=True,
    ),
]
NameOption = Annotated[
    str | None, typer.Option("--name", help="Which study, where a storage holds several; see `edrbo studies`.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
ByOption = Annotated[str | None, typer.Option("--by", help="Who says so. Default: your login.")]
NoteOption = Annotated[str | None, typer.Option("--note", help="Words to keep with it.")]
WhyOption = Annotated[str | None, typer.Option("--why", help="The reason, kept with it.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask, just do it.")]
AtOption = Annotated[str | None, typer.Option("--at", help="When it happened, as 2026-03-14 15:30. Default: now.")]
ForecastOption = Annotated[
    Path | None,
    typer.Option("--forecast", help="CSV file of conditions: those to expect this time."),
]
FixOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fix",
        help="A setting that is held this time, as NAME=VALUE. Repeat for each.",
        autocompletion=complete_designs,
    ),
]
CandidatesOption = Annotated[
    Path | None,
    typer.Option("--candidates", help="CSV or Excel file of settings: choose one of these rows."),
]
ContextOption = Annotated[
    list[str] | None,
    typer.Option(
        "--context",
        "-c",
        help="A condition, as NAME=VALUE. Repeat for each.",
        autocompletion=complete_contexts,
    ),
]
DesignOption = Annotated[
    list[str] | None,
    typer.Option(
        "--design",
        "-d",
        help="What was set, as NAME=VALUE. Repeat for each.",
        autocompletion=complete_designs,
    ),
]
RunArgument = Annotated[int, typer.Argument(metavar="ID", help="The number of a run.", autocompletion=complete_ids)]
