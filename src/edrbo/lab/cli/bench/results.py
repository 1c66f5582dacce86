"""``edrbo bench table``, ``plot``, ``report`` and ``export``: what runs have shown, and what a reader must know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from edrbo.errors import EdrboError
from edrbo.records.settings import DEFAULT

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


def export(results: Directory, out: Annotated[Path, typer.Option(help="File to write, .csv or .csv.gz.")]) -> None:
    """Write all finished runs as one compact table, which table, plot and report read as well."""
    from edrbo.bench.analysis.results import export as write

    found, _ = read(results)
    write(found, out)
    Console(soft_wrap=True).print(f"wrote {len(found.runs)} runs to {out}", highlight=False, markup=False)
    print_notes(found)
