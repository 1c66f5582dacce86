"""A goal as an acquisition function: what to maximize when asking, and what when recommending.

A model maximizes sign · y / scale (``Units``); a goal speaks of y. Goals that are a worst case over distributions, or
any other functional that better outcomes never make worse, follow from a ``Functional`` of the method's score: an upper
bound of f gives an upper bound of the goal. The others (``GoalAcquisition``) take the experts' barycenter μ̄, σ̄ and
the score's gain over μ̄ (for EDRBO β σ̄ − √2 ε̂) at every (x, c) and let the goal be optimistic within μ̄ ± gain
itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from edrbo.acquisition.acquisition import FAIR_ATOMS, ROUGH_ATOMS, RobustAcquisition, in_parts, joined, thinned
from edrbo.acquisition.objective import Objective
from edrbo.acquisition.risk import (
    KL,
    MMD,
    ChiSquare,
    CVaRFunctional,
    Expectation,
    Functional,
    Minimum,
    SoftCVaR,
    SoftMinimum,
    SoftVaR,
    TotalVariation,
    VaR,
    Wasserstein,
)
from edrbo.acquisition.risk.base import DEFAULT_SUPPORT
from edrbo.acquisition.scores import UCB, Score
from edrbo.contexts.distributions import ContextPoints, compress
from edrbo.errors import InvalidValueError
from edrbo.records import goals
from edrbo.records.goals import Direction, Goal
from edrbo.records.outcomes import Units
from edrbo.surrogate.ensemble import barycenter
from edrbo.surrogate.gaussian_model import GaussianModel, PairedModel

CAUTION = 0.1  # standard deviations of f taken off when designs are compared: of two equal means, the surer one
# atoms of the distribution when a design is asked for that meets points of the context box as well
ATOMS_BESIDE_SUPPORT = 32
MMD_SUPPORT = 32  # the quadratic program of an MMD ball grows fast with the points


@dataclass(frozen=True)
class ModelGoal:
    """A goal in a model's terms: with the units in which the model speaks of the outcome."""

    goal: Goal
    units: Units

    @property
    def direction(self) -> Direction:
        return "maximize" if self.units.sign > 0 else "minimize"

    @property
    def sense(self) -> float:
        return self.goal.sense(self.direction)

    @property
    def over_all_bounds(self) -> bool:
        """Whether contexts count that the bounds allow, however far they are from those seen."""
        return isinstance(self.goal, goals.WorstCase) and self.goal.over_box

    def given_context(self) -> ModelGoal:
        """The same once the next context is known: no other distribution is possible, and nothing varies."""
        certain = self.goal.over_box or type(self.goal) in _FUNCTIONALS
        return ModelGoal(goals.Expected(), self.units) if certain else self

    def functional(self, *, soft: bool) -> Functional:
        """What reduces a row of scores; ``soft`` without kinks, where there is such a one."""
        if self.goal.pointwise:
            return Expectation(support_size=DEFAULT_SUPPORT if self.goal.over_box else 0)
        make = _FUNCTIONALS.get(type(self.goal))
        return _OwnFunctional(self) if make is None else make(self.goal, soft)

    def acquisition(
        self, model: GaussianModel, score: Score, points: ContextPoints
    ) -> RobustAcquisition | GoalAcquisition:
        """For asking: the method's score, optimistic in the sense of the goal.

        A score of the mean over contexts is for the mean; under any other goal it is one of f at each context
        (docs/why.md has the trial of both where both are possible).
        """
        if not isinstance(self.goal, goals.Expected):
            score = score.per_context()
        if self.goal.pointwise:
            return GoalAcquisition(model, score, points, self)
        return RobustAcquisition(model, score, _affordable(points), self.functional(soft=True))

    def posterior(self, model: GaussianModel, points: ContextPoints) -> RobustAcquisition | GoalAcquisition:
        """For recommending: the posterior expectation of the goal where marginals of f give it, else its value of the
        mean surface, less a little for what is not known."""
        cautious = UCB(beta=-CAUTION)
        if self.goal.pointwise:
            return GoalAcquisition(model, cautious, points, self, expected=True)
        return RobustAcquisition(model, cautious, points, self.functional(soft=False))

    def value(self, outcomes: Tensor, points: ContextPoints) -> Tensor:
        """The goal's value in its own units (...) of a model's outcomes (... × n) at ``points.all``."""
        if self.goal.of_outcomes:
            return self.to_user(self.modelled_value(outcomes, points))
        value: Tensor = self.goal.value(self.to_user(outcomes), points.mass, self.direction)
        return value

    def modelled_value(self, outcomes: Tensor, points: ContextPoints) -> Tensor:
        """The same in the model's units, for goals ``of_outcomes``."""
        if isinstance(self.goal, goals.Robust):
            return self.functional(soft=False)(outcomes, points)
        value: Tensor = self.goal.value(outcomes, points.mass, "maximize")
        return value

    def held(self, outcomes: Tensor) -> Tensor:
        """A model's outcomes, held to what outcomes can be."""
        return outcomes.clamp(*self.units.ends) if self.units.limited else outcomes

    def to_user(self, outcomes: Tensor) -> Tensor:
        return self.units.sign * self.units.scale * outcomes


