"""Hartmann's six-dimensional function: five designs and one context, under an easy and a hard context distribution."""

from __future__ import annotations

import numpy as np

from edrbo.bench.problems.oracle.context_distributions import Clipped, Product, clipped_normal, iid
from edrbo.bench.problems.oracle.distributions import AnyArray, Cauchy, Normal, equal_mixture
from edrbo.bench.problems.problem import Problem

ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
A = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def _design_bumps(x: AnyArray) -> AnyArray:
    """(…, 5) → (…, 4)."""
    return np.asarray(np.exp(-(A[:, :5] * (x[..., None, :] - P[:, :5]) ** 2).sum(-1)))


def _context_bumps(c: AnyArray) -> AnyArray:
    """(…, 1) → (…, 4)."""
    return np.asarray(np.exp(-A[:, 5] * (c - P[:, 5]) ** 2))


def hartmann(x: AnyArray, c: AnyArray) -> AnyArray:
    return np.asarray((ALPHA * _design_bumps(x) * _context_bumps(c)).sum(-1))


def expected_hartmann(x: AnyArray, context_distribution: Product) -> AnyArray:
    """Every bump is a product of a factor in x and one in c."""
    nodes, weights = context_distribution.quadrature()
    return np.asarray(_design_bumps(x) @ (ALPHA * (weights @ _context_bumps(nodes))))


def hartmann_problem() -> Problem:
    return Problem(
        name="hartmann",
        description="Four bumps in six dimensions, the last one being the context.",
        d_x=5,
        context_distribution=iid(clipped_normal(0.5, 0.2)),
        objective=hartmann,
        expectation=expected_hartmann,
    )


def complicated_hartmann() -> Problem:
    normals = [(0.1, 0.02), (0.3, 0.075), (0.4, 0.1), (0.5, 0.1), (0.7, 0.075), (0.8, 0.03)]
    parts = [*(Normal(mean, sd) for mean, sd in normals), Cauchy(0.2, 0.02), Cauchy(0.8, 0.02)]
    return Problem(
        name="complicated-hartmann",
        description="Hartmann under a context distribution of eight modes, two of them heavy-tailed.",
        d_x=5,
        context_distribution=iid(Clipped(equal_mixture(parts))),
        objective=hartmann,
        expectation=expected_hartmann,
    )
