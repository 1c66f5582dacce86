"""``edrbo bench show``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def register(app: typer.Typer) -> None:
    app.command("show")(show_problem)


def show_problem(
    name: Annotated[str, typer.Argument(help="A problem of `edrbo bench problems`.")],
    out: Annotated[Path | None, typer.Option(help="PNG file to write; by default problem-NAME.png here.")] = None,
) -> None:
    """Draw a problem: f over (x, c) slices, the context law with its atoms, E f and x*."""
    from edrbo.bench import problems
    from edrbo.bench.problems.picture import save_picture

    problem = problems.get(name)
    path = out or Path(f"problem-{name}.png")
    save_picture(problem, path)
    console = Console()
    console.print(f"[bold]{problem.name}[/bold]: {problem.description}")
    console.print(f"contexts: {problem.law.describe()}")
    x_star = ", ".join(f"{value:.8g}" for value in problem.x_star)
    console.print(f"x* = ({x_star}), max E f = {problem.optimum:.8f}")
    console.print(f"picture: {path}", soft_wrap=True)
