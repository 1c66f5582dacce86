"""Scores: from the experts' beliefs at (x, c) to one number s(x, c).

β multiplies the standard deviation (BoTorch's ``UpperConfidenceBound`` multiplies it by √β: do not mix the two).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from edrbo.surrogate.ensemble import barycenter, radius

BETA = 1.5  # the paper's choice in every experiment
SQRT2 = math.sqrt(2.0)


class Score(ABC):
    """s from the experts' marginal means and standard deviations, both ... × M × N; gives ... × N."""

    uses_context = True  # False: the surrogate is a model of x alone and contexts are ignored

    @abstractmethod
    def __call__(self, mean: Tensor, sd: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class UCB(Score):
    """u = μ + β σ of one GP; of an ensemble, that of its barycentre."""

    beta: float = BETA

    def __call__(self, mean: Tensor, sd: Tensor) -> Tensor:
        center, spread = barycenter(mean, sd)
        return center + self.beta * spread


@dataclass(frozen=True)
class DesignUCB(UCB):
    """μ + β σ of a GP on x alone: the context is treated as noise."""

    uses_context = False


@dataclass(frozen=True)
class BarycenterUCB(Score):
    """EDRBO: μ̄ + β σ̄ − √2 ε̂, the radius taken at each (x, c)."""

    beta: float = BETA
    radius_weight: float = SQRT2

    def __call__(self, mean: Tensor, sd: Tensor) -> Tensor:
        center, spread = barycenter(mean, sd)
        upper = center + self.beta * spread
        return upper if self.radius_weight == 0 else upper - self.radius_weight * radius(mean, sd)
