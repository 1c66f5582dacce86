"""``edrbo run``: evaluate suggestions with a command; ``edrbo demo``: the whole job on an invented problem."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from edrbo.lab.cli.options import ByOption, JsonOption, NameOption
from edrbo.lab.cli.output import print_json, say
from edrbo.lab.cli.read_arguments import opened

if TYPE_CHECKING:
    from edrbo.lab.runner import Evaluated


def run(
    study: Annotated[str, typer.Argument(help="The study: its .toml file, its .db file or a PostgreSQL URL.")],
    command: Annotated[list[str], typer.Argument(help="The command, after --; {name} is replaced by its setting.")],
    evaluations: Annotated[int, typer.Option("--evaluations", "-n", min=1, help="How many evaluations.")] = 10,
    workers: Annotated[int, typer.Option("--workers", "-w", min=1, help="How many at the same time.")] = 1,
    timeout: Annotated[float | None, typer.Option(help="Seconds after which an evaluation has failed.")] = None,
    name: NameOption = None,
    by: ByOption = None,
    pending: Annotated[bool, typer.Option("--pending", help="First those left pending by a run that ended.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a command per suggestion: edrbo run coating.toml -- ./simulate {speed} {dose}

    The command prints JSON, as {"value": 1.7, "context": {"humidity": 0.4}}. One that crashes or hangs is a failed
    evaluation. Ctrl-C ends the running commands; their suggestions stay pending.
    """
    from edrbo.lab.runner import Runner

    with opened(study, name, by, create="first") as opened_study:
        runner = Runner(
            opened_study,
            command,
            workers=workers,
            timeout=timeout,
            report=_print_json if as_json else _print_line,
        )
        numbers = (signal.SIGTERM, signal.SIGINT)
        before = [signal.signal(number, lambda number, frame: runner.interrupt()) for number in numbers]
        try:
            runner.run(evaluations, opened_study.pending if pending else [])
        except KeyboardInterrupt:
            say(f"stopped after {runner.succeeded + runner.failed} evaluations; the rest stays pending", err=True)
            raise typer.Exit(130) from None
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)
    if not as_json:
        say(f"{runner.succeeded} evaluated, {runner.failed} failed")
    if not runner.succeeded:
        raise typer.Exit(1)


def _print_line(answer: Evaluated) -> None:
    design = ", ".join(f"{name}={_short(value)}" for name, value in answer.suggestion.design.items())
    if answer.problem is not None:
        say(f"{answer.suggestion.id:>5}  {design}  failed: {answer.problem}", style="yellow")
        return
    context = "".join(f", {name}={_short(value)}" for name, value in (answer.context or {}).items())
    say(f"{answer.suggestion.id:>5}  {design}{context}  value {_short(answer.value)}")


def _print_json(answer: Evaluated) -> None:
    print_json(
        {
            "id": answer.suggestion.id,
            "design": answer.suggestion.design,
            "context": answer.context,
            "value": answer.value,
            "problem": answer.problem,
        }
    )


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


EVERY = 5  # evaluations between two looks at the current recommendation


def demo(
    evaluations: Annotated[int, typer.Option(min=6, help="How many evaluations to spend.")] = 40,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    out: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path("edrbo-demo.png"),
) -> None:
    """Order stock before demand is known: EDRBO on the newsvendor problem."""
    console = Console()
    console.print(
        "You order x, then the world shows the demand c: y = 9·min(x, c) + max(0, x − c) − 5x.\n"
        "Which order earns most [bold]on average[/bold] over demands you do not know?"
    )
    import numpy as np

    from edrbo import Optimizer, Space
    from edrbo.bench import problems
    from edrbo.plot import belief
    from edrbo.streams import stream
    from edrbo.text import answer_text

    problem = problems.get("newsvendor")
    world = stream(seed, "contexts")
    optimizer = Optimizer(Space(design={"order": (0, 1)}, context={"demand": (0, 1)}), seed=seed)
    columns = (
        TextColumn("evaluations"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=evaluations)
        for i in range(1, evaluations + 1):
            suggestion = optimizer.ask()
            demand = problem.sample_contexts(1, world)
            value = float(problem.evaluate(np.array([[suggestion["order"]]]), demand)[0])
            optimizer.tell(suggestion, {"demand": float(demand[0, 0])}, value)
            if i % EVERY == 0:
                now = optimizer.recommend()
                low, high = now.interval
                text = f"order {now.design['order']:.4f} earns {now.expected:.3f} ({low:.3f} to {high:.3f})"
                progress.update(task, description=text)
            progress.advance(task)
    answer = optimizer.recommend()
    x = answer.design["order"]
    shifted = float(problem.worst_case(problem.x_star[None], answer.radius)[0])
    table = Table(header_style="bold", title="the answer")
    for heading in ("", "recommended", "true optimum"):
        table.add_column(heading, justify="right" if heading else "left")
    table.add_row("order quantity", f"{x:.4f}", f"{problem.x_star[0]:.4f}")
    table.add_row(
        "expected earnings, exact", f"{float(problem.expected(np.array([[x]]))[0]):.4f}", f"{problem.optimum:.4f}"
    )
    table.add_row("  as believed", f"{answer.expected:.4f}", "")
    table.add_row("  95 % interval", "{:.4f} … {:.4f}".format(*answer.interval), "")
    for source, words in (("model", "the model"), ("contexts", "few demands seen"), ("experts", "the experts")):
        table.add_row(f"    ± from {words}", f"{answer.interval_parts[source]:.4f}", "")
    table.add_row("  next single day", "{:.4f} … {:.4f}".format(*answer.outcome_interval), "")
    table.add_row("  robust: less √2 × disagreement", f"{answer.robust:.4f}", "")
    table.add_row(
        f"  worst if demands move {100 * answer.radius:g} %, 95 % sure",
        f"{answer.worst_case:.4f}",
        f"{shifted:.4f}",
    )
    console.print(table)
    said = answer_text(answer, optimizer.settings)
    for fact in said.facts:
        console.print(f"{fact.label}: {fact.value} ({fact.explanation})", highlight=False)
    for doubt in said.doubts:
        console.print(doubt)
    belief(optimizer, truth=lambda order: problem.expected(order[:, None])).savefig(out)
    console.print(f"picture: {out}", soft_wrap=True, highlight=False)
