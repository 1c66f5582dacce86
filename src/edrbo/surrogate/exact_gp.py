"""Exact Gaussian-process regression for all experts at once, in float64.

Glossary: M experts, n observations, N query points, d inputs; ... are optional batch dimensions.

    x        ... × n × d     training inputs in the unit cube
    y        ... × n         standardized outcomes
    noise    ... × M × n     noise variance of each observation, as each expert sees it
    chol     ... × M × n × n lower Cholesky factor L of K + noise
    alpha    ... × M × n     (K + noise)⁻¹ (y − mean)

The engine is our own because it is measured to be far faster than four GPyTorch models in the loop
(docs/speed.md); GPyTorch is the reference in its tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edrbo.surrogate.beliefs import Differentiable
from edrbo.surrogate.kernels import Kernel, averaged_gram, gram, product_gram, scaled_sqdist

Unbend = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]]]
MIN_VARIANCE = 1e-14  # relative to the outputscale; keeps σ and its gradient finite at the data
MOSTLY_USED = 0.75  # share of pairs that matter from which on a gradient is taken of all: choosing costs a copy
JITTERS = (0.0, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)


@dataclass(frozen=True)
class Hyperparameters:
    """Per expert; outputs are standardized, inputs in the unit cube."""

    lengthscale: Tensor  # M × d
    outputscale: Tensor  # M
    noise: Tensor  # M: variance
    mean: Tensor  # M
    shape: Tensor  # M: α of the rational quadratic, unused by the others
    power: float = 1.0  # of the outcomes' warping, of all experts together

    def to_dict(self) -> dict[str, Any]:
        """JSON types; ``from_dict`` gives the same numbers back exactly."""
        return {name: getattr(self, name).tolist() for name in _PER_EXPERT} | {"power": self.power}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Hyperparameters:
        tensors = {name: torch.tensor(record[name], dtype=torch.float64) for name in _PER_EXPERT}
        return cls(**tensors, power=record.get("power", 1.0))  # records of earlier versions have none

    def expert(self, m: int) -> Hyperparameters:
        """Those of expert m alone, M = 1."""
        row = slice(m, m + 1 or None)
        return replace(self, **{name: getattr(self, name)[row] for name in _PER_EXPERT})


_PER_EXPERT = ("lengthscale", "outputscale", "noise", "mean", "shape")


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
    noise: Tensor
    chol: Tensor
    alpha: Tensor

    @classmethod
    def condition(
        cls,
        kernels: tuple[Kernel, ...],
        hyper: Hyperparameters,
        x: Tensor,
        y: Tensor,
        noise: Tensor | None = None,
        count: Tensor | None = None,
    ) -> ExactGP:
        """Condition on ``x`` (... × n × d), ``y`` (... × n); ``noise`` (n) holds known variances, NaN if unknown.

        Where it is unknown, an outcome may be the mean of ``count`` (n) observations.
        """
        noise_rows = noise_per_expert(hyper.noise, x.shape[-2], noise, count)
        sqdist = scaled_sqdist(x, x, hyper.lengthscale)
        sqdist.diagonal(dim1=-2, dim2=-1).zero_()
        covariance = gram(kernels, sqdist, hyper.outputscale, hyper.shape)
        covariance.diagonal(dim1=-2, dim2=-1).add_(noise_rows)
        chol = safe_cholesky(covariance)
        return cls(kernels, hyper, x, y, noise_rows, chol, _alpha(chol, y, hyper.mean))

    def expert(self, m: int) -> ExactGP:
        """Expert m alone, M = 1; a view, nothing is computed."""
        row = slice(m, m + 1 or None)
        return ExactGP(
            self.kernels[row],
            self.hyper.expert(m),
            self.x,
            self.y,
            self.noise[..., row, :],
            self.chol[..., row, :, :],
            self.alpha[..., row, :],
        )

    def with_outcomes(self, y: Tensor, mean: Tensor | None = None) -> ExactGP:
        """The same inputs and factors with other outcomes (re-standardized ones, say): O(n²)."""
        hyper = self.hyper if mean is None else replace(self.hyper, mean=mean)
        return replace(self, y=y, hyper=hyper, alpha=_alpha(self.chol, y, hyper.mean))

    def extend(self, x: Tensor, y: Tensor, noise: Tensor | None = None) -> ExactGP:
        """Add observations ``x`` (... × q × d), ``y`` (... × q) by rows of the factor: O(q n²), no rebuild.

        ``x`` and ``y`` may carry more batch dimensions than the model (fantasies).
        """
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-1], self.x.shape[:-2])
        x = x.expand(*batch, *x.shape[-2:])
        y = y.expand(*batch, y.shape[-1])
        n, q, experts = self.x.shape[-2], x.shape[-2], len(self.kernels)
        noise_rows = noise_per_expert(self.hyper.noise, q, noise).expand(*batch, experts, q)
        old_x, old_chol = (
            self.x.expand(*batch, *self.x.shape[-2:]),
            self.chol.expand(*batch, *self.chol.shape[-3:]),
        )
        cross = self._gram(x, old_x)  # ... × M × q × n
        lower = torch.linalg.solve_triangular(old_chol, cross.mT, upper=False).mT
        corner = self._gram(x, x) + torch.diag_embed(noise_rows) - lower @ lower.mT
        chol = old_chol.new_zeros(*batch, experts, n + q, n + q)
        chol[..., :n, :n] = old_chol
        chol[..., n:, :n] = lower
        # of a repeated input the corner is rounding error alone and gives jitter no scale: the prior variance does
        chol[..., n:, n:] = safe_cholesky(corner, self.hyper.outputscale[:, None])
        all_x = torch.cat([old_x, x], dim=-2)
        all_y = torch.cat([self.y.expand(*batch, n), y], dim=-1)
        all_noise = torch.cat([self.noise.expand(*batch, experts, n), noise_rows], dim=-1)
        return ExactGP(self.kernels, self.hyper, all_x, all_y, all_noise, chol, _alpha(chol, all_y, self.hyper.mean))

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
        cross = self._gram(points, self.x)
        mean = self.hyper.mean[:, None] + (cross @ self.alpha.unsqueeze(-1)).squeeze(-1)
        half = torch.linalg.solve_triangular(self.chol, cross.mT, upper=False)
        return mean, self._gram(points, points) - half.mT @ half

    def moments(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Marginal posterior mean and standard deviation at ``points`` (N × d), each M × N.

        Differentiable once, with the gradient written out (no graph through the triangular solves).
        """
        return self.paired_with(points.new_zeros(1, 0)).moments(points)

    def paired_with(self, contexts: Tensor) -> PairedGP:
        """For many designs and few contexts (m × d_c, the last inputs): their part of r² is worked out here, once."""
        d_c = contexts.shape[-1]
        split = self.x.shape[-1] - d_c
        lengthscale = self.hyper.lengthscale[:, split:]
        return PairedGP(self, split, contexts, scaled_sqdist(contexts, self.x[:, split:], lengthscale))

    def log_evidence(self) -> Tensor:
        """Log marginal likelihood of the outcomes (... × M)."""
        residual = self.y.unsqueeze(-2) - self.hyper.mean[:, None]
        roots = self.chol.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        constant = 0.5 * math.log(2.0 * math.pi) * self.y.shape[-1]
        evidence: Tensor = -0.5 * (residual * self.alpha).sum(-1) - roots - constant
        return evidence


