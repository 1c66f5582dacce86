"""Gaussian processes with a variance that few rows tell: a stand-in for ``ExactGP`` at k² instead of n² a point.

The mean is the exact one, which needs no solve. For the variance all n observations count, but what they say is carried
by f at k of the inputs (the posterior of sparse variational regression, Titsias 2009, with inducing points among the
data). With K the prior covariance, Λ the noise and S the chosen rows,

    A  = K_SS + K_Sn Λ⁻¹ K_nS
    σ² = k − k_S (K_SS⁻¹ − A⁻¹) k_Sᵀ,

which is exact if S is all of the data, and otherwise a little too large where rows were left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from edrbo.surrogate.exact_gp import ExactGP, safe_cholesky
from edrbo.surrogate.hyperparameters import Hyperparameters
from edrbo.surrogate.kernels import Kernel, gram, scaled_sqdist
from edrbo.surrogate.paired_gp import PairedGP
from edrbo.surrogate.whitening import Product

ROWS = 48  # that tell the variance
LEAST = 96  # observations from which on that is less work
JITTER = 1e-8  # of the prior variance


@dataclass(frozen=True, eq=False)
class CondensedGP:
    """M experts on the rows ``x`` (n × d) of which the first k tell the variance; the whitening (M × k × k) and weights
    (M × n) of ``PairedGP``."""

    kernels: tuple[Kernel, ...]
    hyper: Hyperparameters
    x: Tensor
    whitening: Tensor
    scaled_weights: Tensor

    @classmethod
    def of(cls, gp: ExactGP, rows: Tensor) -> CondensedGP:
        """``gp`` with the variance told by some of its rows, given by number (k)."""
        others = torch.ones(gp.x.shape[-2], dtype=torch.bool).index_fill_(0, rows, False)
        order, scale = torch.cat([rows, others.nonzero().squeeze(-1)]), gp.hyper.outputscale[:, None]
        sqdist = scaled_sqdist(gp.x[rows], gp.x, gp.hyper.lengthscale)  # M × k × n
        cross = gram(gp.kernels, sqdist, gp.hyper.outputscale, gp.hyper.shape)
        own = cross[..., rows]
        own.diagonal(dim1=-2, dim2=-1).copy_((1.0 + JITTER) * scale.expand(-1, len(rows)))
        chol, noise = safe_cholesky(own), torch.maximum(gp.noise, JITTER * scale)
        told = torch.linalg.solve_triangular(chol, cross, upper=False)  # L_S⁻¹ K_Sn
        identity = torch.eye(len(rows), dtype=own.dtype).expand_as(own)
        inner = identity + (told / noise[:, None]) @ told.mT  # L_S⁻¹ A L_S⁻ᵀ
        root = safe_cholesky(identity - torch.cholesky_inverse(safe_cholesky(inner)))
        inverse = torch.linalg.solve_triangular(chol, identity, upper=False)
        whitening = scale[..., None] * (root.mT @ inverse)
        return cls(gp.kernels, gp.hyper, gp.x[order], whitening, scale * gp.alpha[:, order])

    def expert(self, m: int) -> CondensedGP:
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
        return PairedGP(self.kernels, self.hyper, self.x, Product(self.whitening), self.scaled_weights, contexts)


def telling_rows(gp: ExactGP, size: int = ROWS) -> Tensor:
    """The numbers of ``size`` rows, each as far as can be from those before in units of the experts' lengthscales (of
    their geometric mean), in order; the first row is one. Rows that lower the variance most did no better."""
    points = np.ascontiguousarray((gp.x / gp.hyper.lengthscale.log().mean(0).exp()).numpy().T)  # d × n
    rows = np.zeros(size, dtype=np.int64)
    away = np.square(points - points[:, :1]).sum(axis=0)
    for k in range(1, size):
        # ties by the first, and distances to nine digits: which row is taken must not hang on last bits
        rows[k] = row = int(np.rint(1e9 * away).argmax())
        np.minimum(away, np.square(points - points[:, row : row + 1]).sum(axis=0), out=away)
    return torch.from_numpy(np.sort(rows))
