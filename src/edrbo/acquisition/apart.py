"""An objective that keeps away from designs that are being evaluated.

What is pending takes uncertainty away where it stands, and an acquisition that is sure of the best design asks for it
again all the same. In a batch that is a waste: outcomes of almost one design tell almost the same. So a small hill is
taken off around each of them, a fraction of the lengthscales wide: there the surrogate hardly tells designs apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from edrbo.acquisition.maximizer import Objective
from edrbo.acquisition.wrapped import Wrapped, wrap

WIDTH = 0.05  # of the hill, in lengthscales


@dataclass(frozen=True, eq=False)
class Apart(Wrapped):
    """``objective`` − cost · Σ_p exp(−½ Σ_j ((x_j − p_j) / (WIDTH ℓ_j))²) over the ``pending`` designs (P × d_x)."""

    pending: Tensor
    lengthscale: Tensor  # d_x
    cost: float

    def __call__(self, x: Tensor) -> Tensor:
        value: Tensor = self.objective(x)
        return value - self._hills(x)[0].sum(-1)

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient = self.objective.value_and_gradient(x)
        hills, steps = self._hills(x)
        return value - hills.sum(-1), gradient + (hills.unsqueeze(-1) * steps).sum(-2) / (WIDTH * self.lengthscale)

    def _hills(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """What each pending design takes off (N × P), and how many widths it is away in each variable (N × P × d_x)."""
        steps = (x.unsqueeze(-2) - self.pending) / (WIDTH * self.lengthscale)
        return self.cost * torch.exp(-0.5 * steps.square().sum(-1)), steps


def apart(ladder: Sequence[Objective], pending: Tensor, lengthscale: Tensor, cost: float) -> list[Objective]:
    """Every rung of a ladder, away from ``pending``; rungs that are one and the same stay so."""
    if not len(pending):
        return list(ladder)
    return wrap(ladder, lambda rung: Apart(rung, pending, lengthscale, cost))