@dataclass(frozen=True, eq=False)
class PairedGP:
    """A GP on (x, c) with fixed contexts, as a function of the design x."""

    gp: ExactGP
    d_x: int
    contexts: Tensor  # m × d_c
    context_sqdist: Tensor  # M × m × n: between contexts and training data

    def expert(self, m: int) -> PairedGP:
        """Expert m alone, M = 1."""
        return replace(self, gp=self.gp.expert(m), context_sqdist=self.context_sqdist[m : m + 1])

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and standard deviation of every design ``x`` (N × d_x) in every context, the context
        running fastest: M × (N·m) each. Differentiable once, as ``ExactGP.moments``."""
        if not x.requires_grad:
            return self._moments(x, slope=False)[:2]
        mean, sd = _WithPullback.apply(x, self.moments_and_pullback)  # type: ignore[no-untyped-call]
        return mean, sd

    def integrated(self, x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and standard deviation of F(x) = Σ_j w_j f(x, c_j), which is Gaussian: M × N each.

        ``weights`` is m, or N × m for weights of each design's own. Differentiable once in ``x`` (N × d_x).
        """
        if not x.requires_grad:
            return self._integrated(x, weights, self._prior_variance(weights), slope=False)[:2]
        make = partial(self.integrated_and_pullback, weights=weights)
        mean, sd = _WithPullback.apply(x, make)  # type: ignore[no-untyped-call]
        return mean, sd

    def moments_and_pullback(self, x: Tensor) -> Differentiable:
        """``moments``, and the function that takes ∂/∂mean and ∂/∂sd to ∂/∂x: no graph is built.

            ∂μ/∂k = α,  ∂σ/∂k = −(K+noise)⁻¹k / σ,  ∂k/∂x = 2 k'(r²) (x − x_i)/ℓ²,

        so that it costs one more triangular solve and a few products.
        """
        mean, sd, half, slope = self._moments(x, slope=True)
        assert slope is not None
        inverse_sd = self._inverse_sd(sd, self.gp.hyper.outputscale[:, None])

        def pullback(grad_mean: Tensor, grad_sd: Tensor) -> Tensor:
            grad_sd = grad_sd * inverse_sd
            used = torch.nonzero(((grad_mean != 0) | (grad_sd != 0)).any(0)).squeeze(-1)
            if len(used) < MOSTLY_USED * mean.shape[1]:  # a worst case looks at few contexts
                some = _cross_gradient(self.gp, half[..., used], grad_mean[:, used], grad_sd[:, used])
                return self._design_gradient(x, self._gathered(some.mul_(slope[:, used]), used, len(x)))
            grad_sqdist = _cross_gradient(self.gp, half, grad_mean, grad_sd).mul_(slope)
            return self._design_gradient(x, _by_design(grad_sqdist, len(x)).sum(-2))  # over a design's contexts

        return mean, sd, pullback

    def _gathered(self, rows: Tensor, pairs: Tensor, designs: int) -> Tensor:
        """The sum over contexts (M × N × n) of the rows (M × p × n) of some ``pairs`` (p), by number."""
        total = rows.new_zeros(len(rows), designs, rows.shape[-1])
        return total.index_add_(1, pairs // len(self.contexts), rows)

    def integrated_and_pullback(self, x: Tensor, weights: Tensor) -> Differentiable:
        """The same for ``integrated``. The covariance of F(x) with the data is k̄ = Σ_j w_j k_j, so one solve per
        design serves all contexts; its prior variance wᵀK_c w does not depend on x."""
        prior = self._prior_variance(weights)
        mean, sd, half, slope = self._integrated(x, weights, prior, slope=True)
        assert slope is not None
        inverse_sd = self._inverse_sd(sd, prior)

        def pullback(grad_mean: Tensor, grad_sd: Tensor) -> Tensor:
            grad_sqdist = _cross_gradient(self.gp, half, grad_mean, grad_sd * inverse_sd).mul_(slope)
            return self._design_gradient(x, grad_sqdist)

        return mean, sd, pullback

    def bent(self, x: Tensor, weights: Tensor, unbend: Unbend) -> tuple[Tensor, Tensor]:
        """``bent_and_pullback`` for autograd, differentiable once in ``x``."""
        if not x.requires_grad:
            return self.bent_and_pullback(x, weights, unbend)[:2]
        make = partial(self.bent_and_pullback, weights=weights, unbend=unbend)
        mean, sd = _WithPullback.apply(x, make)  # type: ignore[no-untyped-call]
        return mean, sd

    def bent_and_pullback(self, x: Tensor, weights: Tensor, unbend: Unbend) -> Differentiable:
        """Mean and standard deviation of F(x) = Σ_j w_j y(x, c_j), M × N, where the outcomes y are bent values of what
        the experts model: ``unbend`` takes the modelled moments to those of y, with a pullback of its own.

        The values at a design's contexts are as correlated as the modelled ones, so with s_j of y, σ_j modelled and
        v_j = w_j s_j / σ_j the variance is vᵀCv, C the modelled covariance. C = K_c − HᵀH, H = L⁻¹k at the contexts,
        so nothing is solved that the moments do not need.
        """
        mean, sd, half, slope = self._moments(x, slope=True)
        assert slope is not None
        center, spread, to_modelled = unbend(mean, sd)
        shape = (len(mean), len(x), -1)
        ratio = spread / sd
        stretched = weights * ratio.reshape(shape)  # v: M × N × m
        joined = half.reshape(*half.shape[:2], len(x), -1)  # M × n × N × m
        together = (joined * stretched.unsqueeze(1)).sum(-1)  # Σ_j v_j L⁻¹k_j: M × n × N
        prior = stretched @ self._context_covariance  # K_c v: M × N × m
        before = (prior * stretched).sum(-1)
        variance = torch.maximum(before - together.square().sum(1), MIN_VARIANCE * before)
        of_mean = variance.sqrt()
        by_stretched = (prior - (joined * together.unsqueeze(-1)).sum(1)) / of_mean.unsqueeze(-1)
        inverse_sd = self._inverse_sd(sd, self.gp.hyper.outputscale[:, None])

        def pullback(grad_mean: Tensor, grad_sd: Tensor) -> Tensor:
            by_ratio = (grad_sd.unsqueeze(-1) * by_stretched * weights).reshape(len(mean), -1)
            by_center = (grad_mean.unsqueeze(-1) * weights).reshape(len(mean), -1)
            by_mean, by_sd = to_modelled(by_center, by_ratio / sd)
            by_sd = by_sd - by_ratio * ratio / sd
            of_each = half * (by_sd * inverse_sd).unsqueeze(1)
            shared = (grad_sd / of_mean).unsqueeze(-1) * stretched
            of_all = (together.unsqueeze(-1) * shared.unsqueeze(1)).reshape(half.shape)
            gradient = torch.linalg.solve_triangular(self.gp.chol.mT, of_each + of_all, upper=True).mT.neg()
            gradient = gradient.addcmul_(by_mean.unsqueeze(-1), self.gp.alpha.unsqueeze(-2)).mul_(slope)
            return self._design_gradient(x, _by_design(gradient, len(x)).sum(-2))

        return (center.reshape(shape) * weights).sum(-1), of_mean, pullback

    def _moments(self, x: Tensor, *, slope: bool) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        cross, slopes = self._cross(x, slope=slope)
        return *_solve(self.gp, cross, self.gp.hyper.outputscale[:, None]), slopes

    def _integrated(
        self, x: Tensor, weights: Tensor, prior: Tensor, *, slope: bool
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        gp, hyper = self.gp, self.gp.hyper
        cross, slopes = averaged_gram(
            *(gp.kernels, self._design_sqdist(x), self.context_sqdist, weights, hyper.outputscale, hyper.shape),
            slope=slope,
        )
        return *_solve(gp, cross, prior), slopes

    def _prior_variance(self, weights: Tensor) -> Tensor:
        """Of Σ_j w_j f(x, c_j): M × 1 for weights m, M × N for N × m."""
        variance = ((weights @ self._context_covariance) * weights).sum(-1)
        return variance.reshape(len(variance), -1)

    @staticmethod
    def _inverse_sd(sd: Tensor, prior: Tensor) -> Tensor:
        """1/σ, and 0 where σ is at its floor and does not change."""
        return torch.where(sd.square() > (1.0 + 1e-9) * MIN_VARIANCE * prior, sd.reciprocal(), 0.0)

    def _cross(self, x: Tensor, *, slope: bool) -> tuple[Tensor, Tensor | None]:
        """Covariance of f at all pairs with the data, and its derivative in r²: M × (N·m) × n."""
        gp, hyper = self.gp, self.gp.hyper
        by_design = self._design_sqdist(x)
        return product_gram(gp.kernels, by_design, self.context_sqdist, hyper.outputscale, hyper.shape, slope=slope)

    def _design_sqdist(self, x: Tensor) -> Tensor:
        """The designs' part of r² (M × N × n)."""
        return scaled_sqdist(x, self.gp.x[:, : self.d_x], self.gp.hyper.lengthscale[:, : self.d_x])

    def _design_gradient(self, x: Tensor, grad_sqdist: Tensor) -> Tensor:
        """∂/∂x (N × d_x) from ∂/∂r² (M × N × n): r² = Σ (x − x_i)²/ℓ² + the contexts' part."""
        inputs, lengthscale = self.gp.x[:, : self.d_x], self.gp.hyper.lengthscale[:, None, : self.d_x]
        difference = x * grad_sqdist.sum(-1, keepdim=True) - grad_sqdist @ inputs
        return (2.0 * difference / lengthscale.square()).sum(0)

    @cached_property
    def _context_covariance(self) -> Tensor:
        """Prior covariance of f(x, c_i) and f(x, c_j), the same for every x (M × m × m)."""
        hyper = self.gp.hyper
        sqdist = scaled_sqdist(self.contexts, self.contexts, hyper.lengthscale[:, self.d_x :])
        sqdist.diagonal(dim1=-2, dim2=-1).zero_()
        return gram(self.gp.kernels, sqdist, hyper.outputscale, hyper.shape)


def noise_per_expert(noise: Tensor, n: int, known: Tensor | None, count: Tensor | None = None) -> Tensor:
    """M × n noise variances: where none is known the expert's own, that of the mean of ``count`` (n) observations."""
    rows = noise[:, None].expand(noise.shape[0], n)
    rows = rows if count is None else rows / count
    return rows.clone() if known is None else torch.where(known.isnan(), rows, known)


def _alpha(chol: Tensor, y: Tensor, mean: Tensor) -> Tensor:
    residual = y.unsqueeze(-2) - mean[:, None]
    return torch.cholesky_solve(residual.unsqueeze(-1), chol).squeeze(-1)


class _WithPullback(torch.autograd.Function):
    """(mean, sd) of ``make(x)`` = (mean, sd, pullback), for autograd."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, make: Callable[[Tensor], Differentiable]) -> tuple[Tensor, Tensor]:
        mean, sd, ctx.pullback = make(x.detach())
        return mean, sd

    @staticmethod
    def backward(ctx: Any, grad_mean: Tensor, grad_sd: Tensor) -> tuple[Tensor, None]:
        return ctx.pullback(grad_mean, grad_sd), None


def _by_design(rows: Tensor, designs: int) -> Tensor:
    """M × (N·m) × n → M × N × m × n."""
    return rows.reshape(rows.shape[0], designs, -1, rows.shape[-1])


def _solve(gp: ExactGP, cross: Tensor, prior: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and sd (M × N) of what has covariance ``cross`` (M × N × n) with the data and variance ``prior`` (M × 1 or
    M × N) before them, and L⁻¹ cross (M × n × N)."""
    mean = gp.hyper.mean[:, None] + (cross @ gp.alpha.unsqueeze(-1)).squeeze(-1)
    half = torch.linalg.solve_triangular(gp.chol, cross.mT, upper=False)
    variance = prior - torch.linalg.vector_norm(half, dim=-2).square()
    return mean, torch.maximum(variance, MIN_VARIANCE * prior).sqrt(), half


def _cross_gradient(gp: ExactGP, half: Tensor, grad_mean: Tensor, grad_sd: Tensor) -> Tensor:
    """∂/∂cross (M × N × n) from ∂/∂mean and (∂/∂sd)/sd (M × N); in place: the largest arrays of the hot path."""
    gradient: Tensor = torch.linalg.solve_triangular(gp.chol.mT, half, upper=True).mT
    gradient.mul_(-grad_sd.unsqueeze(-1))
    gradient.addcmul_(grad_mean.unsqueeze(-1), gp.alpha.unsqueeze(-2))
    return gradient
