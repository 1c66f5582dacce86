"""Sparse Gaussian processes: an approximation of ``ExactGP`` with inducing points (SGPR; Titsias, 2009).

The mean is the exact one, which needs no solve. The variance is that of sparse variational regression with k inducing
points among the training inputs, at O(k²) instead of O(n²) a query. With K the prior covariance, Λ the noise and S the
chosen rows,

    A  = K_SS + K_Sn Λ⁻¹ K_nS
    σ² = k − k_S (K_SS⁻¹ − A⁻¹) k_Sᵀ,

which is exact if S is all of the data, and otherwise a little too large where rows were left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from edrbo.surrogate.earlier import between_sources, row_factor
from edrbo.surrogate.exact_gp import ExactGP, safe_cholesky
from edrbo.surrogate.kernels import Hyperparameters, Kernel, gram, scaled_sqdist
from edrbo.surrogate.paired_gp import DenseWhitening, PairedGP

INDUCING_POINTS = 48  # inducing points, which carry the variance
MIN_OBSERVATIONS = 96  # observations from which on that is less work
JITTER = 1e-8  # of the prior variance


@dataclass(frozen=True, eq=False)
class SparseGP:
    """M experts on the rows ``x`` (n × d) of which the first k are the inducing points; the whitening (M × k × k) and
    weights (M × n) of ``PairedGP``."""

    kernels: tuple[Kernel, ...]
    hyper: Hyperparameters
    x: Tensor
    whitening: Tensor
    scaled_weights: Tensor

    @classmethod
    def of(cls, gp: ExactGP, rows: Tensor) -> SparseGP:
        """``gp`` with some of its rows, given by number (k), as inducing points."""
        others = torch.ones(gp.x.shape[-2], dtype=torch.bool).index_fill_(0, rows, False)
        order, scale = torch.cat([rows, others.nonzero().squeeze(-1)]), gp.hyper.outputscale[:, None]
        sqdist = scaled_sqdist(gp.x[rows], gp.x, gp.hyper.lengthscale)  # M × k × n
        cross = gram(gp.kernels, sqdist, gp.hyper.outputscale, gp.hyper.shape)
        weights, factor = scale * gp.alpha[:, order], None
        if gp.source is not None:  # what is asked is of f, what was measured may not be
            cross *= between_sources(gp.hyper)[:, gp.source[rows][:, None], gp.source]
            factor = row_factor(gp.hyper, gp.source)
            weights *= factor[:, order]
        own = cross[..., rows]
        variance = scale.expand(-1, len(rows))
        if gp.source is not None:
            variance = variance * between_sources(gp.hyper).diagonal(dim1=-2, dim2=-1)[:, gp.source[rows]]
        own.diagonal(dim1=-2, dim2=-1).copy_((1.0 + JITTER) * variance)
        chol = safe_cholesky(own)
        identity = torch.eye(len(rows), dtype=own.dtype).expand_as(own)
        inner = identity + gp.whitened_information(chol, cross, JITTER * scale)  # L_S⁻¹ A L_S⁻ᵀ
        root = safe_cholesky(identity - torch.cholesky_inverse(safe_cholesky(inner)))
        inverse = torch.linalg.solve_triangular(chol, identity, upper=False)
        whitening = scale[..., None] * (root.mT @ inverse)
        if factor is not None:
            whitening *= factor[:, None, rows]
        return cls(gp.kernels, gp.hyper, gp.x[order], whitening, weights)

    def expert(self, m: int) -> SparseGP:
        """Expert m alone, M = 1."""
        row = slice(m, m + 1 or None)
        return replace(
            self,
            kernels=self.kernels[row],
            hyper=self.hyper.expert(m),
            whitening=self.whitening[row],
            scaled_weights=self.scaled_weights[row],
        )

    def paired_with(self, contexts: Tensor) -> PairedGP:
        return PairedGP(self.kernels, self.hyper, self.x, DenseWhitening(self.whitening), self.scaled_weights, contexts)


def inducing_points(gp: ExactGP, size: int = INDUCING_POINTS) -> Tensor:
    """The numbers of ``size`` rows by farthest-point selection in units of the experts' lengthscales (of their
    geometric mean), in order; the first row is one. Greedy variance reduction did no better."""
    points = np.ascontiguousarray((gp.x / gp.hyper.lengthscale.log().mean(0).exp()).numpy().T)  # d × n
    rows = np.zeros(size, dtype=np.int64)
    away = np.square(points - points[:, :1]).sum(axis=0)
    for k in range(1, size):
        # ties by the first, and distances to nine digits: which row is taken must not hang on last bits
        rows[k] = row = int(np.rint(1e9 * away).argmax())
        np.minimum(away, np.square(points - points[:, row : row + 1]).sum(axis=0), out=away)
    return torch.from_numpy(np.sort(rows))
