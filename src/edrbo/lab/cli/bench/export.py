"""``edrbo bench export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from edrbo.lab.cli.bench.results import Directory, print_notes, read


def register(app: typer.Typer) -> None:
    app.command("export")(export)


def export(results: Directory, out: Annotated[Path, typer.Option(help="File to write, .csv or .csv.gz.")]) -> None:
    """Write all finished runs as one compact table, which table, plot and report read as well."""
    from edrbo.bench.analysis.results import export as write

    found, _ = read(results)
    write(found, out)
    Console(soft_wrap=True).print(f"wrote {len(found.runs)} runs to {out}", highlight=False, markup=False)
    print_notes(found)
