"""Limits on a second outcome: is the recommended design within them in truth, and how good is it?

    python research/outcomes.py run --out research/results/outcomes.csv --seeds 0 5     # seeds 0–4
    python research/outcomes.py table research/results/outcomes.csv

Each run is one of ``research/limited_problems.py`` with 60 evaluations; f and g are reported with their noise and the
context they met. After 20, 40 and 60 of them a design is recommended. ``share`` is the true share of contexts in which
it keeps the limit, ``gap`` how much worse it is on average than the best design that keeps it, as a part of the range.

Rows are written as they come, and what the file holds is not run again.
"""

from __future__ import annotations

import argparse
import csv
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from limited_problems import LimitedProblem, get_limited, limited_names

import edrbo
from edrbo.streams import stream

SIZES = (20, 40, 60)
FIELDS = ("problem", "seed", "n", "keeps", "share", "gap", "sure", "holds", "x")
Row = dict[str, str]


def optimizer_for(problem: LimitedProblem, seed: int) -> edrbo.Optimizer:
    space = edrbo.Space(
        {f"x{i}": (0.0, 1.0) for i in range(problem.d_x)}, {f"c{k}": (0.0, 1.0) for k in range(problem.problem.d_c)}
    )
    return edrbo.Optimizer(space, outcomes={"f": edrbo.Maximize(), "g": problem.limit}, seed=seed)


def run(problem: LimitedProblem, seed: int) -> Iterator[Row]:
    optimizer = optimizer_for(problem, seed)
    contexts = problem.problem.sample_contexts(SIZES[-1], stream(seed, "contexts"))
    noise = stream(seed, "noise")
    for n, c in enumerate(contexts, 1):
        suggestion = optimizer.ask()
        f, g = problem.observe(np.array(list(suggestion.design.values())), c, noise)
        optimizer.tell(suggestion, c, {"f": f, "g": g})
        if n in SIZES:
            found = optimizer.recommend()
            x = np.array(list(found.design.values()))
            yield {
                "problem": problem.name,
                "seed": str(seed),
                "n": str(n),
                "keeps": str(int(problem.keeps(x))),
                "share": f"{float(problem.share(x)):.5f}",
                "gap": f"{problem.gap(x):.5f}",
                "sure": str(int(bool(found.limits_hold))),
                "holds": f"{found.outcomes['g'].holds:.4f}",
                "x": " ".join(f"{part:.5f}" for part in x),
            }


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def run_all(path: Path, names: list[str], seeds: range) -> None:
    done = {(row["problem"], row["seed"]) for row in read(path) if row["n"] == str(SIZES[-1])}
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if new:
            writer.writeheader()
        for seed in seeds:
            for name in names:
                if (name, str(seed)) not in done:
                    writer.writerows(run(get_limited(name), seed))
                    file.flush()


def table(path: Path) -> None:
    rows = read(path)
    for words, chosen in (("seeds 0-4, on which it was chosen", range(5)), ("later seeds", range(5, 1000))):
        print(words)
        print("problem    n  runs  keeps its limit  said to be sure  gap: median (middle half)")
        for name, n in itertools.product(limited_names(), SIZES):
            some = [row for row in rows if row["problem"] == name and row["n"] == str(n) and int(row["seed"]) in chosen]
            if some:
                print(f"{name:<8} {n:>3} {_summary(some)}")


def _summary(rows: list[Row]) -> str:
    kept, sure = (sum(int(row[key]) for row in rows) for key in ("keeps", "sure"))
    low, middle, high = np.quantile([float(row["gap"]) for row in rows], [0.25, 0.5, 0.75])
    of = f"{kept:>9} of {len(rows):<6} {sure:>9} of {len(rows):<6}"
    return f"{len(rows):>5} {of} {middle:>10.3f} ({low:.3f} … {high:.3f})"


def main() -> None:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--seeds", type=int, nargs=2, default=(0, 5), metavar=("FROM", "TO"))
    running.add_argument("--problems", nargs="*", default=limited_names())
    commands.add_parser("table").add_argument("file", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "run":
        run_all(arguments.out, arguments.problems, range(*arguments.seeds))
    else:
        table(arguments.file)


if __name__ == "__main__":
    main()
