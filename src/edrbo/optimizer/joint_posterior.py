"""The posterior of several outcomes: independent surrogates, one per outcome, and an acquisition made of them.

With several outcomes, each has its own surrogate, fitted as if it were the only one. Asking is optimistic about all:
the weighted sum of the optimistic values of the objectives, or their hypervolume improvement, among designs whose
limits may hold, so that runs may break limits while these are learned.

The posterior probability of a chance constraint, that a limit holds in its share of contexts: f is drawn from the joint
posterior of the model over all contexts seen, so that errors at neighboring contexts go together. Given f, a share v of
the n contexts seen breaks the limit; what share of all contexts does so is Beta(n v + 1, n (1 − v)): the Bayesian
bootstrap of the contexts with one more that nobody has seen and that breaks it. Of contexts drawn independently and a
known f that is exact for the design at which the next of them would break the limit (Clopper and Pearson's bound): it
takes 59 contexts, none of which breaks it, to be 95 % sure that 95 % of all contexts keep it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.hypervolume import HypervolumeImprovement, cells_of
from edrbo.acquisition.objective import Objective, combine
from edrbo.acquisition.penalties import LimitPenalty, Margin, limited_approximations, margin
from edrbo.acquisition.scores import UCB
from edrbo.contexts.distributions import ContextPoints
from edrbo.contexts.uncertainty import DistributionUncertainty
from edrbo.optimizer.goal_posterior import shares_within
from edrbo.optimizer.outcome_posterior import OutcomePosterior
from edrbo.optimizer.recommendation import Recommender
from edrbo.records.goals import Goal
from edrbo.records.outcomes import Limit, Maximize, Minimize
from edrbo.records.settings import LEAST_SUCCESS
from edrbo.streams import stream
from edrbo.surrogate.ensemble import ExpertEnsemble

Array = NDArray[np.float64]

ATOMS = 256  # contexts that are looked at one by one
HALVINGS = 40
BREAKS, KEEPS = (0.0, 1.0), (1.0, 0.0)  # one context more that nobody has seen: kept and broken


@dataclass(frozen=True, eq=False)
class Chance:
    """A limit, and what is known of its outcome and of the distribution of contexts."""

    limit: Limit
    known: Recommender
    context_distribution: DistributionUncertainty

    @classmethod
    def of(cls, limit: Limit, known: Recommender) -> Chance:
        return cls(limit, known, known.context_distribution.thinned(ATOMS))

    @cached_property
    def allowed(self) -> float:
        """Of the contexts seen, the largest share that may break it if f were known; none if that is too much."""
        return allowed_share(self.limit, self.context_distribution)

    def holds(self, x: Tensor) -> Array:
        """Probability (N) that it holds at designs ``x`` (N × d_x) in as large a share of contexts as it asks for."""
        found: Array = probability_of(1.0 - self._shares(x), self.limit.probability, self.context_distribution).mean(
            axis=1
        )
        return found

    def share(self, x: Tensor) -> tuple[float, tuple[float, float]]:
        """The expected share of contexts in which it holds at the design ``x`` (d_x), and a 95 % interval of it.

        Each end allows for one context more than was seen, which breaks the limit or keeps it: where f is known these
        are Clopper and Pearson's ends, and where every context seen keeps the limit the upper one is 1.
        """
        shares = self._shares(x[None])[0]
        if self.context_distribution.exact:
            low, high = np.quantile(shares, [0.025, 0.975])
            return float(shares.mean()), (float(low), float(high))
        low, high = (
            np.quantile(self._drawn(shares, *more), level) for more, level in ((BREAKS, 0.025), (KEEPS, 0.975))
        )
        return float(shares.mean()), (float(low), float(high))

    def _drawn(self, shares: Array, kept: float, broken: float) -> Array:
        """The share of all contexts, drawn for each share (draws) of those seen, with so many contexts more."""
        n, random = self.context_distribution.effective, stream(self.known.seed, "shares")
        good, bad = n * shares + kept, n * (1.0 - shares) + broken
        drawn = random.beta(np.maximum(good, 1e-9), np.maximum(bad, 1e-9))
        return np.asarray(np.where(bad <= 0.0, 1.0, np.where(good <= 0.0, 0.0, drawn)))

    def _shares(self, x: Tensor) -> Array:
        known, context_distribution = self.known, self.context_distribution
        points = ContextPoints(
            context_distribution.contexts, context_distribution.weights, context_distribution.contexts[:0]
        )
        return shares_within(known.model_goal, known.worlds, points, x, known.trust, known.seed)


def probability_of(broken: Array, probability: float, context_distribution: DistributionUncertainty) -> Array:
    """That a limit holds in a share ``probability`` of all contexts if a share ``broken`` of those seen breaks it."""
    if context_distribution.exact:
        return (broken <= 1.0 - probability + 1e-12).astype(np.float64)
    from scipy.special import betainc

    n = context_distribution.effective
    kept = np.maximum(n * (1.0 - broken), 1e-9)
    return np.asarray(betainc(n * broken + 1.0, kept, 1.0 - probability), dtype=np.float64)


def allowed_share(limit: Limit, context_distribution: DistributionUncertainty) -> float:
    """Of the contexts seen, the largest share that may break a limit if f were known; none if that is too much."""
    if context_distribution.exact:
        return 1.0 - limit.probability
    low, high = 0.0, 1.0 - limit.probability
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        sure = float(probability_of(np.array(middle), limit.probability, context_distribution)) >= limit.confidence
        low, high = (middle, high) if sure else (low, middle)
    return low


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
