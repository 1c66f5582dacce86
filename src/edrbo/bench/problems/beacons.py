"""Beacons: five smooth bumps in three designs, two coordinates of which are blown off course by the contexts."""

from __future__ import annotations

import numpy as np

from edrbo.bench.problems.oracle.distributions import AnyArray, Array, Clipped, Normal, Product, Uniform
from edrbo.bench.problems.problem import Problem, in_chunks

HEIGHTS = np.array([3.0, 2.6, 2.2, 1.8, 2.4])
CENTERS = np.array(
    [
        [0.2, 0.7, 0.3],
        [0.75, 0.25, 0.6],
        [0.5, 0.5, 0.9],
        [0.85, 0.8, 0.2],
        [0.3, 0.2, 0.75],
    ]
)
WIDTHS = np.array([0.1, 0.16, 0.2, 0.3, 0.14])
# How far a bump is carried, from context 0 to context 1: the highest the furthest.
DRIFTS = np.array([[0.5, 0.6], [0.2, 0.25], [0.3, -0.2], [-0.2, 0.1], [0.25, -0.3]])


def _bumps(off: AnyArray) -> AnyArray:
    """exp(−off²/2w²) with one width per bump: (…, 5) → (…, 5)."""
    return np.asarray(np.exp(-((off / WIDTHS) ** 2) / 2))


def _carried(x: AnyArray, c: AnyArray, j: int) -> AnyArray:
    """Factor of coordinate j, which drifts with context j: (…), (…) → (…, 5)."""
    return _bumps(x[..., None] - CENTERS[:, j] - DRIFTS[:, j] * (c[..., None] - 0.5))


def beacons(x: AnyArray, c: AnyArray) -> AnyArray:
    factors = [_carried(x[..., j], c[..., j], j) for j in range(2)]
    still = _bumps(x[..., 2, None] - CENTERS[:, 2])
    return np.asarray((HEIGHTS * factors[0] * factors[1] * still).sum(-1))


def expected_beacons(x: AnyArray, context_distribution: Product) -> AnyArray:
    """A bump is a product over coordinates, and every context meets one of them."""
    rules = [component.quadrature(panels=16) for component in context_distribution.components]

    def mean_factor(part: AnyArray, j: int, rule: tuple[Array, Array]) -> AnyArray:
        nodes, weights = rule
        return np.asarray(np.einsum("nmk,m->nk", _carried(part[:, j, None], nodes, j), weights))

    def both(part: AnyArray) -> AnyArray:
        still = _bumps(part[:, 2, None] - CENTERS[:, 2])
        return np.asarray((HEIGHTS * mean_factor(part, 0, rules[0]) * mean_factor(part, 1, rules[1]) * still).sum(-1))

    return in_chunks(both, x, 5 * max(len(weights) for _, weights in rules))


def beacons_problem() -> Problem:
    return Problem(
        name="beacons",
        description="Five bumps; the highest is carried furthest by the contexts, so on average another one wins.",
        d_x=3,
        context_distribution=Product((Clipped(Uniform(-0.1, 1.1)), Clipped(Normal(0.35, 0.25)))),
        objective=beacons,
        expectation=expected_beacons,
    )
