"""``edrbo bench problems``, ``show`` and ``portfolio``: what there is to solve."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table


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


WIDEST = 8  # design variables that a picture shows


def show_problem(
    name: Annotated[str, typer.Argument(help="A problem of `edrbo bench problems`.")],
    out: Annotated[Path | None, typer.Option(help="PNG file to write; by default problem-NAME.png here.")] = None,
) -> None:
    """Draw a problem: f over (x, c) slices, the context distribution with its atoms, E f and x*; of many designs only
    words."""
    from edrbo.bench import problems
    from edrbo.bench.problems.picture import save_picture

    problem = problems.get(name)
    console = Console()
    console.print(f"[bold]{problem.name}[/bold]: {problem.description}")
    console.print(f"contexts: {problem.context_distribution.describe()}")
    if problem.design is None:
        x_star = f"({', '.join(f'{value:.8g}' for value in problem.x_star)})"
    else:
        best, variables = problem.design.decode_designs(problem.x_star)[0], problem.design.design
        x_star = ", ".join(f"{key} {variables[key].text(value)}" for key, value in best.items())
    console.print(f"x* = {x_star}, max E f = {problem.optimum:.8f}")
    if problem.d_x > WIDEST:
        console.print(f"no picture: {problem.d_x} columns are too many to read", soft_wrap=True)
        return
    path = out or Path(f"problem-{name}.png")
    save_picture(problem, path)
    console.print(f"picture: {path}", soft_wrap=True)


def portfolio_data(
    source: Annotated[
        Path | None, typer.Option("--import", help="CSV file with the columns x1,x2,x3,c1,c2,y to take in.")
    ] = None,
) -> None:
    """Say which data the portfolio problems stand on, or take in a file of simulator evaluations."""
    from edrbo.bench import problems
    from edrbo.bench.problems.portfolio.data import data_path, import_portfolio_data, imported_path

    console = Console()
    if source is not None:
        rows = len(import_portfolio_data(source).outputs)
        console.print(f"{rows} evaluations checked and copied to {imported_path()}", soft_wrap=True)
    console.print(f"in use: {data_path()}", soft_wrap=True)
    for name in ("portfolio-uniform", "portfolio-normal"):
        problem = problems.get(name)
        console.print(f"{name}: max E f = {problem.optimum:.8f}; {problem.data}", soft_wrap=True)
    if imported_path().exists():
        console.print("Delete the copied file to go back to the data shipped with edrbo.")
