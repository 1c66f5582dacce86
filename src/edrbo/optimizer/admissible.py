"""The best of the designs that are not likely to fail."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from edrbo.acquisition.objective import Objective
from edrbo.acquisition.penalties import Bar, penalize_failure
from edrbo.optimizer.belief import Belief
from edrbo.optimizer.choice import Choice
from edrbo.surrogate.feasibility import Feasibility

ALMOST = 0.98  # if no tried design is as sure as that, this part of the surest one's probability is asked for
# In ranges of the outcomes: what an admissible design may at most lose for being less sure, and how fast the worth of
# one that is not falls with its probability.
RISK = 0.1
STEEPNESS = (10.0, 1000.0)
CLOSE = 1e-3  # by how much the wall may be leaned on


def best_admissible(
    ladder: Sequence[Objective],
    belief: Belief,
    choice: Choice,
    starts: Tensor,
    seed: int,
    least_success: float,
    *,
    kinks: bool = False,
) -> Tensor:
    """The design (d_x) that maximizes ``ladder`` of a choice among those that succeed with a probability of
    ``least_success``.

    If not even the designs tried (``starts``, S × d_x) are believed to, the bar is lowered to what they reach. Among
    admissible designs the surer one is preferred if it costs little.
    """
    starts = choice.starts(starts)
    feasibility = belief.feasibility
    if feasibility is None:
        return choice.best(ladder, seed=seed, starts=starts, kinks=kinks)
    level = reachable(feasibility, starts, least_success)
    unit = belief.outcome_range
    for steepness in STEEPNESS:
        bar = Bar(level, RISK * unit, steepness * unit)
        x = choice.best(penalize_failure(ladder, feasibility, bar), seed=seed, starts=starts, kinks=True)
        if float(feasibility.probability(x[None])) >= level - CLOSE:
            return x
    tried = starts[feasibility.probability(starts) >= level]
    return tried[ladder[-1](tried).argmax()]


def reachable(feasibility: Feasibility, starts: Tensor, least_success: float) -> float:
    """``least_success``, or what comes close to the surest of ``starts`` (S × d_x) where none reaches it."""
    return min(least_success, ALMOST * float(feasibility.probability(starts).max()))
