"""The posterior of several outcomes: independent surrogates, one per outcome, and an acquisition made of them.

With several outcomes, each has its own surrogate, fitted as if it were the only one. Asking is optimistic about all:
the weighted sum of the optimistic values of the objectives, or their hypervolume improvement, among designs whose
limits may hold, so that runs may break limits while these are learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from edrbo.acquisition.hypervolume import HypervolumeImprovement, cells_of
from edrbo.acquisition.objective import Objective, combine
from edrbo.acquisition.penalties import LimitPenalty, Margin, limited_approximations, margin
from edrbo.acquisition.scores import UCB
from edrbo.contexts.distributions import ContextPoints
from edrbo.contexts.uncertainty import DistributionUncertainty
from edrbo.optimizer.chance_constraint import Chance
from edrbo.optimizer.outcome_posterior import OutcomePosterior
from edrbo.records.goals import Goal
from edrbo.records.outcomes import Limit, Maximize, Minimize
from edrbo.records.settings import LEAST_SUCCESS
from edrbo.surrogate.ensemble import ExpertEnsemble

ASK_ATOMS = 64  # contexts in which a limit is looked at while a design is asked for
STEEPNESS = 30.0  # ranges of the objective that breaking a limit by its outcome's range costs
SHARE_TOLERANCE = 1e-9  # more than the share of contexts that may break a limit: the quantile beyond it


@dataclass(frozen=True, eq=False)
class OutcomePart:
    """One outcome: what it is for, what is believed of it, and the distribution of its contexts in its model's code."""

    name: str
    wanted: Maximize | Minimize | Limit
    posterior: OutcomePosterior
    context_distribution: DistributionUncertainty

    @property
    def weight(self) -> float:
        """Of its value in the sum, in the user's units, as its acquisition has it."""
        assert not isinstance(self.wanted, Limit)
        weight = 1.0 if self.wanted.weight is None else self.wanted.weight
        model_goal = self.posterior.model_goal
        modelled = self.posterior.functional is not None or (
            model_goal.goal.of_outcomes and not model_goal.goal.pointwise
        )
        return weight * model_goal.units.scale if modelled else weight

    @property
    def range(self) -> float:
        """How far its outcomes are apart, in the user's units."""
        return float(self.posterior.model_goal.units.spread_to_user(self.posterior.outcome_range))

    @property
    def worth(self) -> float:
        """How far its values in the sum may be apart."""
        assert not isinstance(self.wanted, Limit)
        goal = self.posterior.model_goal.goal
        size = {"outcome": self.range, "probability": 1.0, "squared outcome": self.range**2}[goal.kind]
        return size * (1.0 if self.wanted.weight is None else self.wanted.weight)


