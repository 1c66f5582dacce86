"""A cliff: output grows with the load until the material gives way, and where it does depends on the context."""

from __future__ import annotations

import numpy as np

from edrbo.bench.problems.oracle.distributions import AnyArray, clipped_normal, iid
from edrbo.bench.problems.problem import Problem

STEEPNESS = 30.0
DROP = 4.0


def cliff(x: AnyArray, c: AnyArray) -> AnyArray:
    """Cooling costs, raises the limit, and helps less the warmer it is."""
    load, cooling, warmth = x[..., 0], x[..., 1], c[..., 0]
    limit = 0.75 - 0.6 * warmth + 0.35 * cooling * (1 - 0.5 * warmth)
    # (1 + tanh)/2 is the logistic function, without its overflow.
    broken = (1 + np.tanh(STEEPNESS * (load - limit))) / 2
    return np.asarray(4 * load - 0.9 * cooling**2 - DROP * broken)


def cliff_problem() -> Problem:
    return Problem(
        name="cliff",
        description="The best average stands close to a steep drop, over which a small shift of the context falls.",
        d_x=2,
        context_distribution=iid(clipped_normal(0.3, 0.08)),
        objective=cliff,
    )
