"""The modified Branin problem: two designs and two contexts, each design meeting one context."""

from __future__ import annotations

import numpy as np

from edrbo.bench.problems.oracle.context_distributions import Product, clipped_normal, iid
from edrbo.bench.problems.oracle.distributions import AnyArray, Array
from edrbo.bench.problems.problem import Problem, in_chunks


def _root_branin(u: AnyArray, v: AnyArray) -> AnyArray:
    """√h(u, v) with h Branin's function, which is positive everywhere."""
    curve = v - 5.1 * u**2 / (4 * np.pi**2) + 5 * u / np.pi - 6
    return np.asarray(np.sqrt(curve**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) + 10))


def modified_branin(x: AnyArray, c: AnyArray) -> AnyArray:
    first = _root_branin(15 * x[..., 0] - 5, 15 * c[..., 0])
    second = _root_branin(15 * c[..., 1] - 5, 15 * x[..., 1])
    return np.asarray(-first * second)


def expected_branin(x: AnyArray, context_distribution: Product) -> AnyArray:
    """c₁ and c₂ are independent and meet different factors, so the expectation is a product of two."""

    def both(part: AnyArray) -> AnyArray:
        c_1, weights_1 = context_distribution.components[0].quadrature()
        c_2, weights_2 = context_distribution.components[1].quadrature()
        first = _root_branin(15 * part[:, :1] - 5, 15 * c_1) @ weights_1
        second = _root_branin(15 * c_2 - 5, 15 * part[:, 1:]) @ weights_2
        return np.asarray(-first * second)

    width: Array = context_distribution.components[0].quadrature()[1]
    return in_chunks(both, x, len(width))


def modified_branin_problem() -> Problem:
    return Problem(
        name="modified-branin",
        description="A product of two Branin functions; each design variable meets one context variable.",
        d_x=2,
        context_distribution=iid(clipped_normal(0.5, 0.2), 2),
        objective=modified_branin,
        expectation=expected_branin,
    )
