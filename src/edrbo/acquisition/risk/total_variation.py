"""Worst case over a ball in total variation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from edrbo.acquisition.risk.base import (
    DEFAULT_SUPPORT,
    Field,
    WorstCaseFunctional,
    all_on_minimum,
    check_radius,
    lowest_points,
)
from edrbo.contexts.distributions import ContextPoints

__all__ = ["TotalVariation"]


@dataclass(frozen=True)
class TotalVariation(WorstCaseFunctional):
    """min { pᵀs : Σ|p − w| ≤ radius }, the un-halved L1 distance, p on the atoms and the support.

    Mass radius/2 leaves the top of the row and goes to its minimum over the whole context box.
    """

    radius: float
    support_size: int = DEFAULT_SUPPORT
    has_kinks: ClassVar[bool] = False
    locally_linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_radius(self.radius)

    def worst_case(self, values: Tensor, points: ContextPoints) -> Tensor:
        if self.radius >= 2.0:
            return all_on_minimum(values)
        # Only atoms have mass to give, and only so many of the highest that even the lightest would do.
        m = len(points.weights)
        moved = self.radius / 2.0
        count = min(m, 1 + int((points.weights.sort().values.cumsum(0) < moved).sum()))
        highest = values[..., :m].topk(count, dim=-1).indices
        weights = points.weights[highest]
        above = weights.cumsum(-1) - weights
        taken = torch.minimum((moved - above).clamp_min(0.0), weights)
        worst = points.mass.expand_as(values).clone()
        worst.scatter_add_(-1, highest, -taken)
        return worst.scatter_add_(-1, values.argmin(-1, keepdim=True), taken.sum(-1, keepdim=True))

    def refine(self, field: Field, points: ContextPoints) -> Tensor:
        return lowest_points(field, points)
