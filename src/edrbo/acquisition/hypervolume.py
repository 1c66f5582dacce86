"""Hypervolume improvement: what a design adds to the Pareto front of several outcomes.

The values of all outcomes, larger is better and each in units of its range, are compared with the cells between which
the front and the reference point divide what is not dominated (BoTorch's box decomposition; Daulton et al., 2020). An
optimistic value in, an optimistic improvement out. Where there is none, minus the distance from the front, so that the
gradient does not vanish.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from edrbo.acquisition.objective import Combined
from edrbo.errors import MissingExtraError

REFERENCE_MARGIN = 0.1  # of the front's extent, from its worst values to the reference point
LEAST_EXTENT = 0.1  # ranges of an outcome: a front of one design has an extent too


@dataclass(frozen=True, eq=False)
class HypervolumeImprovement(Combined):
    """``terms`` are weights and objectives of K outcomes, ``sizes`` (K) their units; ``front`` (F × K) and the cells,
    from ``lower`` to ``upper`` (B × K), are in these units."""

    sizes: Tensor
    front: Tensor
    lower: Tensor
    upper: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return self._gain(torch.stack([weight * objective(x) for weight, objective in self.terms], dim=-1))

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        found = [(weight, *objective.value_and_gradient(x)) for weight, objective in self.terms]
        with torch.enable_grad():
            values = torch.stack([weight * value for weight, value, _ in found], dim=-1).requires_grad_()
            gain = self._gain(values)
            (by_value,) = torch.autograd.grad(gain.sum(), values)
        slope = sum(by_value[:, k, None] * weight * gradient for k, (weight, _, gradient) in enumerate(found))
        assert isinstance(slope, Tensor)
        return gain.detach(), slope

    def _gain(self, values: Tensor) -> Tensor:
        """Of values (N × K): the volume gained (N), or less than zero where there is none."""
        places = (values / self.sizes)[:, None]  # N × 1 × K
        gained = (torch.minimum(places, self.upper) - self.lower).clamp_min(0.0).prod(-1).sum(-1)
        ahead = (places - self.front).amax(-1).amin(-1)  # of the front's design that is least far behind
        below = (places[:, 0] - self.lower.amin(0)).amin(-1)  # and of the reference point
        return torch.where(gained > 0, gained, torch.minimum(ahead, below).clamp_max(0.0))


def reference_of(front: Tensor) -> Tensor:
    """A point (K) behind all of a front (F × K): a tenth of its extent beyond its worst values."""
    extent = (front.amax(0) - front.amin(0)).clamp_min(LEAST_EXTENT)
    return front.amin(0) - REFERENCE_MARGIN * extent


def cells_of(values: Tensor, kept: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The front of values (N × K), of those ``kept`` (N) or of all if there is none, and the cells beyond it."""
    some = values[kept] if bool(kept.any()) else values
    front = some[not_dominated(some)]
    lower, upper = _partition(front, reference_of(front)).get_hypercell_bounds()
    return front, lower, upper


def not_dominated(values: Tensor) -> Tensor:
    """Which of values (N × K) no other one beats in every respect (N); of equal ones the first."""
    better = (values[:, None] >= values).all(-1)  # row beats column, or is equal
    same = better & better.mT
    earlier = torch.ones_like(same).triu(1)  # row before column
    beaten = (better & ~same) | (same & earlier)
    return ~beaten.any(0)


def hypervolume(front: Tensor, reference: Tensor) -> float:
    """What a front (F × K) dominates, down to the reference point (K)."""
    return float(_partition(front, reference).compute_hypervolume())


def _partition(front: Tensor, reference: Tensor) -> Any:
    try:
        from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning
    except ImportError:
        raise MissingExtraError("a front of several outcomes needs BoTorch", "pip install 'edrbo[botorch]'") from None
    return FastNondominatedPartitioning(ref_point=reference, Y=front)
