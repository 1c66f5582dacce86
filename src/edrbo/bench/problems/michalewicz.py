"""Michalewicz's function of five variables, all of them off by what the day brings."""

from __future__ import annotations

import numpy as np

from edrbo.bench.problems.oracle.context_distributions import clipped_normal, iid
from edrbo.bench.problems.oracle.distributions import AnyArray
from edrbo.bench.problems.problem import Problem

OFFSET = 0.05  # of every setting, at either end of the context
# Where the function is largest without a context (Michalewicz 1992; steepness 10), in the unit cube.
LARGEST = (2.202906 / np.pi, 0.5, 1.284992 / np.pi, 1.923058 / np.pi, 1.720470 / np.pi)


def michalewicz(x: AnyArray, c: AnyArray) -> AnyArray:
    """Σ_i sin z_i · sin²⁰(i z_i²/π) with z = π (x + 0.1 (c − ½))."""
    z = np.pi * (x + 2 * OFFSET * (c - 0.5))
    squared = np.sin(np.arange(1, 6) * z**2 / np.pi) ** 2
    return np.asarray((np.sin(z) * squared**10).sum(axis=-1))


def michalewicz_problem() -> Problem:
    return Problem(
        name="michalewicz",
        description="Five narrow valleys, one a setting, that all move with the day: 120 local optima.",
        d_x=5,
        context_distribution=iid(clipped_normal(0.5, 0.25)),
        objective=michalewicz,
        landmark=LARGEST,
    )
