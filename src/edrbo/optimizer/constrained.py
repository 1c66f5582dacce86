"""Constrained recommendation: the best design whose limits hold with the confidence that was asked for.

Each outcome has its own posterior (``joint``); ``chance`` says how sure a limit is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.search.maximizer import BUDGET, Budget
from edrbo.errors import SeveralOutcomesError
from edrbo.optimizer.answers import LikelyDesign, OutcomeAnswer
from edrbo.optimizer.candidates import CandidateSet
from edrbo.optimizer.joint_posterior import Chance, JointPosterior, OutcomePart
from edrbo.optimizer.recommendation import ALMOST, Recommendation, Recommender, best_feasible
from edrbo.records.descriptions import describe_aim
from edrbo.records.goals import Expected
from edrbo.records.outcomes import Outcomes

Array = NDArray[np.float64]

FIRST_CAUTION, MOST_CAUTION = 1.0, 8.0  # standard deviations by which limits are kept when a recommendation is sought
ROUNDS = 5  # of halving the caution that confidence needs
AGAIN = Budget(screened=256, near=32, kept=20, starts=3, expensive_kept=14, expensive_starts=2, finalists=2)


@dataclass(frozen=True, eq=False)
class ConstrainedChoice:
    """A design (d_x), and whether all limits are as sure as was asked for."""

    x: Tensor
    sure: bool


@dataclass(frozen=True, eq=False)
class ConstrainedRecommender:
    """Finds the best design whose limits hold with confidence, or else come closest to that."""

    joint: JointPosterior
    chances: tuple[Chance, ...]
    candidates: CandidateSet
    starts: Tensor
    seed: int

    @classmethod
    def of(
        cls,
        joint: JointPosterior,
        knowns: Mapping[str, Recommender],
        candidates: CandidateSet,
        starts: Tensor,
        seed: int,
    ) -> ConstrainedRecommender:
        chances = [Chance.of(limit, knowns[part.name]) for part, limit in joint.limits]
        return cls(joint, tuple(chances), candidates, candidates.starts(starts), seed)

    def select(self) -> ConstrainedChoice:
        """The least caution about limits that gives the confidence, by halving."""
        if not self.chances:
            return ConstrainedChoice(self._best(0.0, []), True)
        found: list[Tensor] = []
        low, high, caution = 0.0, None, FIRST_CAUTION
        for _ in range(ROUNDS):
            found.append(self._best(caution, found))
            if self._sure(found[-1][None])[0]:
                high = caution
            else:
                low = caution
            caution = 0.5 * (low + high) if high is not None else 2.0 * caution
            if caution > MOST_CAUTION:
                break
        return self._pick(torch.stack(found) if high is not None else torch.cat([torch.stack(found), self.starts]))

    def likely(self) -> Tensor:
        """The best design (d_x) that keeps the limits on the mean surface."""
        return self._best(0.0, [])

    def _best(self, caution: float, found: list[Tensor]) -> Tensor:
        """The best design (d_x) under a caution; from the second on near those ``found`` under others, whose hills are
        mostly the same."""
        approximations, least = self.joint.cautious(self.chances, caution), self.joint.least_success
        starts, budget = (torch.cat([self.starts, torch.stack(found)]), AGAIN) if found else (self.starts, BUDGET)
        best = best_feasible(
            approximations, self.joint.main, self.candidates, starts, self.seed, least, kinks=True, budget=budget
        )
        return self.candidates.settled(best)

    def _sure(self, x: Tensor) -> NDArray[np.bool_]:
        return np.asarray((self._ratios(x) >= 1.0).all(axis=0))

    def _ratios(self, x: Tensor) -> Array:
        """Probability that each limit holds at designs ``x`` (N × d_x), as a part of what is asked for: limits × N."""
        return np.stack([chance.holds(x) / chance.limit.confidence for chance in self.chances])

    def surest(self, x: Tensor) -> tuple[NDArray[np.bool_], bool]:
        """Which of designs (N × d_x) are as sure as was asked for, or if none is, nearly as sure as the surest; and
        whether they are."""
        least = self._ratios(x).min(axis=0)
        sure = bool(least.max() >= 1.0)
        return np.asarray(least >= (1.0 if sure else ALMOST * float(least.max()))), sure

    def _pick(self, x: Tensor) -> ConstrainedChoice:
        """The best of designs (N × d_x) that are sure, or come nearest to that."""
        kept, sure = self.surest(x)
        with torch.no_grad():
            worth = self.joint.cautious((), 0.0)[-1].worth(x).numpy()
        return ConstrainedChoice(x[int(np.where(kept, worth, -np.inf).argmax())], sure)

    def admit(self, points: Array) -> Array:
        """Designs that can be chosen near ``points`` (n × d_x) and whose limits the mean surface keeps."""
        near = self.candidates.admit(points)
        if not self.chances or not len(near):
            return near
        x, top = torch.from_numpy(near), self.joint.cautious(self.chances, 0.0)[-1]
        with torch.no_grad():
            kept = torch.stack([limit(x) >= 0.0 for _, limit in top.limits]).all(0).numpy()
        found: Array = near[kept]
        return found


def need_one_main(outcomes: Outcomes) -> None:
    """SeveralOutcomesError where there is a front in place of a best design."""
    if len(outcomes.mains) > 1:
        names = " and ".join(outcomes.mains)
        raise SeveralOutcomesError(f"{names} have no single best design", "see front(), or give all but one a weight")


def recommender_of(knowns: Mapping[str, Recommender], candidates: CandidateSet) -> ConstrainedRecommender:
    """From what is known of every outcome, the main one first."""
    main = next(iter(knowns.values()))
    settings = main.training_data.state.settings
    assert settings.outcomes is not None
    parts = tuple(
        OutcomePart(name, settings.outcomes[name], known.posterior, known.context_distribution)
        for name, known in knowns.items()
    )
    joint = JointPosterior(parts, settings.least_success)
    return ConstrainedRecommender.of(joint, knowns, candidates, main.training_data.starts(), main.seed)


def recommend_under_limits(
    knowns: Mapping[str, Recommender], candidates: CandidateSet, radius: float
) -> Recommendation:
    """The best design whose limits hold with confidence, and what is known of every outcome there."""
    main, recommender = next(iter(knowns.values())), recommender_of(knowns, candidates)
    joint, outcomes = recommender.joint, main.training_data.state.settings.outcomes
    assert outcomes is not None
    advised, average = recommender.select(), None
    if main.model_goal.goal != Expected():
        average = replace(recommender, joint=joint.under(Expected())).select().x
    return Recommendation(
        main,
        advised.x,
        advised.x if average is None else average,
        radius=radius,
        admit=recommender.admit,
        outcomes=partial(_answers, knowns, outcomes, recommender, advised.x),
        likely=None if advised.sure else partial(_likely, main, recommender),
        confidences={name: limit.confidence for name, limit in outcomes.limits.items()},
    )


def _likely(main: Recommender, recommender: ConstrainedRecommender) -> LikelyDesign:
    x = recommender.likely()
    said = main.predict(x[None])
    (design,) = main.training_data.space.decode_designs(x.numpy())
    return LikelyDesign(design, float(said.expected[0]), (float(said.lower[0]), float(said.upper[0])))


def _answers(
    knowns: Mapping[str, Recommender], outcomes: Outcomes, recommender: ConstrainedRecommender, x: Tensor
) -> dict[str, OutcomeAnswer]:
    """What to expect of every outcome at the design ``x`` (d_x)."""
    found, chances = {}, dict(zip(outcomes.limits, recommender.chances, strict=True))
    for name, known in knowns.items():
        said, chance = known.predict(x[None]), chances.get(name)
        value, ends, holds = float(said.value[0]), (float(said.value_lower[0]), float(said.value_upper[0])), None
        met: float | None = None
        if chance is not None:
            (value, ends), holds = chance.share(x), float(chance.holds(x[None])[0])
            met = None if chance.context_distribution.exact else chance.context_distribution.effective
        words, unit = describe_aim(name, outcomes[name])
        found[name] = OutcomeAnswer(
            aim=words,
            unit=unit,
            expected=float(said.expected[0]),
            interval=(float(said.lower[0]), float(said.upper[0])),
            outcome_interval=(float(said.outcome_lower[0]), float(said.outcome_upper[0])),
            value=value,
            value_interval=ends,
            holds=holds,
            contexts_known=met,
        )
    return found
