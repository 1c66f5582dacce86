"""What asking for eight designs at a time costs: 40 evaluations in five batches beside 40 one by one.

    OMP_NUM_THREADS=1 python research/batches.py run [--seeds 0:10] [--problems all] [--out RUNS]
    python research/batches.py table [RUNS]

RUNS is research/results/batches.csv unless reported otherwise; a row is a run, and what is there is not run again. The
regret is that of the recommendation in the end, as a share of the range of the expected values; ``close`` counts
designs of a batch with another one within a hundredth of the range of every variable.

The rules other than ``one context``, which is what the package does, are kept runs of commit 42d7819: ``all contexts``,
a pending design is known in all contexts at once, as it was before. Rules were chosen on seeds 0 to 6.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from arguments import problem_names, seed_range
from kept_runs import add, ratio_of, rows
from rich.console import Console
from rich.progress import track
from rich.table import Table

from edrbo import Optimizer
from edrbo.bench import problems
from edrbo.bench.learners.learner import Setup
from edrbo.streams import stream

RESULTS = Path(__file__).parent / "results" / "batches.csv"
EVALUATIONS, INITIAL, SIZES, CLOSE = 40, 5, (1, 8), 0.01
FLOOR = 1e-4  # of the range: regrets below it are as good as none, and their ratios mean nothing
KEYS = ("rule", "problem", "size", "seed")
COLUMNS = (*KEYS, "regret", "close", "seconds")
DEFAULT = "one context"


def run(name: str, size: int, seed: int) -> dict[str, object]:
    problem = problems.get(name)
    contexts = problem.sample_contexts(200, stream(seed, "contexts", name))
    space = Setup(problem.d_x, problem.d_c, seed, INITIAL).space
    optimizer, close, began, t = Optimizer(space, seed=seed, initial=INITIAL), 0, time.process_time(), 0
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
            "rule": DEFAULT,
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
    done = {tuple(row[key] for key in KEYS) for row in rows(options.out)}
    wanted = [(name, size, seed) for seed in options.seeds for name in options.problems for size in SIZES]
    left = [one for one in wanted if (DEFAULT, *map(str, one)) not in done]
    for one in track(left, f"{len(left)} runs"):
        add(options.out, COLUMNS, run(*one))


def table(options: argparse.Namespace) -> None:
    """A rule a row, beside one by one on the same seeds: geometric means over problems."""
    found = {tuple(row[key] for key in KEYS): row for row in rows(options.out)}
    shown = Table(title=f"{EVALUATIONS} evaluations: eight at a time beside one by one")
    heads = ("rule", "problems", "runs", "one by one, thousandths", "in batches", "ratio of means (95 %)", "close")
    for heading in heads:
        shown.add_column(heading, justify="left" if heading == "rule" else "right")
    for rule in dict.fromkeys(key[0] for key in found if key[2] == "8"):
        runs = [(name, seed) for r, name, size, seed in found if r == rule and size == "8"]
        pairs = {
            name: np.array(
                [
                    [float(found[key]["regret"]) for key in ((rule, name, "8", seed), (DEFAULT, name, "1", seed))]
                    for other, seed in runs
                    if other == name and (DEFAULT, name, "1", seed) in found
                ]
            )
            for name in dict.fromkeys(name for name, _ in runs)
        }
        eight, one = (np.mean([both[:, k].mean() for both in pairs.values()]) for k in range(2))
        ratio, low, high = ratio_of([both + FLOOR for both in pairs.values()])
        close = sum(int(found[rule, name, "8", seed]["close"]) for name, seed in runs)
        cells = (f"{1e3 * one:.1f}", f"{1e3 * eight:.1f}", f"{ratio:.2f} ({low:.2f} … {high:.2f})")
        shown.add_row(rule, str(len(pairs)), str(len(runs)), *cells, f"{close} of {EVALUATIONS * len(runs)}")
    Console(width=140).print(shown)


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
