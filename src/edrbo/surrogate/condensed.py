"""Gaussian processes told by few rows: a stand-in for ``ExactGP`` that costs k² instead of n² a point.

All n observations are conditioned on, but what they say is carried by f at k of the inputs (the posterior of sparse
variational regression, Titsias 2009, with inducing points among the data). With K the prior covariance, Λ the noise and
S the chosen rows,

    A  = K_SS + K_Sn Λ⁻¹ K_nS
    μ  = m + k_S A⁻¹ K_Sn Λ⁻¹ (y − m)
    σ² = k − k_S (K_SS⁻¹ − A⁻¹) k_Sᵀ,

which is the exact posterior if S is all of the data, and otherwise has a σ that is too large where rows were left out.
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

import os
ROWS = int(os.environ.get('ROWS', 64))  # that tell the rest
JITTER = 1e-8  # of the prior variance


@dataclass(frozen=True, eq=False)
class CondensedGP:
    """M experts on k rows ``x`` (k × d), with the whitening (M × k × k) and weights (M × k) of ``PairedGP``."""

    kernels: tuple[Kernel, ...]
    hyper: Hyperparameters
    x: Tensor
    whitening: Tensor
    scaled_weights: Tensor

    @classmethod
    def of(cls, gp: ExactGP, rows: Tensor) -> CondensedGP:
        """``gp`` told by some of its rows, given by number (k)."""
        x, scale = gp.x[rows], gp.hyper.outputscale[:, None, None]
        sqdist = scaled_sqdist(x, gp.x, gp.hyper.lengthscale)  # M × k × n
        cross = gram(gp.kernels, sqdist, gp.hyper.outputscale, gp.hyper.shape)
        own = cross[..., rows]
        own.diagonal(dim1=-2, dim2=-1).fill_(0.0).add_((1.0 + JITTER) * gp.hyper.outputscale[:, None])
        chol = safe_cholesky(own)
        told = torch.linalg.solve_triangular(chol, cross, upper=False)  # L_S⁻¹ K_Sn
        precise = told / gp.noise[:, None]
        inner = precise @ told.mT  # L_S⁻¹ (A − K_SS) L_S⁻ᵀ
        inner.diagonal(dim1=-2, dim2=-1).add_(1.0)
        inner_chol = safe_cholesky(inner)
        identity = torch.eye(len(rows), dtype=x.dtype).expand_as(own)
        known = identity - torch.cholesky_inverse(inner_chol)
        root = safe_cholesky(known)  # of L_Sᵀ (K_SS⁻¹ − A⁻¹) L_S
        inverse = torch.linalg.solve_triangular(chol, identity, upper=False)
        residual = (gp.y - gp.hyper.mean[:, None]).unsqueeze(-1)
        fitted = torch.cholesky_solve(precise @ residual, inner_chol)
        weights = (inverse.mT @ fitted).squeeze(-1)
        return cls(gp.kernels, gp.hyper, x, root.mT @ inverse * scale, scale[..., 0] * weights)

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
    """The numbers of ``size`` rows that are spread out in units of the experts' lengthscales, in order."""
    points = (gp.x / gp.hyper.lengthscale.log().mean(0).exp()).numpy()
    rows = np.zeros(size, dtype=np.int64)
    away = np.square(points - points[0]).sum(axis=1)
    for k in range(1, size):
        # ties by the first, and distances to nine digits: which row is taken must not hang on last bits
        rows[k] = int(np.round(away, 9).argmax())
        np.minimum(away, np.square(points - points[rows[k]]).sum(axis=1), out=away)
    return torch.from_numpy(np.sort(rows))
