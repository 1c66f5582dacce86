"""What asking for eight designs at a time costs: 40 evaluations in five batches beside 40 one by one.

    OMP_NUM_THREADS=1 python benchmarks/batches.py run [--seeds 0:10] [--problems all] [--out RUNS]
    python benchmarks/batches.py table [RUNS]

RUNS is benchmarks/results/batches.csv unless told otherwise; a row is a run, and what is there is not run again. The
regret is that of the recommendation in the end, as a share of the range of the expected values; ``close`` counts
designs of a batch with another one within a hundredth of the range of every variable.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from arguments import problem_names, seed_range
from kept_runs import add, rows
from rich.console import Console
from rich.progress import track
from rich.table import Table
from states import space_of

from edrbo import Optimizer
from edrbo.bench import problems
from edrbo.streams import stream

RESULTS = Path(__file__).parent / "results" / "batches.csv"
EVALUATIONS, SIZES, CLOSE = 40, (1, 8), 0.01
FLOOR = 1e-4  # of the range: regrets below it are as good as none, and their ratios mean nothing
COLUMNS = ("problem", "size", "seed", "regret", "close", "seconds")


def run(name: str, size: int, seed: int) -> dict[str, object]:
    problem = problems.get(name)
    contexts = problem.sample_contexts(200, stream(seed, "contexts", name))
    optimizer, close, began, t = Optimizer(space_of(problem), seed=seed, initial=5), 0, time.process_time(), 0
    while t < EVALUATIONS:
        batch = optimizer.ask(size)
        designs = np.array([list(suggestion.design.values()) for suggestion in batch])
        apart = np.abs(designs[:, None] - designs).max(-1) + np.eye(size)
        close += int((apart.min(1) < CLOSE).sum())
        for suggestion, x in zip(batch, designs, strict=True):
            y = problem.observe(x, contexts[t], stream(seed, "observation noise", name, t))
            optimizer.tell(suggestion, contexts[t].tolist(), float(y))
            t += 1
    x = np.array(list(optimizer.recommend().design.values()))
    return {
        **{
            "problem": name,
            "size": size,
            "seed": seed,
            "regret": f"{float(problem.regret(x)) / problem.value_range:.6g}",
        },
        **{"close": close, "seconds": f"{time.process_time() - began:.1f}"},
    }


def run_all(options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    done = {(row["problem"], row["size"], row["seed"]) for row in rows(options.out)}
    wanted = [(name, size, seed) for seed in options.seeds for name in options.problems for size in SIZES]
    left = [one for one in wanted if tuple(map(str, one)) not in done]
    for one in track(left, f"{len(left)} runs"):
        add(options.out, COLUMNS, run(*one))


def table(options: argparse.Namespace) -> None:
    found = {(r["problem"], int(r["size"]), int(r["seed"])): r for r in rows(options.out)}
    shown = Table(title=f"{EVALUATIONS} evaluations: eight at a time beside one by one")
    for heading in (
        "problem",
        "seeds",
        "one by one, thousandths",
        "in batches",
        "ratio of means",
        "paired ratio",
        "close",
    ):
        shown.add_column(heading, justify="left" if heading == "problem" else "right")
    ratios = []
    for name in dict.fromkeys(key[0] for key in found):
        seeds = [seed for problem, size, seed in found if problem == name and size == 1 and (name, 8, seed) in found]
        if not seeds:
            continue
        one, eight = (np.array([float(found[name, size, seed]["regret"]) for seed in seeds]) for size in SIZES)
        paired = float(np.exp(np.mean(np.log((eight + FLOOR) / (one + FLOOR)))))
        ratios.append((float((eight.mean() + FLOOR) / (one.mean() + FLOOR)), paired))
        close = sum(int(found[name, 8, seed]["close"]) for seed in seeds)
        cells = (f"{1e3 * one.mean():.2f}", f"{1e3 * eight.mean():.2f}", f"{ratios[-1][0]:.2f}", f"{paired:.2f}")
        shown.add_row(name, str(len(seeds)), *cells, f"{close} of {EVALUATIONS * len(seeds)}")
    console = Console(width=120)
    console.print(shown)
    of_means, paired_ratio = np.exp(np.log(np.array(ratios)).mean(0))
    console.print(
        f"geometric mean over problems: {of_means:.2f} of the ratios of means, {paired_ratio:.2f} of the paired ones"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(required=True)
    runner, shower = actions.add_parser("run"), actions.add_parser("table")
    runner.add_argument("--seeds", type=seed_range, default="0:10")
    runner.add_argument("--problems", type=problem_names, default="all")
    runner.add_argument("--out", type=Path, default=RESULTS)
    runner.set_defaults(call=run_all)
    shower.add_argument("out", type=Path, nargs="?", default=RESULTS)
    shower.set_defaults(call=table)
    options = parser.parse_args()
    options.call(options)


if __name__ == "__main__":
    main()
