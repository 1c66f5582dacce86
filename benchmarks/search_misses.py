"""How often the search for the next design misses the maximum under functionals whose surfaces have kinks.

    OMP_NUM_THREADS=1 python benchmarks/search_misses.py --seeds 4

States of several problems, half of the designs anywhere and half around the optimum. The same model is fitted to each,
and the acquisition is searched as ``ask`` does and again with many times the effort, from other points too. A miss is
more than a hundredth of the acquisition's range over 256 designs below the better of the two.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from search_quality import PROBLEMS, goal_of
from states import state
from torch import Tensor

from edrbo.acquisition.acquisition import RobustAcquisition
from edrbo.acquisition.methods import get_method
from edrbo.acquisition.search.maximizer import BUDGET, maximize
from edrbo.contexts.distributions import ContextHistory, Empirical, sobol_points
from edrbo.optimizer.optimizer import Optimizer
from edrbo.records.settings import DEFAULT
from edrbo.surrogate.ensemble import Surrogate

SIZES = (30, 80)
MISS = 0.01  # of the range
THOROUGH = replace(
    BUDGET, screened=4096, near=256, kept=160, expensive_kept=160, starts=16, expensive_starts=16, iterations=40,
    finalists=12, grid_finalists=8, tolerance=1e-6, first_tolerance=1e-5, expensive_patience=8, probes=24,
    probe_rounds=20,
)  # fmt: skip


def acquisition_of(kind: str, optimizer: Optimizer) -> Any:
    seen = optimizer.observations
    x, c, y = (torch.from_numpy(np.array(part)) for part in (seen.x, seen.c, seen.y))
    model = Surrogate().fit(torch.cat([x, c], dim=-1), y)
    zeros = torch.zeros(c.shape[1], dtype=torch.float64)
    history = ContextHistory(c, torch.ones(len(c), dtype=torch.float64), zeros, zeros + 1.0)
    if kind.startswith("drbo"):
        method = get_method(kind)
        functional = method.functional_at(len(x), c.shape[1])
        points = method.context_distribution.points(history, functional.support_size, 0)
        return RobustAcquisition(model, method.score, points, functional)
    goal = goal_of(kind, y)
    points = Empirical().points(history, goal.functional(soft=True).support_size, 0)
    return goal.acquisition(model, get_method(DEFAULT).score, points)


def missed(kind: str, problem: str, size: int, seed: int) -> float:
    """By how much of the range."""
    optimizer = state(problem, size, seed=seed)
    acquisition, space = acquisition_of(kind, optimizer), optimizer.space
    starts = torch.from_numpy(np.array(optimizer.observations.x))
    usual = maximize(acquisition.approximations(), space, seed=seed, starts=starts, kinks=acquisition.has_kinks).x
    found = [usual]
    for turn in range(2):
        begin = torch.cat([starts, usual[None], sobol_points(space.d_x, 64, seed + 100 + turn)])
        found.append(
            maximize(
                acquisition.approximations(),
                space,
                seed=seed + 1000 + turn,
                starts=begin,
                kinks=acquisition.has_kinks,
                budget=THOROUGH,
            ).x
        )
    return shortfall(acquisition, torch.stack(found))


def shortfall(acquisition: Any, x: Tensor) -> float:
    """Of the first of designs (N × d_x) from the best of them, a part of the range."""
    with torch.no_grad():
        values = acquisition.near(x)(x)
        sample = acquisition(sobol_points(x.shape[1], 256, seed=1))
    best = float(values.max())
    spread = max(best, float(sample.max())) - float(sample.min())
    return (best - float(values[0])) / spread if spread > 0 else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default="quantile:0.1,drbo-mmd")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for kind in arguments.kinds.split(","):
        short = {}
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            for problem in PROBLEMS:
                for size in SIZES:
                    key = f"{problem} {size} seed {seed}"
                    short[key] = missed(kind, problem, size, seed)
                    if short[key] > MISS:
                        print(f"  {kind}, {key}: {short[key]:.4f} of the range below", flush=True)
        values = np.array(list(short.values()))
        count = np.sum(values > MISS)
        print(
            f"{kind}: {count} of {len(values)} missed, mean {values.mean():.5f}, worst {values.max():.4f}", flush=True
        )


if __name__ == "__main__":
    main()
