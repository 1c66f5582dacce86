"""Statements about a design under goals: its value, its worst case in a Wasserstein ball, the price of robustness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from edrbo.acquisition.goal_acquisition import ModelGoal
from edrbo.acquisition.risk.base import DEFAULT_SUPPORT
from edrbo.contexts.distributions import ContextPoints, box_points
from edrbo.contexts.uncertainty import DistributionUncertainty
from edrbo.optimizer.goal_posterior import GoalValues, goal_values
from edrbo.optimizer.outcome_posterior import OutcomePosterior
from edrbo.optimizer.stopping import Measure, average
from edrbo.optimizer.trust import Trust
from edrbo.records.goals import CVaR, Expected, Goal, Robust
from edrbo.surrogate.ensemble import ExpertEnsemble

CONFIDENCE = 0.95  # probability with which a worst case is no worse
# of the lengthscales in the contexts, where unseen ones count; and for a worst case
LENGTHSCALE_FACTOR, ROUGHEST = 0.75, 0.5
FEW_SUPPORT = 16  # points of the context box where many designs are compared
TAIL = 0.1  # of contexts, in the price of robustness
ROBUST_ATOMS = 64  # of the distribution whose worst neighbor is looked for
PAIRS, MOST, FEWEST = 2**14, 4096, 64  # of a design and a context, and contexts for each design


@dataclass(frozen=True, eq=False)
class GoalAnswers:
    """Answers under any goal from one belief; ``lower`` and ``upper`` (d_c) are the coded context box."""

    posterior: OutcomePosterior
    context_distribution: DistributionUncertainty  # how well it is known
    trust: Trust
    lower: Tensor
    upper: Tensor
    seed: int

    @property
    def model_goal(self) -> ModelGoal:
        return self.posterior.model_goal

    def values(self, x: Tensor, goal: Goal | None = None) -> GoalValues:
        """Of designs ``x`` (N × d_x) under ``goal``, or the belief's own."""
        model_goal = self.model_goal if goal is None else replace(self.model_goal, goal=goal)
        context_distribution = self._distribution(model_goal.goal, len(x))
        return self._valued(model_goal, self.model_under(model_goal.goal), context_distribution, x)

    def model_under(self, goal: Goal) -> ExpertEnsemble:
        """Where contexts count that nobody has seen, one that is rougher in them: those seen tell little of how rough f
        is elsewhere."""
        return self._rougher(LENGTHSCALE_FACTOR) if goal.over_box and len(self.lower) else self.posterior.model

    def _valued(
        self, model_goal: ModelGoal, model: ExpertEnsemble, context_distribution: DistributionUncertainty, x: Tensor
    ) -> GoalValues:
        points = self._points(model_goal.goal, context_distribution)
        return goal_values(
            model_goal,
            model,
            points,
            context_distribution.effective,
            x,
            self.trust,
            self.seed,
            context_distribution.groups,
        )

    def _rougher(self, share: float) -> ExpertEnsemble:
        """The members on the same data, with lengthscales in the contexts so many times as long."""
        model = self.posterior.model
        factor = torch.ones_like(model.gp.hyper.lengthscale[0])
        factor[len(factor) - len(self.lower) :] = share
        return model.rougher(factor)

    @property
    def measure(self) -> Measure:
        """How good outcomes are under the goal, in its own units: larger is better."""
        wanted, d_c = self.model_goal, len(self.lower)
        if wanted.goal == Expected():
            return Measure(
                lambda outcomes, weights, points: wanted.units.scale * average(wanted.held(outcomes), weights, points)
            )
        few = (
            box_points(self.lower, self.upper, FEW_SUPPORT, self.context_distribution.levels)
            if wanted.goal.over_box and d_c
            else self.lower.new_zeros(0, d_c)
        )
        if isinstance(wanted.goal, Robust):  # its worst distribution is found for one distribution only: the mean one
            return Measure(
                lambda outcomes, weights, points: wanted.sense * wanted.value(wanted.held(outcomes), points),
                few,
                needs_context_grid=True,
            )
        return Measure(
            lambda outcomes, weights, points: (
                wanted.sense * wanted.goal.value(wanted.to_user(wanted.held(outcomes)), weights, wanted.direction)
            ),
            few,
            of_tails=not len(few),
        )

    def _distribution(self, goal: Goal, count: int) -> DistributionUncertainty:
        """On the contexts that ``count`` designs are looked at in: all that were seen, or with their extremes as many
        as there is time for, since means of clusters have no tails. A worst distribution moves mass anywhere: few will
        do.
        """
        if isinstance(goal, Robust):
            return self.context_distribution.thinned(ROBUST_ATOMS)
        return self.context_distribution.thinned_to_extremes(min(max(PAIRS // max(count, 1), FEWEST), MOST))

    def _points(self, goal: Goal, context_distribution: DistributionUncertainty) -> ContextPoints:
        wants = goal.over_box and context_distribution.contexts.shape[1] > 0
        support = (
            box_points(self.lower, self.upper, DEFAULT_SUPPORT, context_distribution.levels)
            if wants
            else context_distribution.contexts[:0]
        )
        return ContextPoints(
            context_distribution.contexts, context_distribution.weights, support, levels=context_distribution.levels
        )

    def worst_case(self, x: Tensor, radius: float) -> float:
        """The worst mean within ``radius`` of the distribution at design ``x`` (d_x), no worse than this with
        ``CONFIDENCE``.

        Of a model that is rougher still: the bound is looked for where least is known.
        """
        if self.posterior.points.atoms.shape[1] == 0 or radius == 0.0:
            return float(self.values(x[None], Expected()).expected[0])
        goal = replace(self.model_goal, goal=Robust(radius))
        draws = self._valued(goal, self._rougher(ROUGHEST), self._distribution(goal.goal, 1), x[None])
        return float(draws.quantile(1.0 - CONFIDENCE if self.model_goal.units.sign > 0 else CONFIDENCE)[0])

    def price(self, both: Tensor, means: Sequence[float], radius: float) -> dict[str, dict[str, float]]:
        """Posterior expectations of mean, tail and worst mean in the ball, of the recommended design and of the one
        that is best on average (2 × d_x), whose ``means`` are known more exactly than by draws."""
        goals = {
            f"mean of the worst {TAIL:.0%}": CVaR(TAIL),
            "worst mean in the ball": Robust(radius),
        }
        apart = both[:1] if torch.equal(both[0], both[1]) else both
        found = {name: self.values(apart, goal).expected.tolist() for name, goal in goals.items()}
        return {
            "recommended": {"mean": means[0], **{name: values[0] for name, values in found.items()}},
            "on average": {"mean": means[-1], **{name: values[-1] for name, values in found.items()}},
        }


def text_of(goal: Goal) -> str:
    """As stored, or the class of a goal of one's own."""
    return goal.to_text() if goal.registered else type(goal).__name__
