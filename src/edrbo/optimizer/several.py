"""Thinking about several outcomes: what to ask for, and which design to recommend under limits.

Each outcome is believed in by itself, as a study of its own would. Asking is hopeful about everything: the sum of the
hopeful values of what is wanted, among designs whose limits may hold, so that runs may break limits while these are
learned. A recommendation is cautious: its limits hold with the confidence that was asked for (``chance``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.limits import Limited, Margin, limited_ladder, margin
from edrbo.acquisition.maximizer import Objective
from edrbo.acquisition.score import UCB
from edrbo.context.laws import ContextPoints
from edrbo.context.uncertainty import LawBelief
from edrbo.errors import EdrboError
from edrbo.optimizer.admissible import ALMOST, best_admissible
from edrbo.optimizer.answer import OutcomeAnswer, Recommendation
from edrbo.optimizer.belief import Belief
from edrbo.optimizer.chance import Chance, allowed_share
from edrbo.optimizer.choice import Choice
from edrbo.optimizer.recommendation import Knowledge
from edrbo.records.goals import Expected, Goal
from edrbo.records.outcomes import Limit, Maximize, Minimize, Outcomes
from edrbo.records.settings import LEAST_SUCCESS
from edrbo.records.words import aim_words
from edrbo.surrogate.ensemble import Ensemble

Array = NDArray[np.float64]

ASK_ATOMS = 64  # contexts in which a limit is looked at while a design is asked for
STEEPNESS = 30.0  # ranges of the objective that breaking a limit by its outcome's range costs
FIRST_CAUTION, MOST_CAUTION = 1.0, 8.0  # standard deviations by which limits are kept when a recommendation is sought
ROUNDS = 5  # of halving the caution that confidence needs
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
        aim = self.belief.aim
        modelled = self.belief.functional is not None or (aim.of_outcomes and not aim.pointwise)
        return weight * aim.units.scale if modelled else weight

    @property
    def range(self) -> float:
        """How far its outcomes are apart, in the user's units."""
        return float(self.belief.aim.units.spread_to_user(self.belief.outcome_range))

    @property
    def worth(self) -> float:
        """How far its values in the sum may be apart."""
        assert not isinstance(self.wanted, Limit)
        size = {"outcome": self.range, "probability": 1.0, "squared outcome": self.range**2}[self.belief.aim.goal.kind]
        return size * (1.0 if self.wanted.weight is None else self.wanted.weight)


@dataclass(frozen=True, eq=False)
class Joint:
    """Beliefs about all outcomes that were told, the main one first; what ``Belief`` is for a single one."""

    parts: tuple[Part, ...]
    least_success: float = LEAST_SUCCESS

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

    def acquisition(self) -> Climb:
        """Hopeful about what is wanted and about the limits."""
        terms = [(part.weight, part.belief.acquisition().ladder()) for part in self.wanted]
        limits = []
        for part, limit in self.limits:
            hopeful = Margin(limit.lower, limit.upper, 1.0 - limit.probability + JUST)
            points = _points(part.law.thinned(ASK_ATOMS))
            model, score, units = part.belief.model, part.belief.score, part.belief.aim.units
            limits.append((self.cost(part), margin(model, score, points, hopeful, units).ladder()))
        return Climb(limited_ladder(terms, limits))

    def cautious(self, chances: Sequence[Chance], caution: float) -> list[Limited]:
        """The cautious value of what is wanted under limits that hold ``caution`` standard deviations off."""
        values = [(part, part.belief.aim.belief(part.belief.model, part.belief.points)) for part in self.wanted]
        terms = [(part.weight, value.ladder()) for part, value in values]
        limits = []
        for (part, limit), chance in zip(self.limits, chances, strict=True):
            sure = Margin(limit.lower, limit.upper, allowed_share(limit, chance.law) + JUST)
            score, units = UCB(beta=-caution), part.belief.aim.units
            made = margin(part.belief.model, score, _points(chance.law), sure, units)
            limits.append((self.cost(part), made.ladder()))
        return limited_ladder(terms, limits)

    def cost(self, part: Part) -> float:
        """What breaking a limit costs, a unit of its outcome."""
        return STEEPNESS * self.worth / part.range

    def feasible(self, ladder: Sequence[Objective]) -> list[Objective]:
        return self.main.feasible(ladder)

    def with_pending(self, x: Tensor) -> Joint:
        """Once ``x`` (q × d_x) is being evaluated."""
        return replace(self, parts=tuple(replace(part, belief=part.belief.with_pending(x)) for part in self.parts))

    def under(self, goal: Goal) -> Joint:
        """The same with another goal of what is wanted."""
        turned = [
            part
            if isinstance(part.wanted, Limit)
            else replace(part, belief=replace(part.belief, aim=replace(part.belief.aim, goal=goal)))
            for part in self.parts
        ]
        return replace(self, parts=tuple(turned))


@dataclass(frozen=True, eq=False)
class Climb:
    """A ladder as an acquisition has it; where a limit begins there is a kink."""

    rungs: list[Any]
    has_kinks: bool = True

    def ladder(self) -> list[Any]:
        return self.rungs


def _points(law: LawBelief) -> ContextPoints:
    return ContextPoints(law.contexts, law.weights, law.contexts[:0])


@dataclass(frozen=True, eq=False)
class Advised:
    """A design (d_x), the probability that each limit holds, by name, and whether all are as sure as was asked for."""

    x: Tensor
    holds: dict[str, float]
    sure: bool


