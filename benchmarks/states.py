"""Realistic states to time on: half of the designs anywhere, half around the optimum, as a run leaves them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edrbo import Optimizer, Space
from edrbo.acquisition.methods import Method
from edrbo.bench import problems
from edrbo.bench.problems.problem import Problem
from edrbo.streams import stream

Array = NDArray[np.float64]


def space_of(problem: Problem) -> Space:
    return Space(
        design={f"x{i + 1}": (0, 1) for i in range(problem.d_x)},
        context={f"c{i + 1}": (0, 1) for i in range(problem.d_c)},
    )


def state(name: str, n: int, method: str | Method = "edrbo", seed: int = 0) -> Optimizer:
    """An optimizer that has been reported ``n`` evaluations of the problem."""
    problem = problems.get(name)
    rng = stream(seed, "benchmark state", name, n)
    near = np.clip(problem.x_star + 0.15 * rng.standard_normal((n - n // 2, problem.d_x)), 0.0, 1.0)
    designs = np.concatenate([rng.random((n // 2, problem.d_x)), near])
    contexts = problem.sample_contexts(n, rng)
    values = problem.evaluate(designs, contexts)
    optimizer = Optimizer(space_of(problem), method, seed=seed)
    tell_all(optimizer, designs, contexts, values)
    return optimizer


def tell_all(optimizer: Optimizer, designs: Array, contexts: Array, values: Array) -> None:
    """Evaluations in the unit cube: designs n × d_x, contexts n × d_c; of the values (at least n) the first n."""
    names = optimizer.space.design_names, optimizer.space.context_names
    for x, c, y in zip(designs, contexts, values, strict=False):
        optimizer.tell(dict(zip(names[0], x, strict=True)), dict(zip(names[1], c, strict=True)), float(y))
