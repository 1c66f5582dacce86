"""``edrbo bench show``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

WIDEST = 8  # design variables that a picture shows


def register(app: typer.Typer) -> None:
    app.command("show")(show_problem)


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
