"""Exact Gaussian-process regression for all experts at once, in float64.

Glossary: M experts, n observations, N query points, d inputs; ... are optional batch dimensions.

    x        ... × n × d     training inputs in the unit cube
    y        ... × n         standardized outcomes
    noise_variance ... × M × n     noise variance of each observation, as each expert sees it
    chol     ... × M × n × n lower Cholesky factor L of K + noise
    alpha    ... × M × n     (K + noise)⁻¹ (y − mean)
    source   n               0 for rows of f itself, s for those of the s-th earlier source (``earlier``); None: no such

The engine is our own because it is measured to be far faster than four GPyTorch models in the loop
(research/speed.md); GPyTorch is the reference in its tests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from edrbo.surrogate.earlier import Weighed, between_sources, row_factor, row_mean, row_noise
from edrbo.surrogate.kernels import Hyperparameters, Kernel, gram, noise_features, noise_ratio, scaled_sqdist
from edrbo.surrogate.paired_gp import PairedGP, Triangular

JITTERS = (0.0, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)


def safe_cholesky(matrix: Tensor, scale: Tensor | None = None) -> Tensor:
    """Lower Cholesky factors (... × n × n); jitter grows only as far as each matrix needs it.

    It is relative to ``scale`` (broadcasts with ... × 1), by default the mean of the diagonal.
    """
    chol: Tensor
    chol, info = torch.linalg.cholesky_ex(matrix)
    if not bool(info.any()):
        return chol
    if scale is None:
        scale = matrix.diagonal(dim1=-2, dim2=-1).mean(-1, keepdim=True)
    for jitter in JITTERS[1:]:
        shift = torch.where(info.unsqueeze(-1) > 0, jitter * scale, torch.zeros_like(scale))
        retry, retry_info = torch.linalg.cholesky_ex(matrix + torch.diag_embed(shift.expand(matrix.shape[:-1])))
        done = (info > 0) & (retry_info == 0)
        chol = torch.where(done[..., None, None], retry, chol)
        info = torch.where(done, torch.zeros_like(info), info)
        if not bool(info.any()):
            return chol
    raise ArithmeticError("the Gram matrix is not positive definite even with a jitter of 1e-2")


@dataclass(frozen=True)
class ExactGP:
    """M exact GPs conditioned on the same data at given hyper-parameters."""

    kernels: tuple[Kernel, ...]
    hyper: Hyperparameters
    x: Tensor
    y: Tensor
    noise_variance: Tensor
    chol: Tensor
    alpha: Tensor
    source: Tensor | None = None
    sparse: ClassVar[bool] = True  # whether ``SparseGP`` can stand in for it
    of_outcomes: ClassVar[bool] = False  # whether it is of single outcomes, noise included

    @classmethod
    def condition(
        cls,
        kernels: tuple[Kernel, ...],
        hyper: Hyperparameters,
        x: Tensor,
        y: Tensor,
        noise_variance: Tensor | None = None,
        count: Tensor | None = None,
        source: Tensor | None = None,
    ) -> ExactGP:
        """Condition on ``x`` (... × n × d), ``y`` (... × n); ``noise_variance`` (n) holds known variances, NaN if
        unknown.

        Where it is unknown, an outcome may be the mean of ``count`` (n) observations. Rows may be of an earlier
        ``source`` (n).
        """
        own = hyper.noise_variance if source is None else row_noise(hyper, source)
        noise_rows = noise_per_expert(own, x.shape[-2], noise_variance, count)
        sqdist = scaled_sqdist(x, x, hyper.lengthscale)
        sqdist.diagonal(dim1=-2, dim2=-1).zero_()
        covariance = gram(kernels, sqdist, hyper.outputscale, hyper.shape)
        if source is not None:
            covariance *= between_sources(hyper)[:, source[:, None], source]
        covariance.diagonal(dim1=-2, dim2=-1).add_(noise_rows)
        chol = safe_cholesky(covariance)
        return cls(kernels, hyper, x, y, noise_rows, chol, _alpha(chol, y, _mean_of(hyper, source)), source)

    @property
    def earlier(self) -> int:
        """How many rows are of earlier sources: the first ones."""
        return 0 if self.source is None else int(self.source.count_nonzero())

    @property
    def mean(self) -> Tensor:
        """The constant mean of each row, M × 1 or M × n."""
        return _mean_of(self.hyper, self.source)

    def expert(self, m: int) -> ExactGP:
        """Expert m alone, M = 1; a view, nothing is computed."""
        row = slice(m, m + 1 or None)
        return ExactGP(
            self.kernels[row],
            self.hyper.expert(m),
            self.x,
            self.y,
            self.noise_variance[..., row, :],
            self.chol[..., row, :, :],
            self.alpha[..., row, :],
            self.source,
        )

    def with_outcomes(self, y: Tensor, mean: Tensor | None = None, source_mean: Tensor | None = None) -> ExactGP:
        """The same inputs and factors with other outcomes (re-standardized ones, say): O(n²)."""
        hyper = self.hyper if mean is None else replace(self.hyper, mean=mean, source_mean=source_mean)
        return replace(self, y=y, hyper=hyper, alpha=_alpha(self.chol, y, _mean_of(hyper, self.source)))

    def with_lengthscale(self, lengthscale: Tensor) -> ExactGP:
        """The same data with other lengthscales (M × d): a new factor, O(n³)."""
        return self.conditioned(self.kernels, replace(self.hyper, lengthscale=lengthscale), self.noise_variance)

    def conditioned(
        self,
        kernels: tuple[Kernel, ...],
        hyper: Hyperparameters,
        noise_variance: Tensor | None,
        count: Tensor | None = None,
    ) -> ExactGP:
        """The same data under other hyper-parameters, as ``condition`` takes them: O(n³)."""
        return ExactGP.condition(kernels, hyper, self.x, self.y, noise_variance, count, self.source)

    def noise_ratio(self, points: Tensor) -> Tensor | None:
        """By how much the noise variance at ``points`` (... × d) is larger than ``hyper`` says (...); None: nowhere."""
        return None if self.hyper.noise_profile is None else noise_ratio(self.hyper.noise_profile, points)

    def noise_doubt(self, points: Tensor) -> Tensor:
        """The variance of what is not known of the logarithm of that (...)."""
        profile, doubt = self.hyper.noise_profile, self.hyper.noise_doubt
        if profile is None or doubt is None:
            return torch.zeros_like(points[..., 0])
        features = noise_features(points, profile.shape[-1]).flatten(-2)
        variance: Tensor = torch.linalg.vecdot(features @ doubt, features)
        return variance

    def past_factor(self) -> tuple[Tensor, Tensor]:
        """L of the covariance of the outcomes, and (L Lᵀ)⁻¹ (y − mean); of f that drifts not those of now."""
        return self.chol, self.alpha

    def pair_correlation(self, pairs: Tensor) -> Tensor | None:
        """Correlation by their times of the pairs of rows (2 × P → P); None: f does not drift."""
        return None

    def extend(self, x: Tensor, y: Tensor, noise_variance: Tensor | None = None) -> ExactGP:
        """Add observations ``x`` (... × q × d), ``y`` (... × q) by rows of the factor: O(q n²), no rebuild.

        ``x`` and ``y`` may carry more batch dimensions than the model (fantasies).
        """
        n = self.x.shape[-2]
        x, y, noise_rows, chol, all_x = self._grown(x, y, noise_variance)
        batch = x.shape[:-2]
        all_y = torch.cat([self.y.expand(*batch, n), y], dim=-1)
        all_noise = torch.cat([self.noise_variance.expand(*batch, len(self.kernels), n), noise_rows], dim=-1)
        source = None if self.source is None else torch.cat([self.source, self.source.new_zeros(x.shape[-2])])
        alpha = _alpha(chol, all_y, _mean_of(self.hyper, source))
        return ExactGP(self.kernels, self.hyper, all_x, all_y, all_noise, chol, alpha, source)

    def _grown(
        self, x: Tensor, y: Tensor, noise_variance: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """New rows in all batch dimensions with their noise (... × M × q), and factor and inputs with them."""
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-1], self.x.shape[:-2])
        x = x.expand(*batch, *x.shape[-2:])
        y = y.expand(*batch, y.shape[-1])
        n, q, experts = self.x.shape[-2], x.shape[-2], len(self.kernels)
        noise_rows = noise_per_expert(self.hyper.noise_variance, q, noise_variance).expand(*batch, experts, q)
        old_x, old_chol = (
            self.x.expand(*batch, *self.x.shape[-2:]),
            self.chol.expand(*batch, *self.chol.shape[-3:]),
        )
        cross = self._with_rows(self._gram(x, old_x))  # ... × M × q × n
        lower = torch.linalg.solve_triangular(old_chol, cross.mT, upper=False).mT
        corner = self._gram(x, x) + torch.diag_embed(noise_rows) - lower @ lower.mT
        chol = old_chol.new_zeros(*batch, experts, n + q, n + q)
        chol[..., :n, :n] = old_chol
        chol[..., n:, :n] = lower
        # of a repeated input the corner is rounding error alone and gives jitter no scale: the prior variance does
        chol[..., n:, n:] = safe_cholesky(corner, self.hyper.outputscale[:, None])
        return x, y, noise_rows, chol, torch.cat([old_x, x], dim=-2)

    def _with_rows(self, cross: Tensor) -> Tensor:
        """What covariances of f with f at the rows (... × M × q × n) are with what the rows measured."""
        return cross if self.source is None else cross * row_factor(self.hyper, self.source).unsqueeze(-2)

    def _gram(self, a: Tensor, b: Tensor) -> Tensor:
        return gram(
            self.kernels,
            scaled_sqdist(a, b, self.hyper.lengthscale),
            self.hyper.outputscale,
            self.hyper.shape,
        )

    def posterior(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Joint posterior at ``points`` (... × q × d): mean ... × M × q and covariance ... × M × q × q.

        Plain differentiable torch, any batch shape: the path BoTorch uses. The hot path is ``moments``.
        """
        cross = self._with_rows(self._gram(points, self.x))
        mean = self.hyper.mean[:, None] + (cross @ self.alpha.unsqueeze(-1)).squeeze(-1)
        half = torch.linalg.solve_triangular(self.chol, cross.mT, upper=False)
        return mean, self._gram(points, points) - half.mT @ half

    def posterior_beside(self, points: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """At ``points`` (q × d) the mean and variance, each M × q, and the covariance with those of them that ``rows``
        (s) names, M × q × s: what is joint at these and, beside them, of one point at a time."""
        cross = self._with_rows(self._gram(points, self.x))
        mean = self.hyper.mean[:, None] + (cross @ self.alpha.unsqueeze(-1)).squeeze(-1)
        half = torch.linalg.solve_triangular(self.chol, cross.mT, upper=False)
        variance = (self.hyper.outputscale[:, None] - half.square().sum(-2)).clamp_min(0.0)
        return mean, variance, self._gram(points, points[rows]) - half.mT @ half[..., rows]

    def moments(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Marginal posterior mean and standard deviation at ``points`` (N × d), each M × N.

        Differentiable once, with the gradient written out (no graph through the triangular solves).
        """
        return self.paired_with(points.new_zeros(1, 0)).moments(points)

    def paired_with(self, contexts: Tensor) -> PairedGP:
        """For many designs and few contexts (m × d_c, the last inputs): their part of r² is worked out there, once."""
        scale = self.hyper.outputscale[:, None]
        whitening, weights = Triangular(self.chol / scale[:, None]), scale * self.alpha
        if self.source is None:
            return PairedGP(self.kernels, self.hyper, self.x, whitening, weights, contexts)
        factor = row_factor(self.hyper, self.source)
        return PairedGP(self.kernels, self.hyper, self.x, Weighed(whitening, factor), factor * weights, contexts)

    def log_evidence(self) -> Tensor:
        """Log marginal likelihood of the outcomes (... × M)."""
        residual = self.y.unsqueeze(-2) - self.mean
        roots = self.chol.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        constant = 0.5 * math.log(2.0 * math.pi) * self.y.shape[-1]
        evidence: Tensor = -0.5 * (residual * self.alpha).sum(-1) - roots - constant
        return evidence

    # What is asked of a model about its data; the rows of a sparse one (``InducingGP``) are not its data.

    @property
    def observed(self) -> Tensor:
        """The inputs of the data (... × n × d), without those of earlier sources."""
        return self.x[..., self.earlier :, :]

    @property
    def count(self) -> int:
        """How many rows of f itself it has seen."""
        return self.x.shape[-2] - self.earlier

    @property
    def fitted(self) -> tuple[Tensor, Tensor]:
        """α and K α (... × M × n), the posterior mean at the rows less the constant mean."""
        alpha = self.past_factor()[1]
        return alpha, self.y.unsqueeze(-2) - self.mean - self.noise_variance * alpha

    def information_gain(self) -> Tensor:
        """log det(I + K/noise) of each expert (M), of all the data; O(n)."""
        factor = 2.0 * self.past_factor()[0].diagonal(dim1=-2, dim2=-1).log().sum(-1)
        gain: Tensor = (factor - self.noise_variance.log().sum(-1)).clamp_min(0.0)
        return gain

    def held_out(self, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """α, and the diagonal of (K + noise)⁻¹ (M × q each): what leaving one of ``rows`` (q), or of all, out takes."""
        chol, alpha = self.past_factor()
        precision = torch.cholesky_inverse(chol).diagonal(dim1=-2, dim2=-1)
        return (alpha, precision) if rows is None else (alpha[..., rows], precision[..., rows])

    def one_step_ahead(self) -> tuple[Tensor, Tensor]:
        """The errors of each outcome (M × n) as predicted from those before it, and the standard deviations of that.

        With K + noise = L Lᵀ the rows of L⁻¹(y − mean) are the errors in units of Lᵢᵢ.
        """
        chol, alpha = self.past_factor()
        sd = chol.diagonal(dim1=-2, dim2=-1)
        return (chol.mT @ alpha.unsqueeze(-1)).squeeze(-1) * sd, sd  # L⁻¹(y − mean) = Lᵀα

    def whitened_information(self, chol: Tensor, cross: Tensor, least: Tensor) -> Tensor:
        """L_S⁻¹ K_Sn Λ⁻¹ K_nS L_S⁻ᵀ (M × k × k): what the rows tell at k points with the prior factor ``chol``, whose
        covariance with the rows is ``cross`` (M × k × n), with noise of at ``least`` so much (M × 1)."""
        noise_variance = torch.maximum(self.noise_variance, least)
        reported = torch.linalg.solve_triangular(chol, cross, upper=False)  # L_S⁻¹ K_Sn
        information: Tensor = (reported / noise_variance[:, None]) @ reported.mT
        return information


def noise_per_expert(noise_variance: Tensor, n: int, known: Tensor | None, count: Tensor | None = None) -> Tensor:
    """M × n noise variances: where none is known the expert's own (M, or M × n), that of the mean of ``count`` (n)
    observations."""
    rows = noise_variance if noise_variance.ndim > 1 else noise_variance[:, None].expand(noise_variance.shape[0], n)
    rows = rows if count is None else rows / count
    return rows.clone() if known is None else torch.where(known.isnan(), rows, known)


def _mean_of(hyper: Hyperparameters, source: Tensor | None) -> Tensor:
    return hyper.mean[:, None] if source is None else row_mean(hyper, source)


def _alpha(chol: Tensor, y: Tensor, mean: Tensor) -> Tensor:
    """``mean`` is M × 1 or M × n."""
    residual = y.unsqueeze(-2) - mean
    return torch.cholesky_solve(residual.unsqueeze(-1), chol).squeeze(-1)
