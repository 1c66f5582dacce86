"""Beliefs about several outcomes at once: what ``Belief`` is for one.

Asking is hopeful about everything: the sum of the hopeful values of what is wanted, or what they add to a front, among
designs whose limits may hold, so that runs may break limits while these are learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from edrbo.acquisition.front import FrontGain, cells_of
from edrbo.acquisition.objective import Objective, combine
from edrbo.acquisition.penalties import LimitPenalty, Margin, limited_ladder, margin
from edrbo.acquisition.score import UCB
from edrbo.context.laws import ContextPoints
from edrbo.context.uncertainty import LawBelief
from edrbo.optimizer.belief import Belief
from edrbo.optimizer.chance import Chance
from edrbo.records.goals import Goal
from edrbo.records.outcomes import Limit, Maximize, Minimize
from edrbo.records.settings import LEAST_SUCCESS
from edrbo.surrogate.ensemble import Ensemble

ASK_ATOMS = 64  # contexts in which a limit is looked at while a design is asked for
STEEPNESS = 30.0  # ranges of the objective that breaking a limit by its outcome's range costs
JUST = 1e-9  # more than the share of contexts that may break a limit: the quantile beyond it


@dataclass(frozen=True, eq=False)
class Part:
    """One outcome: what it is for, what is believed of it, and the law of its contexts in its model's code."""

    name: str
    wanted: Maximize | Minimize | Limit
    belief: Belief
    law: LawBelief

    @property
    def weight(self) -> float:
        """Of its value in the sum, in the user's units, as its acquisition has it."""
        assert not isinstance(self.wanted, Limit)
        weight = 1.0 if self.wanted.weight is None else self.wanted.weight
        model_goal = self.belief.model_goal
        modelled = self.belief.functional is not None or (model_goal.goal.of_outcomes and not model_goal.goal.pointwise)
        return weight * model_goal.units.scale if modelled else weight

    @property
    def range(self) -> float:
        """How far its outcomes are apart, in the user's units."""
        return float(self.belief.model_goal.units.spread_to_user(self.belief.outcome_range))

    @property
    def worth(self) -> float:
        """How far its values in the sum may be apart."""
        assert not isinstance(self.wanted, Limit)
        goal = self.belief.model_goal.goal
        size = {"outcome": self.range, "probability": 1.0, "squared outcome": self.range**2}[goal.kind]
        return size * (1.0 if self.wanted.weight is None else self.wanted.weight)


