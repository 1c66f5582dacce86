"""``edrbo bench run``, ``table``, ``plot``, ``report`` and ``export``: parse, call, print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from edrbo.bench.analysis.results import Results
    from edrbo.bench.run.execute import Event
    from edrbo.bench.run.sweep import Plan

SMOKE_SEEDS, SMOKE_EVALUATIONS = "100:102", 8
TRACEBACKS = 5  # shown at the end of a run


def register(app: typer.Typer) -> None:
    """Add the commands to ``edrbo bench``."""
    app.command("run")(run)
    app.command("table")(table)
    app.command("plot")(plot)
    app.command("report")(report)
    app.command("export")(export)


def run(
    out: Annotated[Path, typer.Option(help="Directory of the results.")],
    problems: Annotated[
        str, typer.Option(help="all (the nine of the paper), further, or names with commas between.")
    ] = "all",
    methods: Annotated[str, typer.Option(help="all (the nine of the paper), or names with commas between.")] = "all",
    seeds: Annotated[str, typer.Option(help="first:end, or numbers with commas between.")] = "100:110",
    evaluations: Annotated[int, typer.Option(help="Evaluations per replicate, the initial ones included.")] = 200,
    initial: Annotated[int, typer.Option(help="Quasi-random designs at the beginning.")] = 5,
    noise: Annotated[float, typer.Option(help="Standard deviation of noise added to the outcomes.")] = 0.0,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes, one thread each.")] = 2,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is in the directory.")] = False,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="Two seeds of eight evaluations, to see that it runs.")
    ] = False,
    plugin: Annotated[Path | None, typer.Option(help="A Python file with your own METHODS or PROBLEMS.")] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to run on instead.")] = None,
) -> None:
    """Run methods on problems. Nothing finished is lost: stop it at any time, go on with --resume."""
    from edrbo.bench.run.plugin import Plugin
    from edrbo.bench.run.replicate import Settings
    from edrbo.bench.run.sweep import all_replicates, make_plan, sole_writer

    if smoke:
        seeds, evaluations = SMOKE_SEEDS, SMOKE_EVALUATIONS
    settings = Settings(evaluations, initial, noise)
    own = None if plugin is None else Plugin.read(plugin)
    replicates = all_replicates(problems, methods, seeds, settings, own)
    console = Console(soft_wrap=True)
    with sole_writer(out):
        plan = make_plan(replicates, out, resume)
        console.print(f"{len(plan.todo)} replicates to run, {plan.finished} finished before; results in {out}")
        failures = _follow(plan, out, workers, dask, console)
    _show_failures(failures, console)
    console.print(f"next: edrbo bench table {out}", highlight=False)
    if failures:
        raise typer.Exit(1)


def _follow(plan: Plan, out: Path, workers: int, dask: str | None, console: Console) -> list[Event]:
    """Run what is left, show how it goes, and return the failures."""
    from contextlib import ExitStack, closing

    from edrbo.bench.run.dask_cluster import connect, run_on_dask
    from edrbo.bench.run.execute import run_on_processes
    from edrbo.bench.run.progress import Progress

    try:
        with ExitStack() as stack:
            if dask is None:
                events = run_on_processes(plan.todo, out, workers)
            else:
                client = stack.enter_context(connect(dask))
                workers = max(1, len(client.nthreads()))
                events = run_on_dask(plan.todo, out, client)
            progress = stack.enter_context(Progress(plan.todo, plan.finished, workers, console))
            for event in stack.enter_context(closing(events)):
                progress.update(event)
    except KeyboardInterrupt:
        console.print("stopped; every finished evaluation is kept. Go on with the same command and --resume.")
        raise typer.Exit(130) from None
    return progress.failures


def _show_failures(failures: list[Event], console: Console) -> None:
    """One line each; tracebacks of the first few, since the journals have them all."""
    for i, event in enumerate(failures):
        assert event.failure is not None
        console.print("failed", style="bold red", end=" ")
        console.print(f"{event.replicate}: {event.failure.error}", highlight=False, markup=False)
        if i < TRACEBACKS:
            console.print(event.failure.traceback.rstrip(), style="dim", highlight=False, markup=False)
    if failures:
        console.print(f"{len(failures)} replicates failed; --resume tries them again.", highlight=False)


Directory = Annotated[Path, typer.Argument(help="Directory of `edrbo bench run`, or a table of `edrbo bench export`.")]
Published = Annotated[Path | None, typer.Option(help="Table of published runs to show next to ours.")]


def table(
    results: Directory,
    statistic: Annotated[str, typer.Option(help="all, or one of final, mean, simple, shift-down, …")] = "all",
    style: Annotated[str, typer.Option("--format", help="terminal, markdown, latex or csv.")] = "terminal",
    against: Annotated[str, typer.Option(help="Method to test against all others.")] = "edrbo",
    published: Published = None,
    out: Annotated[Path | None, typer.Option(help="File to write instead of printing.")] = None,
) -> None:
    """Mean ± std of regrets, best bold, second underlined, with average ranks and paired tests."""
    from edrbo.bench.analysis.results import load_published, load_results, only_problems
    from edrbo.bench.analysis.tables import render

    found = load_results(results)
    others = None if published is None else only_problems(load_published(published), found.problems)
    console = Console(soft_wrap=True)
    text = render(found, others, statistic, style, against, console.width, out is None and console.is_terminal)
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
        console.print(f"wrote {out}", highlight=False)


def plot(
    results: Directory,
    out: Annotated[Path | None, typer.Option(help="Directory of the figures; by default `figures` in DIR.")] = None,
    formats: Annotated[str, typer.Option("--format", help="png, svg, pdf, with commas between.")] = "png,svg",
    published: Published = None,
) -> None:
    """Draw regret curves, time per suggestion and the critical-difference diagrams."""
    from edrbo.bench.analysis.plot import save_figures
    from edrbo.bench.analysis.results import load_published, load_results, only_problems

    found = load_results(results)
    others = None if published is None else only_problems(load_published(published), found.problems)
    directory = out or (results / "figures" if results.is_dir() else Path("figures"))
    console = Console(soft_wrap=True)
    for path in save_figures(found, directory, _read_formats(formats), others):
        console.print(f"wrote {path}", highlight=False)
    _print_notes(found, console)


def _read_formats(text: str) -> list[str]:
    from edrbo.errors import InvalidValueError

    formats = [part.strip() for part in text.split(",")]
    if not set(formats) <= {"png", "svg", "pdf"}:
        raise InvalidValueError(f"cannot draw {text!r}", "png, svg, pdf, or several with commas between")
    return formats


def _print_notes(results: Results, console: Console) -> None:
    from edrbo.bench.analysis.tables import notes

    for note in notes(results):
        console.print(note, highlight=False, markup=False)


def report(
    results: Directory,
    out: Annotated[Path | None, typer.Option(help="Page to write; by default report.html in DIR.")] = None,
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "edrbo benchmark",
    published: Published = None,
) -> None:
    """Write one interactive HTML page of everything; it needs no network."""
    from edrbo.bench.analysis.report import write_report
    from edrbo.bench.analysis.results import load_published, load_results, only_problems

    found = load_results(results)
    others = None if published is None else only_problems(load_published(published), found.problems)
    path = out or (results / "report.html" if results.is_dir() else Path("report.html"))
    write_report(found, path, others, title)
    console = Console(soft_wrap=True)
    console.print(f"wrote {path}", highlight=False)
    _print_notes(found, console)


def export(results: Directory, out: Annotated[Path, typer.Option(help="File to write, .csv or .csv.gz.")]) -> None:
    """Write all finished runs as one compact table, which table, plot and report read as well."""
    from edrbo.bench.analysis.results import export as write
    from edrbo.bench.analysis.results import load_results

    found = load_results(results)
    write(found, out)
    console = Console(soft_wrap=True)
    console.print(f"wrote {len(found.runs)} runs to {out}", highlight=False)
    _print_notes(found, console)
