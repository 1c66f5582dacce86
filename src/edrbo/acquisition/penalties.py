"""Objectives that wrap another one: penalties for pending designs, probable failure, cost and broken limits.

A pending evaluation is hallucinated and so reduces the variance around it, but an acquisition function that is sure of
its maximum suggests it again all the same. In a batch that is a waste: neighboring designs give nearly the same
information. So a Gaussian bump is subtracted around each pending design, a fraction of the lengthscales wide (after
local penalization, González et al., 2016; here the penalty is additive).

A design that may fail loses a penalty by its probability of success. ``LogRisk`` is for trying: value + cost · log P is
the logarithm of exp(value / cost) · P, a product of worth and probability that needs no zero of y. ``Bar`` is for
using: designs below a level of P are kept out, and above it the surer design is preferred if that costs little.

A limit on an outcome holds in all but a share α of contexts exactly if the α-quantile over contexts of the margin
min(upper − f, f − lower) is not negative. That quantile (``Margin``) has a slope where the share of contexts itself is
flat. Taken of f's optimistic bound it says where a limit may hold, of its pessimistic bound where it holds almost for
certain.

What a run may gain is its optimistic value a(x) beyond the level m that is had already: an optimism about an
improvement. Gain over cost, (a − m) / c, is right as long as much is left to spend; with the last run the gain alone
is. Nobody says here how much is left, so the geometric mean of the two is made largest, (a − m) / √c, by Dinkelbach's
method: maximize a − λ√c with λ the best ratio so far, and again. Each round finds a ratio at least as large, and where
all costs are the same the first round's design stays. Where nothing is to be gained even optimistically there is no
such ratio, and the most optimistic design is taken whatever it costs: all that a run can then do is show that optimism
or caution was wrong, and there it does so soonest.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.acquisition import GoalAcquisition, ModelGoal
from edrbo.acquisition.objective import Combined, Objective, ObjectiveWrapper, Terms, combine, wrap
from edrbo.acquisition.scores import Score
from edrbo.contexts.distributions import ContextPoints
from edrbo.records.goals import Array as Numbers
from edrbo.records.goals import Direction, Goal, Quantile, module_of
from edrbo.records.outcomes import Units
from edrbo.surrogate.feasibility import Feasibility
from edrbo.surrogate.gaussian_model import GaussianModel

Array = NDArray[np.float64]

WIDTH = 0.05  # of the hill, in lengthscales
LEAST = 1e-3  # added to probabilities, so that behind a wall the logarithm does not drown everything else
ROUNDS = 2  # after the one that does not look at the cost
WORTHWHILE = 1e-3  # by how much a round must raise the ratio to count

Search = Callable[[Sequence[Objective]], Tensor]  # approximations → the best design (d_x)


# ---------------------------------------------------------------- designs under way


@dataclass(frozen=True, eq=False)
class LocalPenalization(ObjectiveWrapper):
    """``objective`` − cost · Σ_p exp(−½ Σ_j ((x_j − p_j) / (WIDTH ℓ_j))²) over the ``pending`` designs (P × d_x)."""

    pending: Tensor
    lengthscale: Tensor  # d_x
    cost: float

    def __call__(self, x: Tensor) -> Tensor:
        return self.objective(x) - self._hills(x)[0].sum(-1)

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient = self.objective.value_and_gradient(x)
        hills, steps = self._hills(x)
        return value - hills.sum(-1), gradient + (hills.unsqueeze(-1) * steps).sum(-2) / (WIDTH * self.lengthscale)

    def _hills(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The penalty of each pending design (N × P), and its distance in widths in each variable (N × P × d_x)."""
        steps = (x.unsqueeze(-2) - self.pending) / (WIDTH * self.lengthscale)
        return self.cost * torch.exp(-0.5 * steps.square().sum(-1)), steps


def penalize_pending(
    approximations: Sequence[Objective], pending: Tensor, lengthscale: Tensor, cost: float
) -> list[Objective]:
    """Every approximation, penalized around ``pending``; those that are one and the same stay so."""
    return wrap(approximations, lambda level: LocalPenalization(level, pending, lengthscale, cost))


# ---------------------------------------------------------------- designs that may fail


