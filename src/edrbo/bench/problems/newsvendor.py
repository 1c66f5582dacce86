"""The newsvendor: order x, demand c. Sell at 9, return what is left at 1, buy at 5."""

from __future__ import annotations

import numpy as np

from edrbo.bench.problems.oracle.distributions import AnyArray, Product, clipped_burr, iid
from edrbo.bench.problems.problem import Problem


def newsvendor(x: AnyArray, c: AnyArray) -> AnyArray:
    order, demand = x[..., 0], c[..., 0]
    return np.asarray(9 * np.minimum(order, demand) + np.maximum(0, order - demand) - 5 * order)


def expected_newsvendor(x: AnyArray, context_distribution: Product) -> AnyArray:
    """max(0, x − c) = x − min(x, c), so that E f = 8 E min(x, c) − 4x."""
    order = x[..., 0]
    return np.asarray(8 * context_distribution.components[0].expected_minimum(order) - 4 * order)


def newsvendor_problem() -> Problem:
    return Problem(
        name="newsvendor",
        description="How much to order before the demand is known: f has a kink where they meet.",
        d_x=1,
        context_distribution=iid(clipped_burr(2, 20)),
        objective=newsvendor,
        expectation=expected_newsvendor,
        # E f' = 8 P(c > x) − 4 vanishes at the median of the demand.
        landmark=(float(np.sqrt(2 ** (1 / 20) - 1)),),
    )
