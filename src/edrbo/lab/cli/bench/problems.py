"""``edrbo bench problems``."""

from __future__ import annotations

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table


def register(app: typer.Typer) -> None:
    app.command("problems")(list_problems)


def list_problems() -> None:
    """List the problems: dimensions, context distribution and the best expected value."""
    from edrbo.bench import problems

    table = Table(title="maximize E f(x) over x in the unit cube", box=SIMPLE)
    table.add_column("problem", no_wrap=True)
    table.add_column("d_x", justify="right")
    table.add_column("d_c", justify="right")
    table.add_column("context distribution")
    table.add_column("max E f", justify="right", no_wrap=True)
    notes = set()
    for name in problems.names():
        problem = problems.get(name)
        sizes = (str(problem.d_x), str(problem.d_c))
        table.add_row(name, *sizes, problem.context_distribution.describe(), f"{problem.optimum:.8f}")
        if problem.data:
            notes.add(f"portfolio data: {problem.data}")
    console = Console()
    console.print(table)
    for note in sorted(notes):
        console.print(note)