class Risk(ABC):
    """``optimism`` about success, as ``Feasibility.probability`` has it."""

    optimism: float | None = None

    @abstractmethod
    def penalty(self, probability: Tensor) -> Tensor:
        """What to add to an objective, at most zero: N from N."""

    @abstractmethod
    def slope(self, probability: Tensor) -> Tensor:
        """d penalty / d probability."""


@dataclass(frozen=True)
class LogRisk(Risk):
    """cost · log P, in units of the objective."""

    cost: float
    optimism: float | None = None

    def penalty(self, probability: Tensor) -> Tensor:
        return self.cost * (probability + LEAST).log()

    def slope(self, probability: Tensor) -> Tensor:
        return self.cost / (probability + LEAST)


@dataclass(frozen=True)
class Bar(Risk):
    """−cost · ((1 − P) / (1 − level))², and below the level also −steepness · (level − P)."""

    level: float
    cost: float
    steepness: float

    def penalty(self, probability: Tensor) -> Tensor:
        below = (self.level - probability).clamp_min(0.0)
        return -self.cost * ((1.0 - probability) / self._width).square() - self.steepness * below

    def slope(self, probability: Tensor) -> Tensor:
        below = (probability < self.level).to(probability)
        return 2.0 * self.cost * (1.0 - probability) / self._width**2 + self.steepness * below

    @property
    def _width(self) -> float:
        return max(1.0 - self.level, LEAST)


@dataclass(frozen=True, eq=False)
class FailurePenalty(ObjectiveWrapper):
    """``objective`` with its ``risk`` taken off."""

    feasibility: Feasibility
    risk: Risk

    def __call__(self, x: Tensor) -> Tensor:
        return self.objective(x) + self.risk.penalty(self.feasibility.probability(x, self.risk.optimism))

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient = self.objective.value_and_gradient(x)
        probability, by_design = self.feasibility.probability_and_gradient(x, self.risk.optimism)
        return value + self.risk.penalty(probability), gradient + self.risk.slope(probability)[:, None] * by_design


def penalize_failure(approximations: Sequence[Objective], feasibility: Feasibility, risk: Risk) -> list[Objective]:
    """Every approximation less the penalty for failure, the coarsest less a rough one; those that are one and the same
    stay so."""
    found = wrap(approximations, lambda level: FailurePenalty(level, feasibility, risk))
    if all(level is not approximations[0] for level in approximations[1:]) and len(found) > 1:
        found[0] = FailurePenalty(approximations[0], feasibility.rough(), risk)
    return found


# ---------------------------------------------------------------- designs that cost


class Costs(Protocol):
    """What runs of designs cost, above zero."""

    def of(self, coded: Array) -> Array:
        """Of designs (N × d_x), N."""

    def and_slope(self, coded: Array) -> tuple[Array, Array]:
        """The same, and the gradient (N × d_x)."""


@dataclass(frozen=True, eq=False)
class Roots:
    """The square roots of ``costs``."""

    costs: Costs

    def of(self, coded: Array) -> Array:
        root: Array = np.sqrt(self.costs.of(coded))
        return root

    def and_slope(self, coded: Array) -> tuple[Array, Array]:
        cost, slope = self.costs.and_slope(coded)
        root = np.sqrt(cost)
        return root, 0.5 * slope / root[:, None]


@dataclass(frozen=True, eq=False)
class GainPerCost(ObjectiveWrapper):
    """``objective`` less ``price`` · cost."""

    costs: Costs
    price: float

    def __call__(self, x: Tensor) -> Tensor:
        return self.objective(x) - self.price * torch.from_numpy(self.costs.of(x.numpy()))

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient = self.objective.value_and_gradient(x)
        cost, slope = map(torch.from_numpy, self.costs.and_slope(x.numpy()))
        return value - self.price * cost, gradient - self.price * slope


def best_per_cost(approximations: Sequence[Objective], costs: Costs, level: float, search: Search) -> Tensor:
    """The design (d_x) with the largest (objective − level) / √cost; where nothing is to be gained, the objective's."""
    best, roots = search(approximations), Roots(costs)
    ratio = _ratio(approximations[-1], roots, level, best)
    for _ in range(ROUNDS):
        if not 0.0 < ratio < math.inf:
            break
        x = search(wrap(approximations, partial(GainPerCost, costs=roots, price=ratio)))
        found = _ratio(approximations[-1], roots, level, x)
        if not found > (1.0 + WORTHWHILE) * ratio:
            break
        best, ratio = x, found
    return best


