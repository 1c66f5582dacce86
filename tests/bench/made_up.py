"""Small made-up results for tests of statistics, tables, figures and the report."""

from __future__ import annotations

import numpy as np

from edrbo.bench.analysis.results import ReplicateRun, Results
from edrbo.bench.run.replicate import ROBUST_REGRETS

PROBLEMS = ("newsvendor", "ackley", "hartmann")
METHODS = {"edrbo": 1.0, "erbo": 1.3, "stableopt": 4.0, "ucb": 2.0}


def made_up(seeds: int = 6, steps: int = 20, methods: dict[str, float] | None = None, suffix: str = "") -> Results:
    """Runs whose regrets are the level of the method times falling noise."""
    rng = np.random.default_rng(0)
    runs = []
    for scale, problem in zip((1.0, 50.0, 0.2), PROBLEMS, strict=True):
        for method, level in (methods or METHODS).items():
            for seed in range(100, 100 + seeds):
                regret = scale * level * rng.random(steps) / np.arange(1, steps + 1)
                recommended = {kind: float(scale * level * rng.random()) for kind in ("simple", *ROBUST_REGRETS)}
                runs.append(
                    ReplicateRun(problem, method + suffix, seed, regret, level * rng.random(steps), recommended)
                )
    return Results(tuple(runs))
