"""``edrbo bench …``. Each command parses, calls and prints; what is heavy loads inside the command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from edrbo.errors import EdrboError, InvalidValueError
from edrbo.records.settings import DEFAULT

if TYPE_CHECKING:
    from edrbo.bench.analysis.results import Results
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


def list_problems() -> None:
    """List the problems: dimensions, context distribution and the best expected value."""
    from edrbo.bench import problems

    table = Table(title="maximize E f(x) over x in the unit cube", box=SIMPLE)
    table.add_column("problem", no_wrap=True)
    table.add_column("d_x", justify="right")
    table.add_column("d_c", justify="right")
    table.add_column("context distribution")
    table.add_column("max E f", justify="right", no_wrap=True)
    notes = set()
    for name in problems.names():
        problem = problems.get(name)
        sizes = (str(problem.d_x), str(problem.d_c))
        table.add_row(name, *sizes, problem.context_distribution.describe(), f"{problem.optimum:.8f}")
        if problem.data:
            notes.add(f"portfolio data: {problem.data}")
    console = Console()
    console.print(table)
    for note in sorted(notes):
        console.print(note)


WIDEST = 8  # design variables that a picture shows


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


Directory = Annotated[Path, typer.Argument(help="Directory of `edrbo bench run`, or a table of `edrbo bench export`.")]
Published = Annotated[Path | None, typer.Option(help="Table of published runs to show next to ours.")]
Against = Annotated[str, typer.Option(help="Method in question: shown strongly, and tested against all others.")]


ShownProblems = Annotated[str | None, typer.Option("--problems", help="Those to show, in this order: ackley,hartmann.")]
ShownMethods = Annotated[str | None, typer.Option("--methods", help="Those to show, in this order: edrbo,ucb.")]
ShownNames = Annotated[
    list[str] | None,
    typer.Option("--name", help="What to call a problem or method: 'ucb=GP-UCB'; may be given again."),
]
ShownSize = Annotated[str | None, typer.Option("--size", help="Of a figure, width by height in inches: 7x4.5.")]


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


def read_chosen(
    path: Path, published: Path | None, problems: str | None, methods: str | None, names: list[str] | None
) -> tuple[Results, Results | None]:
    """The same, as far as it is to be shown, in the order and by the names that are wanted."""
    from edrbo.bench.analysis.results import base_name, choose

    found, others = read(path, published)
    called = dict(map(_read_name, names or []))
    chosen = choose(found, _split(problems), _split(methods), called)
    if others is None:
        return chosen, None
    known = {*others.problems, *map(base_name, others.methods)}
    shown = [method for method in chosen.methods if method in known]
    return chosen, choose(others, chosen.problems, shown, {one: name for one, name in called.items() if one in known})


def _split(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _read_name(text: str) -> tuple[str, str]:
    name, sign, shown = text.partition("=")
    if not (name.strip() and sign and shown.strip()):
        raise InvalidValueError(f"{text!r} names nothing", "write it as ucb=GP-UCB")
    return name.strip(), shown.strip()


def _read_size(text: str | None) -> tuple[float, float] | None:
    """Inches."""
    if text is None:
        return None
    try:
        width, height = (float(part) for part in text.lower().replace("×", "x").split("x"))
    except ValueError:
        width = height = 0.0
    if not (1 <= width <= 50 and 1 <= height <= 50):
        raise InvalidValueError(f"{text!r} is no size", "width by height in inches, as 7x4.5")
    return width, height


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
    problems: ShownProblems = None,
    methods: ShownMethods = None,
    names: ShownNames = None,
    out: Annotated[Path | None, typer.Option(help="File to write instead of printing.")] = None,
) -> None:
    """Mean ± std of regrets, best bold, second underlined, with average ranks and paired tests."""
    from edrbo.bench.analysis.tables import render

    found, others = read_chosen(results, published, problems, methods, names)
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
    problems: ShownProblems = None,
    methods: ShownMethods = None,
    names: ShownNames = None,
    size: ShownSize = None,
) -> None:
    """Draw regret curves, time per suggestion and the critical-difference diagrams."""
    from edrbo.bench.analysis.figures import save_figures

    found, others = read_chosen(results, published, problems, methods, names)
    directory = out or (results / "figures" if results.is_dir() else Path("figures"))
    say_written(*save_figures(found, directory, _read_formats(formats), others, against, dark, _read_size(size)))
    print_notes(found)


def paper(
    results: Directory,
    out: Annotated[Path, typer.Option(help="Directory of figure and tables.")] = Path("paper"),
    formats: Annotated[str, typer.Option("--format", help="Of the figure: pdf, png, svg, or several.")] = "pdf",
    problems: ShownProblems = None,
    methods: ShownMethods = None,
    names: ShownNames = None,
    size: ShownSize = None,
) -> None:
    """Figure and LaTeX tables in the layout of the paper: regret.pdf, table-final.tex, table-mean.tex."""
    from edrbo.bench.analysis.paper import write_paper

    found, _ = read_chosen(results, None, problems, methods, names)
    say_written(*write_paper(found, out, _read_formats(formats), _read_size(size), keep_order=methods is not None))
    print_notes(found)


def _read_formats(text: str) -> list[str]:
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


app = typer.Typer(help="Problems with exact oracles, and benchmarks on them.", no_args_is_help=True)
app.command("problems")(list_problems)
app.command("show")(show_problem)
app.command("portfolio")(portfolio_data)
app.command("run")(run)
app.command("table")(table)
app.command("plot")(plot)
app.command("paper")(paper)
app.command("report")(report)
app.command("export")(export)
