"""μ̄ + β σ̄ of experts whose variance few rows tell, at all pairs of designs and contexts: climbs on a stand-in, fused.

As ``single_score`` is for one expert. A climb asks for a few designs at a time, and then most of the time goes into
starting operations: all experts are taken at once, in NumPy, which starts them faster than torch, and a design's
contexts are summed in the same products that weigh them. The glossary is that of ``paired_gp``, whose numbers these are
to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.surrogate.paired_gp import MIN_VARIANCE, PairedGP
from edrbo.surrogate.scaling import Scaling
from edrbo.surrogate.whitening import Product

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SharedScore:
    """shift + scale Σ_m share_m (μ_m + β σ_m); ``of`` makes one where that is what there is."""

    gp: PairedGP
    scaling: Scaling
    beta: float
    shares: Array  # M
    matrix: Array  # M × k × k, the whitening

    @classmethod
    def of(cls, gp: PairedGP, scaling: Scaling, beta: float, weights: Tensor | None) -> SharedScore | None:
        """With the experts' ``weights`` (M) in the barycenter, None for equal ones. None where the variance is told by
        all rows, whose solves are torch's, and for outcomes that are bent."""
        if not isinstance(gp.whitening, Product) or type(scaling) is not Scaling:
            return None
        shares = np.full(len(gp.kernels), 1.0 / len(gp.kernels)) if weights is None else weights.numpy()
        return cls(gp, scaling, beta, shares, gp.whitening.matrix.numpy())

    def value_and_pullback(self, x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Scores (N·m) at designs ``x`` (N × d_x), the context running fastest, and their pullback; no graph."""
        z = x.detach().numpy() - 0.5
        cross, slopes = self._cross(z)
        rows = cross.reshape(len(cross), -1, cross.shape[-1])
        half = rows[..., : self._told] @ self.matrix.transpose(0, 2, 1)  # M × (N·m) × k
        mean = (rows @ self._weights[..., None])[..., 0]
        variance = self._prior - np.einsum("mpk,mpk->mp", half, half)
        floor = MIN_VARIANCE * self._prior
        sd = np.sqrt(np.maximum(variance, floor))
        value = self._level + self.scaling.scale * (self.shares @ mean + self.beta * (self.shares @ sd))

        def pullback(grad: Tensor) -> Tensor:
            by_score = self.scaling.scale * grad.numpy()
            by_sd = np.where(variance > floor, (-self.beta * self.shares[:, None]) * by_score / sd, 0.0)
            known = (half @ self.matrix).reshape(*slopes.shape[:3], -1)
            known *= slopes[..., : self._told]
            total = _summed(by_score.reshape(1, *slopes.shape[1:3]), slopes)  # over a design's contexts: M × N × n
            total *= self._shared_weights
            total[..., : self._told] += _summed(by_sd.reshape(slopes.shape[:3]), known)
            gradient = (total @ self._data_slopes).sum(axis=0)
            return torch.from_numpy(gradient[:, : z.shape[1]] + 2.0 * z * gradient[:, z.shape[1] :])

        return torch.from_numpy(value), pullback

    def _cross(self, z: Array) -> tuple[Array, Array]:
        """Correlation of f at all pairs with the data, for centered designs ``z`` (N × d_x), and its slope in r² up to
        the slope factor: M × N × m × n each."""
        expanded = np.concatenate([z, z * z, np.ones((len(z), 1))], axis=1)
        sqdist = torch.from_numpy(np.maximum(expanded @ self._data_part, 0.0))  # M × N × n
        shape = (*sqdist.shape[:2], len(self.gp.contexts), sqdist.shape[-1])
        cross, slopes = np.empty(shape), np.empty(shape)
        for m, kernel in enumerate(self.gp.kernels):
            part, own = self.gp.parts[m], self.gp.hyper.shape[m]
            if kernel.separable:  # the exponential of a sum: no exponential of the large array
                np.multiply(kernel.value(sqdist[m], own).numpy()[:, None], part.numpy(), out=cross[m])
                slopes[m] = cross[m]
            else:
                value, slope = kernel.value_and_slope(sqdist[m].unsqueeze(1) + part, own)
                cross[m], slopes[m] = value.numpy(), slope.numpy()
        return cross, slopes

    # What belongs to the data: made once.

    @cached_property
    def _told(self) -> int:
        return len(self.matrix[0])

    @cached_property
    def _prior(self) -> Array:
        """The variance of f (M × 1)."""
        prior: Array = self.gp.hyper.outputscale.numpy()[:, None]
        return prior

    @cached_property
    def _level(self) -> float:
        """The prior mean of the barycenter in units of y."""
        return self.scaling.shift + self.scaling.scale * float(self.shares @ self.gp.hyper.mean.numpy())

    @cached_property
    def _weights(self) -> Array:
        weights: Array = self.gp.scaled_weights.numpy()
        return weights

    @cached_property
    def _shared_weights(self) -> Array:
        """M × 1 × n."""
        return (self.shares[:, None] * self._weights)[:, None]

    @cached_property
    def _data_part(self) -> Array:
        part: Array = self.gp.data_part.numpy()
        return part

    @cached_property
    def _data_slopes(self) -> Array:
        slopes: Array = self.gp.data_slopes.numpy()
        return slopes


def _summed(weights: Array, rows: Array) -> Array:
    """Σ_j w_j row_j over the contexts j of each design: M × N × w from (1 or M) × N × m and M × N × m × w."""
    if rows.shape[2] == 1:  # one context: nothing to sum, and many small products would be slow
        return weights * rows[:, :, 0]
    total: Array = (weights[:, :, None] @ rows)[:, :, 0]
    return total
