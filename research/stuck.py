"""Why a run stays where it is: what the model of a journal believes of the true optimum, and of the last design.

    python research/stuck.py RESULTS/replicates/PROBLEM/METHOD/SEED.jsonl [--observations 150]

For both designs: the true expected value, and under the estimated context distribution the mean over contexts of μ̄, σ̄
and ε̂, the acquisition with and without the radius, and the standard deviation of the expectation itself (what
edrbo-integrated explores by).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from edrbo import Optimizer
from edrbo.acquisition.scores import BETA, SQRT2
from edrbo.bench.learners.learner import Setup
from edrbo.bench.run.journal import read_journal
from edrbo.bench.run.plugin import get_problem
from edrbo.surrogate.ensemble import barycenter, radius


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("journal", type=Path)
    parser.add_argument("--observations", type=int, default=150)
    options = parser.parse_args()
    torch.set_num_threads(1)
    record = read_journal(options.journal)
    if record is None:
        raise SystemExit(f"{options.journal} is not the journal of a replicate")
    problem = get_problem(record.header["problem"])
    seed, seen = record.header["seed"], record.evaluations[: options.observations]
    optimizer = Optimizer(Setup(problem.d_x, problem.d_c, seed, 5).space, "edrbo", seed=seed, initial=5)
    for one in seen:
        optimizer.tell(dict(zip(optimizer.space.design_names, one.x, strict=True)), list(one.c), one.y)
    model = optimizer.model
    assert model is not None  # there are observations enough
    designs = torch.tensor(np.array([problem.x_star, seen[-1].x]))
    atoms = torch.tensor([one.c for one in seen], dtype=torch.float64)  # the distribution of `edrbo`: the contexts seen
    weights = torch.full((len(seen),), 1.0 / len(seen), dtype=torch.float64)
    paired = model.paired_with(atoms)
    with torch.no_grad():
        mean, sd = paired.moments(designs)
        center, spread = (part.reshape(2, -1) @ weights for part in barycenter(mean, sd))
        apart = radius(mean, sd).reshape(2, -1) @ weights
        of_expectation = paired.integrated(designs, weights)[1].mean(0)
    table = Table(
        title=f"edrbo's model of {len(seen)} observations by {record.header['method']}, {problem.name}, seed {seed}"
    )
    headings = ("design", "true", "μ̄", "σ̄", "ε̂", "μ̄ + βσ̄", "μ̄ + βσ̄ − √2ε̂", "sd of the expectation")
    for heading in headings:
        table.add_column(heading, justify="right")
    for i, name in enumerate(("optimum", "last")):
        upper = center[i] + BETA * spread[i]
        numbers = (
            float(problem.expected(designs[i : i + 1].numpy())[0]),
            *(float(value[i]) for value in (center, spread, apart)),
            float(upper),
            float(upper - SQRT2 * apart[i]),
            float(of_expectation[i]),
        )
        table.add_row(name, *(f"{number:.3g}" for number in numbers))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
