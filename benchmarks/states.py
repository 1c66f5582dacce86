"""Realistic states to time on: half of the designs anywhere, half around the optimum, as a run leaves them."""

from __future__ import annotations

import numpy as np

from edrbo import Optimizer, Space
from edrbo.acquisition.methods import Method
from edrbo.bench import problems
from edrbo.bench.problems.problem import Problem
from edrbo.streams import stream


def space_of(problem: Problem) -> Space:
    return Space(
        design={f"x{i + 1}": (0, 1) for i in range(problem.d_x)},
        context={f"c{i + 1}": (0, 1) for i in range(problem.d_c)},
    )


def state(name: str, n: int, method: str | Method = "edrbo", seed: int = 0) -> Optimizer:
    """An optimizer that has been told ``n`` evaluations of the problem."""
    problem = problems.get(name)
    rng = stream(seed, "benchmark state", name, n)
    near = np.clip(problem.x_star + 0.15 * rng.standard_normal((n - n // 2, problem.d_x)), 0.0, 1.0)
    designs = np.concatenate([rng.random((n // 2, problem.d_x)), near])
    contexts = problem.sample_contexts(n, rng)
    values = problem.evaluate(designs, contexts)
    optimizer = Optimizer(space_of(problem), method, seed=seed)
    names = optimizer.space.design_names, optimizer.space.context_names
    for x, c, y in zip(designs, contexts, values, strict=True):
        optimizer.tell(dict(zip(names[0], x, strict=True)), dict(zip(names[1], c, strict=True)), float(y))
    return optimizer
