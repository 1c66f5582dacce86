"""The best design among those with a sufficient probability of success."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from edrbo.acquisition.objective import Objective
from edrbo.acquisition.penalties import Bar, penalize_failure
from edrbo.acquisition.search.maximizer import BUDGET, Budget
from edrbo.optimizer.candidates import CandidateSet
from edrbo.optimizer.outcome_posterior import OutcomePosterior
from edrbo.surrogate.feasibility import Feasibility

ALMOST = 0.98  # if no tried design is as sure as that, this part of the surest one's probability is asked for
# In ranges of the outcomes: what an admissible design may at most lose for being less sure, and how fast the worth of
# one that is not falls with its probability.
RISK = 0.1
STEEPNESS = (10.0, 1000.0)
WALL_TOLERANCE = 1e-3  # by how much the wall may be leaned on


def best_feasible(
    approximations: Sequence[Objective],
    posterior: OutcomePosterior,
    candidates: CandidateSet,
    starts: Tensor,
    seed: int,
    least_success: float,
    *,
    kinks: bool = False,
    budget: Budget = BUDGET,
) -> Tensor:
    """The design (d_x) that maximizes ``approximations`` of a choice among those that succeed with a probability of
    ``least_success``.

    If not even the designs tried (``starts``, S × d_x) are believed to, the bar is lowered to what they reach. Among
    admissible designs the surer one is preferred if it costs little.
    """
    starts = candidates.starts(starts)
    feasibility = posterior.feasibility
    if feasibility is None:
        return candidates.best(approximations, seed=seed, starts=starts, kinks=kinks, budget=budget)
    level = reachable(feasibility, starts, least_success)
    unit = posterior.outcome_range
    for steepness in STEEPNESS:
        bar = Bar(level, RISK * unit, steepness * unit)
        penalized = penalize_failure(approximations, feasibility, bar)
        x = candidates.best(penalized, seed=seed, starts=starts, kinks=True, budget=budget)
        if float(feasibility.probability(x[None])) >= level - WALL_TOLERANCE:
            return x
    tried = starts[feasibility.probability(starts) >= level]
    return tried[approximations[-1](tried).argmax()]


def reachable(feasibility: Feasibility, starts: Tensor, least_success: float) -> float:
    """``least_success``, or what comes close to the surest of ``starts`` (S × d_x) where none reaches it."""
    return min(least_success, ALMOST * float(feasibility.probability(starts).max()))