# From a goal, and whether it is to be soft, to the functional of the score. A monotone goal without one is taken by
# autograd.
_FUNCTIONALS: dict[type[Goal], Callable[[Any, bool], Functional]] = {
    goals.Expected: lambda goal, soft: Expectation(),
    goals.CVaR: lambda goal, soft: SoftCVaR(goal.level) if soft else CVaRFunctional(goal.level),
    goals.Quantile: lambda goal, soft: SoftVaR(goal.level) if soft and goal.level < 1.0 else VaR(goal.level),
    goals.WorstCase: lambda goal, soft: (SoftMinimum if soft else Minimum)(
        support_size=DEFAULT_SUPPORT if goal.over_box else 0
    ),
    goals.Robust: lambda goal, soft: _BALLS[goal.distance](goal.radius),
}
_BALLS: dict[str, Callable[[float], Functional]] = {
    "wasserstein": Wasserstein,
    "total-variation": TotalVariation,
    "kl": KL,
    "chi-square": ChiSquare,
    "mmd": lambda radius: MMD(radius, support_size=MMD_SUPPORT),
}


@dataclass(frozen=True)
class _OwnFunctional(Functional):
    """A monotone goal of one's own, by autograd."""

    model_goal: ModelGoal
    locally_linear: ClassVar[bool] = False

    @property
    def support_size(self) -> int:  # type: ignore[override]
        return DEFAULT_SUPPORT if self.model_goal.goal.over_box else 0

    def __call__(self, values: Tensor, points: ContextPoints, slope: Tensor | None = None) -> Tensor:
        return self.model_goal.sense * self.model_goal.value(values, points)


def _affordable(points: ContextPoints) -> ContextPoints:
    """With fewer atoms, where every design meets points of the context box besides."""
    if not len(points.support) or len(points.atoms) <= ATOMS_BESIDE_SUPPORT:
        return points
    small = compress(points.atoms, points.weights, ATOMS_BESIDE_SUPPORT, discrete=points.discrete)
    return replace(points, atoms=small.atoms, weights=small.weights)


class GoalAcquisition(Objective):
    """α(x) = what the goal makes of μ̄, σ̄ and gain at (x, c_1..c_n): optimistic, or ``expected``. Larger is better."""

    def __init__(
        self,
        model: GaussianModel,
        score: Score,
        points: ContextPoints,
        model_goal: ModelGoal,
        *,
        expected: bool = False,
    ) -> None:
        if score.integrated:
            raise InvalidValueError(
                f"an integrated score has no meaning for the goal {type(model_goal.goal).__name__}",
                "it is about the mean over contexts, and this goal looks at each; take another method",
            )
        self.model, self.score, self.points, self.model_goal, self.expected = model, score, points, model_goal, expected

    @property
    def has_kinks(self) -> bool:
        return self.model_goal.goal.has_kinks

    def __call__(self, x: Tensor) -> Tensor:
        return self.evaluate(x)

    def evaluate(self, x: Tensor) -> Tensor:
        """Values (N) at designs ``x`` (N × d_x), differentiable in ``x``."""
        return torch.cat([self._evaluate(part) for part in self._split(x)])

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Values (N) and gradients (N × d_x) at designs ``x``, without a graph through the model."""
        return joined([self._value_and_gradient(part) for part in self._split(x)])

    def approximations(self) -> list[GoalAcquisition]:
        """Approximations, from coarse to exact, the acquisition itself last."""
        few, more = thinned(self.points, ROUGH_ATOMS), thinned(self.points, FAIR_ATOMS)
        model = self.model.sparse()
        fair = self if more is self.points and model is self.model else self._on(model, more)
        return [self._on(model.rough(), few), fair, fair, self]

    @property
    def expensive(self) -> bool:
        return self.model.sparse() is not self.model

    def near(self, x: Tensor) -> GoalAcquisition:
        """The contexts that matter are the same everywhere."""
        return self

    def _on(self, model: GaussianModel, points: ContextPoints) -> GoalAcquisition:
        return GoalAcquisition(model, self.score, points, self.model_goal, expected=self.expected)

    def _split(self, x: Tensor) -> tuple[Tensor, ...]:
        return in_parts(x, self.model.width * len(self.points.all))

    @cached_property
    def _paired(self) -> PairedModel:
        return self.model.paired_with(self.points.all)

    def _evaluate(self, x: Tensor) -> Tensor:
        mean, sd = self._paired.moments(x)
        center, spread = barycenter(mean, sd, self.model.weights)
        score = self.score(mean, sd) if self.model.weights is None else self.score(mean, sd, self.model.weights)
        return self._reduce(*(part.reshape(len(x), -1) for part in (center, spread, score - center)))

    def _value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, sd, pullback = self._paired.moments_and_pullback(x)
        weights = self.model.weights
        score, score_by_mean, score_by_sd = self.score.value_and_slopes(
            mean, sd, *([] if weights is None else [weights])
        )
        center, spread = barycenter(mean, sd, weights)
        with torch.enable_grad():
            rows = [part.reshape(len(x), -1).requires_grad_() for part in (center, spread, score - center)]
            value = self._reduce(*rows)
            slopes = torch.autograd.grad(value.sum(), rows, allow_unused=True, materialize_grads=True)
        by_center, by_spread, by_gain = (slope.reshape(-1) for slope in slopes)
        share = torch.full_like(mean, 1.0 / len(mean)) if weights is None else weights[:, None]
        by_mean = share * (by_center - by_gain) + score_by_mean * by_gain
        by_sd = share * by_spread + score_by_sd * by_gain
        return value.detach(), pullback(by_mean, by_sd)

    def _reduce(self, center: Tensor, spread: Tensor, gain: Tensor) -> Tensor:
        """One number a design from rows (N × n) in the model's units."""
        goal, units, mass = self.model_goal.goal, self.model_goal.units, self.points.mass
        mean, sd, direction = self.model_goal.to_user(center), units.scale * spread, self.model_goal.direction
        value = goal.expected(mean, sd, mass, direction) if self.expected else None
        if value is None:
            value = goal.optimistic(mean, sd, units.scale * gain, mass, direction)
        better: Tensor = self.model_goal.sense * value
        return better
