"""Problems: any program as f, contexts that hang together, and contexts from a list (levels, data)."""

import numpy as np

from edrbo.bench.problems.oracle.distributions import MonteCarlo, Scenarios
from edrbo.bench.problems.problem import Problem


def simulator(x, c):  # one design and one context, numbers between 0 and 1
    return -((x[0] - c[0]) ** 2) - 0.1 * abs(x[1] - c[1])


def correlated(n, rng):  # n × 2
    return np.clip(rng.multivariate_normal([0.4, 0.6], [[0.02, 0.015], [0.015, 0.02]], n), 0, 1)


def blend(contexts):
    objective = np.vectorize(simulator, signature="(d),(e)->()")
    return Problem("blend", "follow two contexts", 2, contexts, objective, analytic=False)


PROBLEMS = {
    "blend": lambda: blend(MonteCarlo(correlated, size=256)),
    "blend-days": lambda: blend(Scenarios([[0.2, 0.5], [0.6, 0.7], [0.7, 0.7]], weights=[5, 1, 1])),
}
