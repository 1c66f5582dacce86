"""What the oracle says of a recommended design when the world is not as it was: robust regrets.

Each is the loss against the best design *for that changed world*, so that zero can be reached:

    shift-down, shift-up   every context moved by ∓0.1 before clipping
    spread                 contexts 1.5 times as far from their median
    worst-case             the worst distribution within Wasserstein-1 distance 0.1 of P, where the best design for it
    is known
"""

from __future__ import annotations

from functools import lru_cache

from edrbo.bench.problems.oracle.distributions import Array
from edrbo.bench.problems.oracle.shift import shifted
from edrbo.bench.problems.problem import Problem

MEAN_SHIFT = 0.1
SPREAD = 1.5
RADIUS = 0.1
ROBUST_REGRETS = ("shift-down", "shift-up", "spread", "worst-case")


@lru_cache(maxsize=64)
def changed_worlds(problem: Problem) -> dict[str, Problem]:
    """The problem under each changed distribution; kept, because each looks for its own optimum once."""
    return {
        "shift-down": shifted(problem, mean_shift=-MEAN_SHIFT),
        "shift-up": shifted(problem, mean_shift=MEAN_SHIFT),
        "spread": shifted(problem, spread=SPREAD),
    }


def robust_regrets(problem: Problem, x: Array) -> dict[str, float]:
    """The regrets of one design (d_x,) by the names of ``ROBUST_REGRETS``, as far as they are known: none where the
    best design was found by a search beforehand, which every changed world would need as well."""
    if problem.reference is not None:
        return {}
    regrets = {name: float(changed.regret(x)) for name, changed in changed_worlds(problem).items()}
    if not (problem.knows_goals and problem.independent):
        return regrets
    _, best = problem.robust_optimum(RADIUS)
    # The reference is found by a search, so a design may beat it by a hair: that is a regret of zero.
    regrets["worst-case"] = max(0.0, best - float(problem.worst_case(x, RADIUS)))
    return regrets
