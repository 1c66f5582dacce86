"""An objective of designs that may fail: what a design is worth, less what its risk of failing costs.

A risk is a penalty by the probability of success. ``LogRisk`` is for trying: value + cost · log P is the logarithm of
exp(value / cost) · P, a product of worth and probability that needs no zero of y. ``Bar`` is for using: designs below a
level of P are kept out, and above it the surer design is preferred if that costs little.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from edrbo.acquisition.maximizer import Objective
from edrbo.acquisition.wrapped import Wrapped, wrap
from edrbo.surrogate.feasibility import Feasibility

LEAST = 1e-3  # added to probabilities, so that behind a wall the logarithm does not drown everything else


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
class Feasible(Wrapped):
    """``objective`` with its ``risk`` taken off."""

    feasibility: Feasibility
    risk: Risk

    def __call__(self, x: Tensor) -> Tensor:
        value: Tensor = self.objective(x)
        return value + self.risk.penalty(self.feasibility.probability(x, self.risk.optimism))

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient = self.objective.value_and_gradient(x)
        probability, by_design = self.feasibility.probability_and_gradient(x, self.risk.optimism)
        return value + self.risk.penalty(probability), gradient + self.risk.slope(probability)[:, None] * by_design


def feasible_ladder(ladder: Sequence[Objective], feasibility: Feasibility, risk: Risk) -> list[Objective]:
    """Every rung of a ladder with the risk taken off; rungs that are one and the same stay so."""
    return wrap(ladder, lambda rung: Feasible(rung, feasibility, risk))
