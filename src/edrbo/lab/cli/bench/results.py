"""What the commands that show results have in common: reading them, and saying what a reader must know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from edrbo.errors import EdrboError

if TYPE_CHECKING:
    from edrbo.bench.analysis.results import Results

Directory = Annotated[Path, typer.Argument(help="Directory of `edrbo bench run`, or a table of `edrbo bench export`.")]
Published = Annotated[Path | None, typer.Option(help="Table of published runs to show next to ours.")]
Against = Annotated[str, typer.Option(help="Method in question: shown strongly, and tested against all others.")]


def read(path: Path, published: Path | None = None) -> tuple[Results, Results | None]:
    """The results at ``path``, and the published ones of the same problems."""
    from edrbo.bench.analysis.results import load_published, load_results, only_problems

    found = load_results(path)
    if published is None:
        return found, None
    others = load_published(published)
    if others.goal != found.goal:
        raise EdrboError(
            f"the published runs are judged by {others.goal}, ours by {found.goal}", "show them without each other"
        )
    return found, only_problems(others, found.problems)


def say_written(*paths: Path) -> None:
    console = Console(soft_wrap=True)
    for path in paths:
        console.print(f"wrote {path}", highlight=False, markup=False)


def print_notes(results: Results) -> None:
    from edrbo.bench.analysis.tables import notes

    console = Console(soft_wrap=True)
    for note in notes(results):
        console.print(note, highlight=False, markup=False)
