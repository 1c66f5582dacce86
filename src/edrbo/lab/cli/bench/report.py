"""``edrbo bench report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edrbo.lab.cli.bench.results import Against, Directory, Published, print_notes, read, say_written
from edrbo.records.settings import DEFAULT


def register(app: typer.Typer) -> None:
    app.command("report")(report)


def report(
    results: Directory,
    out: Annotated[Path | None, typer.Option(help="Page to write; by default report.html in DIR.")] = None,
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "edrbo benchmark",
    published: Published = None,
    against: Against = DEFAULT,
) -> None:
    """Write one interactive HTML page of everything; it needs no network."""
    from edrbo.bench.analysis.report import write_report

    found, others = read(results, published)
    path = out or (results / "report.html" if results.is_dir() else Path("report.html"))
    write_report(found, path, others, title, against)
    say_written(path)
    print_notes(found)
