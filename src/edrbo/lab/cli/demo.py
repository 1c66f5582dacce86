"""``edrbo demo``: the whole job on the newsvendor problem in under half a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

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
