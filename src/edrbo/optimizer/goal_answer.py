"""What is said of a design under goals: its value, the worst case in a ball, the price of robustness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from edrbo.acquisition.functional.base import DEFAULT_SUPPORT
from edrbo.acquisition.goal import ModelGoal
from edrbo.context.laws import ContextPoints, box_points
from edrbo.context.uncertainty import LawBelief
from edrbo.optimizer.belief import Belief
from edrbo.optimizer.goal_posterior import GoalValues, goal_values
from edrbo.optimizer.stopping import Measure, average
from edrbo.optimizer.trust import Trust
from edrbo.records.goals import CVaR, Expected, Goal, Robust
from edrbo.surrogate.ensemble import Ensemble

SURE = 0.95  # probability with which a worst case is no worse
ROUGHER, ROUGHEST = 0.75, 0.5  # of the lengthscales in the contexts, where unseen ones count; and for a worst case
FEW_SUPPORT = 16  # points of the context box where many designs are compared
TAIL = 0.1  # of contexts, in the price of robustness
ROBUST_ATOMS = 64  # of the law whose worst neighbor is looked for
PAIRS, MOST, FEWEST = 2**14, 4096, 64  # of a design and a context, and contexts for each design


@dataclass(frozen=True, eq=False)
class GoalAnswers:
    """Answers under any goal from one belief; ``lower`` and ``upper`` (d_c) are the coded context box."""

    belief: Belief
    law: LawBelief  # how well it is known
    trust: Trust
    lower: Tensor
    upper: Tensor
    seed: int

    @property
    def model_goal(self) -> ModelGoal:
        return self.belief.model_goal

    def values(self, x: Tensor, goal: Goal | None = None) -> GoalValues:
        """Of designs ``x`` (N × d_x) under ``goal``, or the belief's own."""
        model_goal = self.model_goal if goal is None else replace(self.model_goal, goal=goal)
        law = self._law(model_goal.goal, len(x))
        return self._valued(model_goal, self.model_under(model_goal.goal), law, x)

    def model_under(self, goal: Goal) -> Ensemble:
        """Where contexts count that nobody has seen, one that is rougher in them: those seen tell little of how rough f
        is elsewhere."""
        return self._rougher(ROUGHER) if goal.over_box and len(self.lower) else self.belief.model

    def _valued(self, model_goal: ModelGoal, model: Ensemble, law: LawBelief, x: Tensor) -> GoalValues:
        points = self._points(model_goal.goal, law)
        return goal_values(model_goal, model, points, law.effective, x, self.trust, self.seed, law.groups)

    def _rougher(self, share: float) -> Ensemble:
        """The members on the same data, with lengthscales in the contexts so many times as long."""
        model = self.belief.model
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
            box_points(self.lower, self.upper, FEW_SUPPORT, self.law.levels)
            if wanted.goal.over_box and d_c
            else self.lower.new_zeros(0, d_c)
        )
        if isinstance(wanted.goal, Robust):  # its worst law is found for one law only: the mean one
            return Measure(
                lambda outcomes, weights, points: wanted.sense * wanted.value(wanted.held(outcomes), points),
                few,
                costly=True,
            )
        return Measure(
            lambda outcomes, weights, points: (
                wanted.sense * wanted.goal.value(wanted.to_user(wanted.held(outcomes)), weights, wanted.direction)
            ),
            few,
            of_tails=not len(few),
        )

    def _law(self, goal: Goal, count: int) -> LawBelief:
        """On the contexts that ``count`` designs are looked at in: all that were seen, or with their extremes as many
        as there is time for, since means of clusters have no tails. A worst law moves mass anywhere: few will do.
        """
        if isinstance(goal, Robust):
            return self.law.thinned(ROBUST_ATOMS)
        return self.law.thinned_to_extremes(min(max(PAIRS // max(count, 1), FEWEST), MOST))

    def _points(self, goal: Goal, law: LawBelief) -> ContextPoints:
        wants = goal.over_box and law.contexts.shape[1] > 0
        support = box_points(self.lower, self.upper, DEFAULT_SUPPORT, law.levels) if wants else law.contexts[:0]
        return ContextPoints(law.contexts, law.weights, support, levels=law.levels)

    def worst_case(self, x: Tensor, ball: float) -> float:
        """The worst mean within ``ball`` of the law at design ``x`` (d_x), no worse than this with ``SURE``.

        Of a model that is rougher still: the bound is looked for where least is known.
        """
        if self.belief.points.atoms.shape[1] == 0 or ball == 0.0:
            return float(self.values(x[None], Expected()).expected[0])
        goal = replace(self.model_goal, goal=Robust(ball))
        draws = self._valued(goal, self._rougher(ROUGHEST), self._law(goal.goal, 1), x[None])
        return float(draws.quantile(1.0 - SURE if self.model_goal.units.sign > 0 else SURE)[0])

    def price(self, both: Tensor, means: Sequence[float], ball: float) -> dict[str, dict[str, float]]:
        """Posterior expectations of mean, tail and worst mean in the ball, of the recommended design and of the one
        that is best on average (2 × d_x), whose ``means`` are known more exactly than by draws."""
        goals = {
            f"mean of the worst {TAIL:.0%}": CVaR(TAIL),
            "worst mean in the ball": Robust(ball),
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
