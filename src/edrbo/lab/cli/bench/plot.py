"""``edrbo bench plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edrbo.lab.cli.bench.results import Against, Directory, Published, print_notes, read, say_written
from edrbo.records.settings import DEFAULT


def register(app: typer.Typer) -> None:
    app.command("plot")(plot)


def plot(
    results: Directory,
    out: Annotated[Path | None, typer.Option(help="Directory of the figures; by default `figures` in DIR.")] = None,
    formats: Annotated[str, typer.Option("--format", help="png, svg, pdf, with commas between.")] = "png,svg",
    published: Published = None,
    against: Against = DEFAULT,
    dark: Annotated[bool, typer.Option("--dark", help="For dark pages; the names end in -dark.")] = False,
) -> None:
    """Draw regret curves, time per suggestion and the critical-difference diagrams."""
    from edrbo.bench.analysis.figures import save_figures

    found, others = read(results, published)
    directory = out or (results / "figures" if results.is_dir() else Path("figures"))
    say_written(*save_figures(found, directory, _read_formats(formats), others, against, dark))
    print_notes(found)


def _read_formats(text: str) -> list[str]:
    from edrbo.errors import InvalidValueError

    formats = [part.strip() for part in text.split(",")]
    if not set(formats) <= {"png", "svg", "pdf"}:
        raise InvalidValueError(f"cannot draw {text!r}", "png, svg, pdf, or several with commas between")
    return formats