def _ratio(objective: Objective, costs: Costs, level: float, x: Tensor) -> float:
    with torch.no_grad():
        return (float(objective(x[None])) - level) / float(costs.of(x[None].numpy())[0])


# ---------------------------------------------------------------- designs that break limits


@dataclass(frozen=True)
class Margin(Goal):
    """The margin that all but a share ``level`` of contexts have; the larger the better, whatever the direction."""

    lower: float | None
    upper: float | None
    level: float
    name: ClassVar[str] = "margin"
    monotone: ClassVar[bool] = False

    def sense(self, direction: Direction) -> float:
        return 1.0

    def value(self, outcomes: Numbers, weights: Numbers, direction: Direction) -> Numbers:
        return Quantile(self.level).value(self._margins(outcomes), weights, "maximize")

    def optimistic(self, mean: Numbers, sd: Numbers, gain: Numbers, weights: Numbers, direction: Direction) -> Numbers:
        """Of f within ``mean`` ± ``gain``, each as far inside as it may be; a negative gain is as much less."""
        margins = self._margins(mean) + gain
        if self.lower is not None and self.upper is not None:
            margins = module_of(margins).clip(margins, None, 0.5 * (self.upper - self.lower))
        return Quantile(self.level).value(margins, weights, "maximize")

    def _margins(self, outcomes: Numbers) -> Numbers:
        below = None if self.upper is None else self.upper - outcomes
        above = None if self.lower is None else outcomes - self.lower
        if below is None or above is None:
            return above if below is None else below
        return module_of(outcomes).minimum(below, above)


def margin(model: GaussianModel, score: Score, points: ContextPoints, limit: Margin, units: Units) -> GoalAcquisition:
    """The margin of a limit as a function of the design, as optimistic as ``score`` is about f in each context."""
    return GoalAcquisition(model, score.per_context(), points, ModelGoal(limit, units))


@dataclass(frozen=True, eq=False)
class LimitPenalty(Combined):
    """Σ_k weight_k · objective_k − Σ_r cost_r · max(0, −margin_r): an exact penalty, so that the best design keeps all
    limits where some design does, and breaks them least where none does."""

    limits: Terms = ()  # costs and margins

    @property
    def parts(self) -> tuple[Objective, ...]:
        return (*super().parts, *(margin for _, margin in self.limits))

    def __call__(self, x: Tensor) -> Tensor:
        value = self.worth(x)
        for cost, limit in self.limits:
            value = value - cost * (-limit(x)).clamp_min(0.0)
        return value

    def worth(self, x: Tensor) -> Tensor:
        """Without the penalties (N)."""
        return torch.stack([weight * objective(x) for weight, objective in self.terms]).sum(0)

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        total, slope = torch.zeros(len(x), dtype=x.dtype), torch.zeros_like(x)
        for weight, objective in self.terms:
            value, gradient = objective.value_and_gradient(x)
            total, slope = total + weight * value, slope + weight * gradient
        for cost, limit in self.limits:
            value, gradient = limit.value_and_gradient(x)
            broken = (value < 0).to(value)
            total, slope = total + cost * broken * value, slope + (cost * broken)[:, None] * gradient
        return total, slope


Approximations = Sequence[Objective]


def limited_approximations(
    terms: Sequence[tuple[float, Approximations]], limits: Sequence[tuple[float, Approximations]]
) -> list[LimitPenalty]:
    """Level by level of the approximations of objectives and margins, which are equally many."""
    weights, costs = [weight for weight, _ in terms], [cost for cost, _ in limits]

    def limited(level: Sequence[Objective]) -> LimitPenalty:
        wanted, margins = level[: len(weights)], level[len(weights) :]
        return LimitPenalty(tuple(zip(weights, wanted, strict=True)), tuple(zip(costs, margins, strict=True)))

    return combine([approximations for _, approximations in (*terms, *limits)], limited)