@dataclass(frozen=True, eq=False)
class Adviser:
    """Finds the best design whose limits hold with confidence, or else come closest to that."""

    joint: Joint
    chances: tuple[Chance, ...]
    choice: Choice
    starts: Tensor
    seed: int

    @classmethod
    def of(cls, joint: Joint, knowns: Sequence[Knowledge], choice: Choice, starts: Tensor, seed: int) -> Adviser:
        known = {id(one.belief): one for one in knowns}
        chances = [Chance.of(limit, known[id(part.belief)]) for part, limit in joint.limits]
        return cls(joint, tuple(chances), choice, choice.starts(starts), seed)

    def advise(self) -> Advised:
        """The least caution about limits that gives the confidence, by halving."""
        if not self.chances:
            return Advised(self._best(0.0), {}, True)
        found: list[Tensor] = []
        low, high, caution = 0.0, None, FIRST_CAUTION
        for _ in range(ROUNDS):
            found.append(self._best(caution))
            if self._sure(found[-1][None])[0]:
                high = caution
            else:
                low = caution
            caution = 0.5 * (low + high) if high is not None else 2.0 * caution
            if caution > MOST_CAUTION:
                break
        return self._pick(torch.stack(found) if high is not None else torch.cat([torch.stack(found), self.starts]))

    def _best(self, caution: float) -> Tensor:
        ladder, least = self.joint.cautious(self.chances, caution), self.joint.least_success
        found = best_admissible(ladder, self.joint.main, self.choice, self.starts, self.seed, least, kinks=True)
        return self.choice.settled(found)

    def _sure(self, x: Tensor) -> NDArray[np.bool_]:
        return np.asarray((self._ratios(x) >= 1.0).all(axis=0))

    def _ratios(self, x: Tensor) -> Array:
        """Probability that each limit holds at designs ``x`` (N × d_x), as a part of what is asked for: limits × N."""
        return np.stack([chance.holds(x) / chance.limit.confidence for chance in self.chances])

    def _pick(self, x: Tensor) -> Advised:
        """The best of designs (N × d_x) that are sure; if none is, of those nearly as sure as the surest."""
        ratios = self._ratios(x)
        least = ratios.min(axis=0)
        bar = 1.0 if least.max() >= 1.0 else ALMOST * float(least.max())
        with torch.no_grad():
            worth = self.joint.cautious(self.chances, 0.0)[-1].worth(x).numpy()
        best = int(np.where(least >= bar, worth, -np.inf).argmax())
        names = [part.name for part, _ in self.joint.limits]
        asked = [chance.limit.confidence for chance in self.chances]
        holds = dict(zip(names, (ratios[:, best] * asked).tolist(), strict=True))
        return Advised(x[best], holds, bool(least[best] >= 1.0))

    def admit(self, points: Array) -> Array:
        """Designs that can be chosen near ``points`` (n × d_x) and whose limits the mean surface keeps."""
        near = self.choice.admit(points)
        if not self.chances or not len(near):
            return near
        x, top = torch.from_numpy(near), self.joint.cautious(self.chances, 0.0)[-1]
        with torch.no_grad():
            kept = torch.stack([limit(x) >= 0.0 for _, limit in top.limits]).all(0).numpy()
        found: Array = near[kept]
        return found


def need_one_main(outcomes: Outcomes) -> None:
    """EdrboError where there is a front in place of a best design."""
    if len(outcomes.mains) > 1:
        names = " and ".join(outcomes.mains)
        raise EdrboError(f"{names} have no single best design", "see front(), or give all but one a weight")


def adviser_of(knowns: Mapping[str, Knowledge], choice: Choice) -> Adviser:
    """From what is known of every outcome, the main one first."""
    main = next(iter(knowns.values()))
    settings = main.evidence.state.settings
    assert settings.outcomes is not None
    parts = tuple(Part(name, settings.outcomes[name], known.belief, known.law) for name, known in knowns.items())
    joint = Joint(parts, settings.least_success)
    return Adviser.of(joint, list(knowns.values()), choice, main.evidence.starts(), main.seed)


def recommend_under_limits(knowns: Mapping[str, Knowledge], choice: Choice, ball: float) -> Recommendation:
    """The best design whose limits hold with confidence, and what is known of every outcome there."""
    main, adviser = next(iter(knowns.values())), adviser_of(knowns, choice)
    joint, outcomes = adviser.joint, main.evidence.state.settings.outcomes
    assert outcomes is not None
    advised, average = adviser.advise(), None
    if main.aim.goal != Expected():
        average = replace(adviser, joint=joint.under(Expected())).advise().x
    found = main.recommend(advised.x, advised.x if average is None else average, ball, adviser.admit)
    hold = advised.sure if outcomes.limits else None
    return replace(found, outcomes=_answers(knowns, outcomes, adviser, advised.x), limits_hold=hold)


def _answers(
    knowns: Mapping[str, Knowledge], outcomes: Outcomes, adviser: Adviser, x: Tensor
) -> dict[str, OutcomeAnswer]:
    """What to expect of every outcome at the design ``x`` (d_x)."""
    found, chances = {}, {id(chance.known): chance for chance in adviser.chances}
    for name, known in knowns.items():
        said, chance = known.predict(x[None]), chances.get(id(known))
        value, ends, holds = float(said.value[0]), (float(said.value_lower[0]), float(said.value_upper[0])), None
        if chance is not None:
            (value, ends), holds = chance.share(x), float(chance.holds(x[None])[0])
        words, unit = aim_words(name, outcomes[name])
        found[name] = OutcomeAnswer(
            aim=words,
            unit=unit,
            expected=float(said.expected[0]),
            interval=(float(said.lower[0]), float(said.upper[0])),
            outcome=(float(said.outcome_lower[0]), float(said.outcome_upper[0])),
            value=value,
            value_interval=ends,
            holds=holds,
        )
    return found
