"""``edrbo bench run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from edrbo.bench.run.execute import Plan, SweepEvent

SMOKE_SEEDS, SMOKE_EVALUATIONS = "100:102", 8
TRACEBACKS = 5  # shown at the end of a run


def run(
    out: Annotated[Path, typer.Option(help="Directory of the results.")],
    problems: Annotated[
        str,
        typer.Option(help="all (the paper's nine), further, high, classic, bbob, or names with commas between."),
    ] = "all",
    methods: Annotated[str, typer.Option(help="all (the nine of the paper), or names with commas between.")] = "all",
    seeds: Annotated[str, typer.Option(help="first:end, or numbers with commas between.")] = "100:110",
    evaluations: Annotated[int, typer.Option(help="Evaluations per replicate, the initial ones included.")] = 200,
    initial: Annotated[int, typer.Option(help="Quasi-random designs at the beginning.")] = 5,
    noise: Annotated[
        str, typer.Option(help="Standard deviation of noise added to the outcomes; 5% is that of each problem's range.")
    ] = "0",
    goal: Annotated[
        str, typer.Option(help="What is best, as in `edrbo new`: expected, cvar:0.1, robust:0.1, …")
    ] = "expected",
    looks: Annotated[
        str, typer.Option(help="Judge the recommendation after these numbers of evaluations too: 50,100.")
    ] = "",
    also: Annotated[
        list[str] | None, typer.Option(help="A further goal to recommend under, from the same evaluations.")
    ] = None,
    changes: Annotated[
        bool,
        typer.Option(
            "--changes/--no-changes",
            help="Judge the recommendation in changed worlds too. Each takes a search for its best design, once.",
        ),
    ] = True,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes, one thread each.")] = 2,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is in the directory.")] = False,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="Two seeds of eight evaluations, to see that it runs.")
    ] = False,
    plugin: Annotated[
        Path | None, typer.Option(help="A Python file with METHODS, PROBLEMS or goals of your own.")
    ] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to run on instead.")] = None,
) -> None:
    """Run methods on problems. Nothing finished is lost: stop it at any time, go on with --resume."""
    from edrbo.bench.run.execute import all_replicates, make_plan, read_looks, read_noise, sole_writer
    from edrbo.bench.run.plugin import Plugin
    from edrbo.bench.run.replicate import ReplicateSettings

    if smoke:
        seeds, evaluations = SMOKE_SEEDS, SMOKE_EVALUATIONS
    sd, share = read_noise(noise)
    own = None if plugin is None else Plugin.read(plugin)  # first: it may register the goal
    settings = ReplicateSettings(evaluations, initial, sd, goal, read_looks(looks), tuple(also or ()), share, changes)
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


def _follow(plan: Plan, out: Path, workers: int, dask: str | None, console: Console) -> list[SweepEvent]:
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


def _show_failures(failures: list[SweepEvent], console: Console) -> None:
    """One line each; tracebacks of the first few, since the journals have them all."""
    for i, event in enumerate(failures):
        assert event.failure is not None
        console.print("failed", style="bold red", end=" ")
        console.print(f"{event.replicate}: {event.failure.error}", highlight=False, markup=False)
        if i < TRACEBACKS:
            console.print(event.failure.traceback.rstrip(), style="dim", highlight=False, markup=False)
    if failures:
        console.print(f"{len(failures)} replicates failed; --resume tries them again.", highlight=False)
