"""Whether ``recommend().worst_case`` is at or below the true worst case at the recommended design.

Four problems, ten seeds, after 40 and after 100 evaluations without noise: 80 answers. The truth is the worst mean over
all distributions within Wasserstein-1 distance 0.1 of the true one. Resumable: answers that are in the file are not
made again.

    OMP_NUM_THREADS=1 python research/worst_case.py research/results/worst_case.csv
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
import torch

import edrbo
from edrbo.bench.problems import get

PROBLEMS = ("newsvendor", "three-hump-camel", "hartmann", "modified-branin")
SIZES = (40, 100)
BALL = 0.1
FIELDS = ("problem", "seed", "evaluations", "claimed", "truth")


def answers(name: str, seed: int) -> list[dict[str, str]]:
    """What one run claims and what is true, at each size."""
    problem = get(name)
    space = edrbo.Space(
        design={f"x{i}": (0.0, 1.0) for i in range(problem.d_x)},
        context={f"c{i}": (0.0, 1.0) for i in range(problem.d_c)},
    )
    optimizer, rng, rows = edrbo.Optimizer(space, seed=seed), np.random.default_rng(seed), []
    while len(optimizer) < max(SIZES):
        suggestion = optimizer.ask()
        x, c = np.array(list(suggestion.design.values())), problem.sample_contexts(1, rng)[0]
        optimizer.tell(suggestion, c, float(problem.objective(x[None], c[None])[0]))
        if len(optimizer) in SIZES:
            found = optimizer.recommend(radius=BALL)
            truth = float(problem.worst_case(np.array([list(found.design.values())]), BALL)[0])
            numbers = f"{found.worst_case:.6g}", f"{truth:.6g}"
            rows.append(dict(zip(FIELDS, (name, str(seed), str(len(optimizer)), *numbers), strict=True)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = list(csv.DictReader(arguments.file.open())) if arguments.file.exists() else []
    done = {(row["problem"], row["seed"]) for row in rows}
    for seed in range(arguments.seeds):
        for name in PROBLEMS:
            if (name, str(seed)) in done:
                continue
            rows += answers(name, seed)
            with arguments.file.open("w", newline="") as file:
                writer = csv.DictWriter(file, FIELDS)
                writer.writeheader()
                writer.writerows(rows)
    for name in PROBLEMS:
        mine = [row for row in rows if row["problem"] == name]
        below = sum(float(row["claimed"]) <= float(row["truth"]) for row in mine)
        print(f"{name:<18} at or below the truth in {below} of {len(mine)}")


if __name__ == "__main__":
    main()
