"""``edrbo bench table``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from edrbo.lab.cli.bench.results import Against, Directory, Published, read, say_written
from edrbo.records.settings import DEFAULT


def register(app: typer.Typer) -> None:
    app.command("table")(table)


def table(
    results: Directory,
    statistic: Annotated[str, typer.Option(help="all, or one of final, mean, simple, shift-down, …")] = "all",
    style: Annotated[str, typer.Option("--format", help="terminal, markdown, latex or csv.")] = "terminal",
    against: Against = DEFAULT,
    relative: Annotated[
        str | None, typer.Option(help="Show instead how large each method's numbers are relative to this one's.")
    ] = None,
    published: Published = None,
    out: Annotated[Path | None, typer.Option(help="File to write instead of printing.")] = None,
) -> None:
    """Mean ± std of regrets, best bold, second underlined, with average ranks and paired tests."""
    from edrbo.bench.analysis.tables import render

    found, others = read(results, published)
    console = Console(soft_wrap=True)
    colored = out is None and console.is_terminal
    text = render(found, others, statistic, style, against, console.width, colored, relative)
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
        say_written(out)
