"""Branin-Williams: two designs, two contexts of twelve combinations (Williams, Santner and Notz 2000)."""

from __future__ import annotations

import numpy as np

from edrbo.bench.problems.oracle.context_distributions import Clipped, Product
from edrbo.bench.problems.oracle.distributions import AnyArray, Discrete
from edrbo.bench.problems.problem import Problem

# The joint distribution of the paper is the product of these two.
SECOND = Clipped(Discrete((0.25, 0.5, 0.75), (0.25, 0.5, 0.25)))
THIRD = Clipped(Discrete((0.2, 0.4, 0.6, 0.8), (0.15, 0.35, 0.35, 0.15)))


def branin(u: AnyArray, v: AnyArray) -> AnyArray:
    curve = v - 5.1 * u**2 / (4 * np.pi**2) + 5 * u / np.pi - 6
    return np.asarray(curve**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) + 10)


def branin_williams(x: AnyArray, c: AnyArray) -> AnyArray:
    """Minus the product of the paper, with x its first and fourth variable and c its second and third."""
    return np.asarray(-branin(15 * x[..., 0] - 5, 15 * c[..., 0]) * branin(15 * c[..., 1] - 5, 15 * x[..., 1]))


def branin_williams_problem() -> Problem:
    return Problem(
        name="branin-williams",
        description="A product of two Branin functions; twelve combinations of two environmental variables.",
        d_x=2,
        context_distribution=Product((SECOND, THIRD)),
        objective=branin_williams,
        expectation=expected_branin_williams,
    )


def expected_branin_williams(x: AnyArray, context_distribution: Product) -> AnyArray:
    """The contexts are independent and meet different factors, so the expectation is a product of two."""
    (c_1, weights_1), (c_2, weights_2) = (component.quadrature() for component in context_distribution.components)
    first = branin(15 * x[:, :1] - 5, 15 * c_1) @ weights_1
    second = branin(15 * c_2 - 5, 15 * x[:, 1:]) @ weights_2
    return np.asarray(-first * second)
