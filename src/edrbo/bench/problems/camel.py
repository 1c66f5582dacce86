"""Three-hump and six-hump camel functions, the second input being the context."""

from __future__ import annotations

import numpy as np

from edrbo.bench.problems.oracle.context_distributions import clipped_normal, iid
from edrbo.bench.problems.oracle.distributions import AnyArray
from edrbo.bench.problems.problem import Problem


def three_hump(x: AnyArray, c: AnyArray) -> AnyArray:
    u, v = 2 * x[..., 0] - 1, 2 * c[..., 0] - 1
    return np.asarray(-(2 * u**2 - 1.05 * u**4 + u**6 / 6 + u * v + v**2))


def six_hump(x: AnyArray, c: AnyArray) -> AnyArray:
    u, v = 4 * x[..., 0] - 2, 2 * c[..., 0] - 1
    return np.asarray(-((4 - 2.1 * u**2 + u**4 / 3) * u**2 + u * v + (-4 + 4 * v**2) * v**2))


def three_hump_camel() -> Problem:
    return Problem(
        name="three-hump-camel",
        description="One hump in the middle; the context tilts it.",
        d_x=1,
        context_distribution=iid(clipped_normal(0.5, 0.2)),
        objective=three_hump,
        landmark=(0.5,),
    )


def six_hump_camel() -> Problem:
    return Problem(
        name="six-hump-camel",
        description="Two humps whose order depends on the context; on average a flat ridge between them.",
        d_x=1,
        context_distribution=iid(clipped_normal(0.6, 0.2)),
        objective=six_hump,
    )
