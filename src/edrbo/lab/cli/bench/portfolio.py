"""``edrbo bench portfolio``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def register(app: typer.Typer) -> None:
    app.command("portfolio")(portfolio_data)


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