@dataclass(frozen=True, eq=False)
class Joint:
    """Beliefs about all outcomes that were told, the main one first; what ``Belief`` is for a single one."""

    parts: tuple[Part, ...]
    least_success: float = LEAST_SUCCESS
    tried: Tensor | None = None  # designs (n × d_x) that a front is made of so far, those being tried among them

    @property
    def main(self) -> Belief:
        return self.parts[0].belief

    @property
    def model(self) -> Ensemble:
        return self.main.model

    @property
    def points(self) -> ContextPoints:
        return self.main.points

    @property
    def wanted(self) -> list[Part]:
        return [part for part in self.parts if not isinstance(part.wanted, Limit)]

    @property
    def limits(self) -> list[tuple[Part, Limit]]:
        return [(part, part.wanted) for part in self.parts if isinstance(part.wanted, Limit)]

    @cached_property
    def worth(self) -> float:
        """The range of the objective."""
        return sum(part.worth for part in self.wanted)

    def for_suggestion(self, number: int) -> Joint:
        """Every suggestion serves all outcomes at once."""
        return self

    def acquisition(self) -> Climb:
        """Hopeful about what is wanted and about the limits."""
        limits = []
        for part, limit in self.limits:
            hopeful = Margin(limit.lower, limit.upper, 1.0 - limit.probability + JUST)
            points = law_points(part.law.thinned(ASK_ATOMS))
            model, score, units = part.belief.model, part.belief.score, part.belief.model_goal.units
            limits.append((self.cost(part), margin(model, score, points, hopeful, units).ladder()))
        terms = [(part.weight, part.belief.acquisition().ladder()) for part in self.wanted]
        if not self.has_front:
            return Climb(limited_ladder(terms, limits))
        sizes, cells = torch.tensor([part.worth for part in self.wanted], dtype=torch.float64), self._cells()
        share = [(cost / self.worth, ladder) for cost, ladder in limits]  # a gain is a part of the whole
        weights = [weight for weight, _ in terms]
        gains = combine(
            [ladder for _, ladder in terms],
            lambda level: FrontGain(tuple(zip(weights, level, strict=True)), sizes, *cells),
        )
        return Climb(limited_ladder([(1.0, gains)], share))

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
                mean = Margin(limit.lower, limit.upper, 1.0 - limit.probability + JUST)
                points = law_points(part.law.thinned(ASK_ATOMS))
                model, units = part.belief.model, part.belief.model_goal.units
                kept &= margin(model, UCB(beta=0.0), points, mean, units)(self.tried) >= 0
        sizes = torch.tensor([part.worth for part in self.wanted], dtype=values.dtype)
        return cells_of(values / sizes, kept)

    def cautious(self, chances: Sequence[Chance], caution: float) -> list[LimitPenalty]:
        """The cautious value of what is wanted under limits that hold ``caution`` standard deviations off."""
        values = [(part, part.belief.model_goal.belief(part.belief.model, part.belief.points)) for part in self.wanted]
        terms = [(part.weight, value.ladder()) for part, value in values]
        limits = []
        for (part, limit), chance in zip(self.limits if chances else (), chances, strict=True):
            sure = Margin(limit.lower, limit.upper, chance.allowed + JUST)
            score, units = UCB(beta=-caution), part.belief.model_goal.units
            made = margin(part.belief.model, score, law_points(chance.law), sure, units)
            limits.append((self.cost(part), made.ladder()))
        return limited_ladder(terms, limits)

    def cost(self, part: Part) -> float:
        """What breaking a limit costs, a unit of its outcome."""
        return STEEPNESS * self.worth / part.range

    def feasible(self, ladder: Sequence[Objective]) -> list[Objective]:
        return self.main.feasible(ladder)

    def apart(self, ladder: Sequence[Objective]) -> list[Objective]:
        """Away from what is being evaluated."""
        return self.main.apart(ladder, 1.0 if self.has_front else self.worth)

    def values(self, x: Tensor) -> Tensor:
        """As ``Belief.values``, under limits that the mean surfaces keep; nothing is added to a front yet."""
        if self.has_front:
            return x.new_zeros(len(x))
        sober = replace(self, parts=tuple(replace(part, belief=part.belief.sober()) for part in self.parts))
        with torch.no_grad():
            return self.feasible(sober.acquisition().ladder()[-1:])[0](x)

    def level(self, x: Tensor) -> float:
        """As ``Belief.level``; what is added to a front begins at nothing."""
        if self.has_front:
            return 0.0
        return float(self.values(x).max()) if len(x) else -torch.inf

    def with_pending(self, x: Tensor) -> Joint:
        """Once ``x`` (q × d_x) is being evaluated."""
        parts = tuple(replace(part, belief=part.belief.with_pending(x)) for part in self.parts)
        return replace(self, parts=parts, tried=None if self.tried is None else torch.cat([self.tried, x]))

    def under(self, goal: Goal) -> Joint:
        """The same with another goal of what is wanted."""
        turned = [
            part
            if isinstance(part.wanted, Limit)
            else replace(part, belief=replace(part.belief, model_goal=replace(part.belief.model_goal, goal=goal)))
            for part in self.parts
        ]
        return replace(self, parts=tuple(turned))


@dataclass(frozen=True, eq=False)
class Climb:
    """A ladder as an acquisition has it; where a limit begins there is a kink."""

    rungs: list[LimitPenalty]
    has_kinks: bool = True

    def ladder(self) -> list[LimitPenalty]:
        return self.rungs


def law_points(law: LawBelief) -> ContextPoints:
    return ContextPoints(law.contexts, law.weights, law.contexts[:0])
