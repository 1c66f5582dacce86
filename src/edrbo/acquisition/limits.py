"""Limits on outcomes as something to search under: how far a design is from breaking them, in units of the outcome.

A limit holds in all but a share α of contexts exactly if the α-quantile over contexts of the margin min(upper − f,
f − lower) is not negative. That quantile (``Margin``) has a slope where the share of contexts itself is flat. Taken of
f's optimistic bound it says where a limit may hold, of its pessimistic bound where it holds almost for certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from edrbo.acquisition.goal import GoalAcquisition, ModelGoal
from edrbo.acquisition.score import Score
from edrbo.context.laws import ContextPoints
from edrbo.records.goals import Direction, Goal, Quantile
from edrbo.records.goals.arithmetic import Array, module_of
from edrbo.records.units import Units
from edrbo.surrogate.beliefs import Beliefs


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

    def value(self, outcomes: Array, weights: Array, direction: Direction) -> Array:
        return Quantile(self.level).value(self._margins(outcomes), weights, "maximize")

    def optimistic(self, mean: Array, sd: Array, gain: Array, weights: Array, direction: Direction) -> Array:
        """Of f within ``mean`` ± ``gain``, each as far inside as it may be; a negative gain is as much less."""
        margins = self._margins(mean) + gain
        if self.lower is not None and self.upper is not None:
            margins = module_of(margins).clip(margins, None, 0.5 * (self.upper - self.lower))
        return Quantile(self.level).value(margins, weights, "maximize")

    def _margins(self, outcomes: Array) -> Array:
        below = None if self.upper is None else self.upper - outcomes
        above = None if self.lower is None else outcomes - self.lower
        if below is None or above is None:
            return above if below is None else below
        return module_of(outcomes).minimum(below, above)


def margin(model: Beliefs, score: Score, points: ContextPoints, limit: Margin, units: Units) -> GoalAcquisition:
    """The margin of a limit as a function of the design, as hopeful as ``score`` is about f in each context."""
    return GoalAcquisition(model, score.per_context(), points, ModelGoal(limit, units))


@dataclass(frozen=True, eq=False)
class Limited:
    """Σ_k weight_k · objective_k − Σ_r cost_r · max(0, −margin_r): an exact penalty, so that the best design keeps all
    limits where some design does, and breaks them least where none does."""

    terms: tuple[tuple[float, Any], ...]  # weights, and objectives with a ``value_and_gradient`` of their own
    limits: tuple[tuple[float, Any], ...] = ()  # costs and margins

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

    @property
    def costly(self) -> bool:
        return any(getattr(part, "costly", False) for _, part in self.terms)

    def near(self, x: Tensor) -> Limited:
        """With the contexts that matter at designs ``x`` (k × d_x)."""
        terms = tuple((weight, objective.near(x)) for weight, objective in self.terms)
        same = all(new is old for (_, new), (_, old) in zip(terms, self.terms, strict=True))
        return self if same else replace(self, terms=terms)


Ladder = Sequence[Any]


def limited_ladder(terms: Sequence[tuple[float, Ladder]], limits: Sequence[tuple[float, Ladder]]) -> list[Limited]:
    """Rung by rung of the ladders of objectives and margins, which are equally long."""
    (_, first), *_ = terms
    return [
        Limited(tuple((w, ladder[k]) for w, ladder in terms), tuple((cost, ladder[k]) for cost, ladder in limits))
        for k in range(len(first))
    ]