@dataclass(frozen=True, eq=False)
class JointPosterior:
    """Beliefs about all outcomes that were reported, the main one first; what ``OutcomePosterior`` is for a single
    one."""

    parts: tuple[OutcomePart, ...]
    least_success: float = LEAST_SUCCESS
    tried: Tensor | None = None  # designs (n × d_x) that a front is made of so far, those being tried among them

    @property
    def main(self) -> OutcomePosterior:
        return self.parts[0].posterior

    @property
    def model(self) -> ExpertEnsemble:
        return self.main.model

    @property
    def points(self) -> ContextPoints:
        return self.main.points

    @property
    def wanted(self) -> list[OutcomePart]:
        return [part for part in self.parts if not isinstance(part.wanted, Limit)]

    @property
    def limits(self) -> list[tuple[OutcomePart, Limit]]:
        return [(part, part.wanted) for part in self.parts if isinstance(part.wanted, Limit)]

    @cached_property
    def worth(self) -> float:
        """The range of the objective."""
        return sum(part.worth for part in self.wanted)

    def for_suggestion(self, number: int) -> JointPosterior:
        """Every suggestion serves all outcomes at once."""
        return self

    def acquisition(self) -> Climb:
        """Optimistic about the objectives and about the limits."""
        limits = []
        for part, limit in self.limits:
            optimistic_value = Margin(limit.lower, limit.upper, 1.0 - limit.probability + SHARE_TOLERANCE)
            points = distribution_points(part.context_distribution.thinned(ASK_ATOMS))
            model, score, units = part.posterior.model, part.posterior.score, part.posterior.model_goal.units
            limits.append((self.cost(part), margin(model, score, points, optimistic_value, units).approximations()))
        terms = [(part.weight, part.posterior.acquisition().approximations()) for part in self.wanted]
        if not self.has_front:
            return Climb(limited_approximations(terms, limits))
        sizes, cells = torch.tensor([part.worth for part in self.wanted], dtype=torch.float64), self._cells()
        # a gain is a part of the whole
        share = [(cost / self.worth, approximations) for cost, approximations in limits]
        weights = [weight for weight, _ in terms]
        gains = combine(
            [approximations for _, approximations in terms],
            lambda level: HypervolumeImprovement(tuple(zip(weights, level, strict=True)), sizes, *cells),
        )
        return Climb(limited_approximations([(1.0, gains)], share))

    @property
    def has_front(self) -> bool:
        """Whether several outcomes are the main one."""
        return sum(part.wanted.weight is None for part in self.wanted if not isinstance(part.wanted, Limit)) > 1

    def _cells(self) -> tuple[Tensor, Tensor, Tensor]:
        """The front of the designs tried, of which limits hold on the mean surface, and the cells beyond it."""
        assert self.tried is not None
        top = self.cautious((), 0.0)[-1]
        with torch.no_grad():
            values = torch.stack([weight * objective(self.tried) for weight, objective in top.terms], dim=-1)
            kept = torch.ones(len(self.tried), dtype=torch.bool)
            for part, limit in self.limits:
                mean = Margin(limit.lower, limit.upper, 1.0 - limit.probability + SHARE_TOLERANCE)
                points = distribution_points(part.context_distribution.thinned(ASK_ATOMS))
                model, units = part.posterior.model, part.posterior.model_goal.units
                kept &= margin(model, UCB(beta=0.0), points, mean, units)(self.tried) >= 0
        sizes = torch.tensor([part.worth for part in self.wanted], dtype=values.dtype)
        return cells_of(values / sizes, kept)

    def cautious(self, chances: Sequence[Chance], caution: float) -> list[LimitPenalty]:
        """The cautious value of what is wanted under limits that hold ``caution`` standard deviations off."""
        values = [
            (part, part.posterior.model_goal.posterior(part.posterior.model, part.posterior.points))
            for part in self.wanted
        ]
        terms = [(part.weight, value.approximations()) for part, value in values]
        limits = []
        for (part, limit), chance in zip(self.limits if chances else (), chances, strict=True):
            sure = Margin(limit.lower, limit.upper, chance.allowed + SHARE_TOLERANCE)
            score, units = UCB(beta=-caution), part.posterior.model_goal.units
            made = margin(part.posterior.model, score, distribution_points(chance.context_distribution), sure, units)
            limits.append((self.cost(part), made.approximations()))
        return limited_approximations(terms, limits)

    def cost(self, part: OutcomePart) -> float:
        """What breaking a limit costs, a unit of its outcome."""
        return STEEPNESS * self.worth / part.range

    def feasible(self, approximations: Sequence[Objective]) -> list[Objective]:
        return self.main.feasible(approximations)

    def penalize_pending(self, approximations: Sequence[Objective]) -> list[Objective]:
        """Away from what is being evaluated."""
        return self.main.penalize_pending(approximations, 1.0 if self.has_front else self.worth)

    def values(self, x: Tensor) -> Tensor:
        """As ``OutcomePosterior.values``, under limits that the mean surfaces keep; nothing is added to a front yet."""
        if self.has_front:
            return x.new_zeros(len(x))
        mean_objective = replace(
            self, parts=tuple(replace(part, posterior=part.posterior.mean_objective()) for part in self.parts)
        )
        with torch.no_grad():
            return self.feasible(mean_objective.acquisition().approximations()[-1:])[0](x)

    def level(self, x: Tensor) -> float:
        """As ``OutcomePosterior.level``; what is added to a front begins at nothing."""
        if self.has_front:
            return 0.0
        return float(self.values(x).max()) if len(x) else -torch.inf

    def with_pending(self, x: Tensor) -> JointPosterior:
        """Once ``x`` (q × d_x) is being evaluated."""
        parts = tuple(replace(part, posterior=part.posterior.with_pending(x)) for part in self.parts)
        return replace(self, parts=parts, tried=None if self.tried is None else torch.cat([self.tried, x]))

    def under(self, goal: Goal) -> JointPosterior:
        """The same with another goal of what is wanted."""
        turned = [
            part
            if isinstance(part.wanted, Limit)
            else replace(
                part, posterior=replace(part.posterior, model_goal=replace(part.posterior.model_goal, goal=goal))
            )
            for part in self.parts
        ]
        return replace(self, parts=tuple(turned))


@dataclass(frozen=True, eq=False)
class Climb:
    """Approximations as an acquisition has them; where a limit begins there is a kink."""

    levels: list[LimitPenalty]
    has_kinks: bool = True

    def approximations(self) -> list[LimitPenalty]:
        return self.levels


def distribution_points(context_distribution: DistributionUncertainty) -> ContextPoints:
    return ContextPoints(context_distribution.contexts, context_distribution.weights, context_distribution.contexts[:0])
