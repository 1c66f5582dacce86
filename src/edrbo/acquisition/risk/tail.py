"""The lower tail of the score: conditional value at risk and value at risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from edrbo.acquisition.risk.base import Functional, WorstCaseFunctional
from edrbo.contexts.distributions import ContextPoints
from edrbo.errors import InvalidValueError

__all__ = ["CVaRFunctional", "VaR"]


def check_alpha(alpha: float) -> None:
    if not 0.0 < alpha <= 1.0:
        raise InvalidValueError(f"alpha is {alpha}", "it is the probability of the worst tail, in (0, 1]")


@dataclass(frozen=True)
class CVaRFunctional(WorstCaseFunctional):
    """Mean of the worst ``alpha`` of the distribution: min { pᵀs : 0 ≤ p ≤ w / alpha }. ``alpha`` = 1: expectation."""

    alpha: float
    support_size: int = 0
    locally_linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def worst_case(self, values: Tensor, points: ContextPoints) -> Tensor:
        order = values.argsort(dim=-1, stable=True)
        mass = points.mass.expand_as(values).gather(-1, order)
        below = mass.cumsum(-1) - mass
        kept = torch.minimum((self.alpha - below).clamp_min(0.0), mass)
        kept = kept / kept.sum(-1, keepdim=True)
        return torch.zeros_like(values).scatter_(-1, order, kept)


@dataclass(frozen=True)
class VaR(Functional):
    """The ``alpha``-quantile: the least atom v with P(s ≤ v) ≥ ``alpha``. Not concave in the score."""

    alpha: float
    support_size: int = 0

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def __call__(self, values: Tensor, points: ContextPoints, slope: Tensor | None = None) -> Tensor:
        ordered, order = values.sort(dim=-1, stable=True)
        reached = points.mass.expand_as(values).gather(-1, order).cumsum(-1)
        # Eight weights of 0.1 must reach 0.8, though their floating-point sum does not. The greatest
        # sum may itself fall short of one, so it serves as the highest level that can be asked for.
        level = torch.clamp(reached[..., -1:], max=self.alpha) * (1.0 - 1e-12)
        index = (reached < level).sum(-1, keepdim=True)
        return ordered.gather(-1, index).squeeze(-1)
