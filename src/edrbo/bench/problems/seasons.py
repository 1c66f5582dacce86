"""Two seasons: a curve of several maxima in one design, under a context that has two modes and little between."""

from __future__ import annotations

import numpy as np

from edrbo.bench.problems.oracle.distributions import AnyArray, Clipped, Mixture, Normal, iid
from edrbo.bench.problems.problem import Problem


def two_seasons(x: AnyArray, c: AnyArray) -> AnyArray:
    """Each season has its own best time; a ripple of three waves is the same in both."""
    u, v = x[..., 0], c[..., 0]
    return np.asarray(np.exp(-10 * (u - 0.15 - 0.7 * v) ** 2) + 0.35 * np.sin(19 * u + 2 * v) + 0.2 * u)


def two_seasons_problem() -> Problem:
    seasons = Mixture((Normal(0.2, 0.06), Normal(0.85, 0.1)), (0.6, 0.4))
    return Problem(
        name="two-seasons",
        description="Three hills; which one is best depends on the season, and there is no season in between.",
        d_x=1,
        context_distribution=iid(Clipped(seasons)),
        objective=two_seasons,
    )
