"""A wing of six shape parameters: loss is quadratic around a shape that moves with the speed of the air."""

from __future__ import annotations

import numpy as np

from edrbo.bench.problems.oracle.distributions import AnyArray, Clipped, Product, Uniform, iid
from edrbo.bench.problems.problem import Problem

# Best shape at half speed, and how it moves from still to full speed.
SHAPE = np.array([0.35, 0.62, 0.48, 0.27, 0.71, 0.55])
MOVE = np.array([0.5, -0.6, 0.4, 0.4, -0.5, 0.3])
# Neighboring parameters act on each other, and so do root and tip.
CURVATURE = np.diag([9.0, 4.0, 6.0, 3.0, 8.0, 5.0])
CURVATURE += np.diag([2.5, -2.0, 1.5, -2.0, 3.0], 1) + np.diag([2.5, -2.0, 1.5, -2.0, 3.0], -1)
CURVATURE[0, 5] = CURVATURE[5, 0] = -1.5
TOP = 5.0


def _weight(speed: AnyArray) -> AnyArray:
    """A wrong shape costs more at high speed."""
    return np.asarray(0.4 + 1.8 * speed**2)


def wing(x: AnyArray, c: AnyArray) -> AnyArray:
    off = x - SHAPE - MOVE * (c - 0.5)
    return np.asarray(TOP - _weight(c[..., 0]) * ((off @ CURVATURE) * off).sum(-1))


def expected_wing(x: AnyArray, context_distribution: Product) -> AnyArray:
    """f is quadratic in x, so three weighted moments of the speed are all the distribution there is."""
    nodes, weights = context_distribution.components[0].quadrature()
    of_weight = weights * _weight(nodes)
    zeroth, first, second = (of_weight @ (nodes - 0.5) ** k for k in range(3))
    off = x - SHAPE
    warped, moved = off @ CURVATURE, CURVATURE @ MOVE
    return np.asarray(TOP - zeroth * (warped * off).sum(-1) + 2 * first * (off @ moved) - second * (MOVE @ moved))


def wing_problem() -> Problem:
    return Problem(
        name="wing",
        description="Six shape parameters that act on each other; the best shape moves with the speed.",
        d_x=6,
        context_distribution=iid(Clipped(Uniform(0.1, 0.95))),
        objective=wing,
        expectation=expected_wing,
    )
