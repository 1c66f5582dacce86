"""A crossed barrel: two rings joined by twisted struts, printed to absorb a blow (after Gongora et al. 2020).

The variables are those of the experiment: number of struts, their twist, radius and wall. The toughness is a formula of
our own, not a fit of the measured barrels, which cannot be shipped: a barrel bends softly at a middling twist, which is
another for stiff prints and for many struts, or folds up at a large one. The context is how stiff the print came out.
"""

from __future__ import annotations

import numpy as np

from edrbo.bench.problems.oracle.context_distributions import clipped_normal, iid
from edrbo.bench.problems.oracle.distributions import AnyArray
from edrbo.bench.problems.problem import Problem
from edrbo.space import Integer, Space

SPACE = Space({"struts": Integer(6, 12), "twist": (0.0, 1.0), "radius": (0.0, 1.0), "wall": (0.0, 1.0)})


def crossed_barrel(x: AnyArray, c: AnyArray) -> AnyArray:
    """Toughness in joules; struts, twist (0 to 200 degrees), radius (1.5 to 2.5 mm), wall (0.7 to 1.4 mm), coded."""
    struts, twist, radius, wall, stiff = x[..., 0], x[..., 1], x[..., 2], x[..., 3], c[..., 0]
    carried = (
        (0.6 + 0.8 * struts) * (0.5 + 1.3 * radius - 0.8 * radius**2 * (0.5 + struts)) * (0.6 + wall - 0.7 * wall**2)
    )
    bending = np.exp(-14 * (twist - 0.3 - 0.35 * stiff + 0.2 * struts) ** 2)
    folding = (1.1 - 0.6 * stiff) * np.exp(-40 * (twist - 0.88 + 0.1 * wall) ** 2)
    cracks = 0.25 * np.exp(3 * (stiff * wall - 0.6))
    return np.asarray(30 * carried * (bending + folding) - 10 * cracks)


def crossed_barrel_problem() -> Problem:
    return Problem(
        name="crossed-barrel",
        description="Struts, twist, radius and wall of a printed barrel, to absorb much however stiff the print.",
        d_x=SPACE.d_x,
        context_distribution=iid(clipped_normal(0.45, 0.25)),
        objective=crossed_barrel,
        design=SPACE,
    )
