"""Posterior moments of the experts at all pairs of designs x and fixed contexts c, with gradients in x.

All pairs of N designs and m contexts share their distances, r² = r²(x) + r²(c), so the contexts' part is taken once,
and so is all that belongs to the data alone. Moments come with a pullback, (∂/∂mean, ∂/∂sd) → ∂/∂x, that builds no
graph. The glossary is that of ``exact_gp``, and

    contexts m × d_c         the last inputs; d_x = d − d_c
    cross    M × (N·m) × n   correlation of f at all pairs with the data, the context running fastest
    half     M × n × (N·m)   W crossᵀ, with the ``whitening`` W = L⁻¹ s_f
    slopes   M of (N·m) × n  ∂cross/∂r² up to ``slope_factors``

The outputscale s_f is a factor of W and of α, where it is applied once, and not of the large arrays.

``Whitening`` takes a correlation with the data to one with independent unit values. It is W with WᵀW = s_f² (K +
noise)⁻¹. Of a Gaussian process on all its data it is (L / s_f)⁻¹ and stays a triangular system; of one with the first k
of its rows as inducing points (``sparse``) it is a small matrix, and looks at no others. M experts, n rows, N columns.

``product_gram`` has kernels at sums of squared distances r² = a_i + b_j: every design with every context. What belongs
to the contexts is prepared once (``context_parts``) and used for all designs. Everything is at unit variance and
outside of autograd: the outputscale is a matter of those who use it.

    a        M × N × n    of N designs from n observations, for each of M experts
    b        M × k × n    of k contexts
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import torch
from torch import Tensor

from edrbo.surrogate.gaussian_model import Differentiable
from edrbo.surrogate.kernels import Hyperparameters, Kernel, gram, scaled_sqdist

SEPARABLE_SLOPE = -0.5  # of a separable kernel: its slope in r² is this times its value


def context_parts(kernels: tuple[Kernel, ...], b: Tensor, shape: Tensor) -> tuple[Tensor, ...]:
    """Of each expert what the gram of a sum needs of ``b`` (k × n each): g(b) of a separable kernel, else b."""
    return tuple(kernel.value(b[m], shape[m]) if kernel.separable else b[m] for m, kernel in enumerate(kernels))


def slope_factors(kernels: tuple[Kernel, ...], like: Tensor) -> Tensor:
    """By what the slopes that the functions below give are to be multiplied (M)."""
    return like.new_tensor([SEPARABLE_SLOPE if kernel.separable else 1.0 for kernel in kernels])


def product_gram(
    kernels: tuple[Kernel, ...], a: Tensor, parts: tuple[Tensor, ...], shape: Tensor, *, slope: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """g(a_i + b_j) of all experts (M × (N·k) × n, j running fastest), and if wanted what gives g', times
    ``slope_factors``, of each ((N·k) × n): of a separable kernel the value itself, which costs nothing."""
    value = a.new_empty(len(kernels), a.shape[1], len(parts[0]), a.shape[2])
    slopes = []
    for m, kernel in enumerate(kernels):
        if kernel.separable:  # the exponential of a sum: no exponential of the large array
            torch.mul(kernel.value(a[m], shape[m]).unsqueeze(1), parts[m], out=value[m])
            slopes.append(value[m])
        elif slope:
            value[m], derivative = kernel.value_and_slope(a[m].unsqueeze(1) + parts[m], shape[m])
            slopes.append(derivative)
        else:
            value[m] = kernel.value(a[m].unsqueeze(1) + parts[m], shape[m])
    return value.flatten(1, 2), tuple(one.flatten(0, 1) for one in slopes) if slope else ()


def averaged_gram(
    kernels: tuple[Kernel, ...], a: Tensor, parts: tuple[Tensor, ...], weights: Tensor, shape: Tensor, *, slope: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Σ_j w_j g(a_i + b_j), M × N × n, and if wanted what gives its slope, as in ``product_gram`` (N × n each).

    ``weights`` is k, or N × k for those of each row's own.
    """
    value = torch.empty_like(a)
    row = weights.unsqueeze(-2)
    slopes = []
    for m, kernel in enumerate(kernels):
        if kernel.separable:  # what is averaged does not depend on a: k numbers fewer for every i
            torch.mul(kernel.value(a[m], shape[m]), weights @ parts[m], out=value[m])
            slopes.append(value[m])
        elif slope:
            g, derivative = kernel.value_and_slope(a[m].unsqueeze(1) + parts[m], shape[m])
            value[m] = (row @ g).squeeze(-2)
            slopes.append((row @ derivative).squeeze(-2))
        else:
            value[m] = (row @ kernel.value(a[m].unsqueeze(1) + parts[m], shape[m])).squeeze(-2)
    return value, tuple(slopes) if slope else ()


class Whitening(Protocol):
    """Of M experts (M × k × k), or of one of them (k × k); k ≤ n."""

    def __getitem__(self, m: int) -> Whitening:
        """That of expert m alone."""

    @property
    def rows(self) -> int:
        """k: of how many of the n rows it looks at, the first ones."""

    def of(self, right: Tensor, *, spent: bool = False) -> Tensor:
        """W right (... × k × N) of ``right`` (... × n × N), in its place if that is ``spent`` and can be."""

    def back(self, half: Tensor) -> Tensor:
        """Wᵀ half (... × k × N)."""


@dataclass(frozen=True, eq=False)
class Triangular:
    """W = factor⁻¹, lower triangular; k = n."""

    factor: Tensor

    def __getitem__(self, m: int) -> Triangular:
        return Triangular(self.factor[m])

    @property
    def rows(self) -> int:
        return self.factor.shape[-1]

    def of(self, right: Tensor, *, spent: bool = False) -> Tensor:
        half: Tensor = torch.linalg.solve_triangular(self.factor, right, upper=False, out=right if spent else None)
        return half

    def back(self, half: Tensor) -> Tensor:
        right: Tensor = torch.linalg.solve_triangular(self.factor.mT, half, upper=True)
        return right


@dataclass(frozen=True, eq=False)
class DenseWhitening:
    """W itself."""

    matrix: Tensor

    def __getitem__(self, m: int) -> DenseWhitening:
        return DenseWhitening(self.matrix[m])

    @property
    def rows(self) -> int:
        return self.matrix.shape[-1]

    def of(self, right: Tensor, *, spent: bool = False) -> Tensor:
        return (right.mT[..., : self.rows] @ self.matrix.mT).mT  # each column in one piece, as the other has it

    def back(self, half: Tensor) -> Tensor:
        return (half.mT @ self.matrix).mT


Unwarp = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]]]
MIN_VARIANCE = 1e-14  # relative to the outputscale; keeps σ and its gradient finite at the data
MOSTLY_USED = 0.75  # share of pairs that matter from which on a gradient is taken of all: choosing costs a copy


@dataclass(frozen=True, eq=False)
class PairedGP:
    """M conditioned GPs and the contexts (m × d_c) that every design meets; ``ExactGP.paired_with`` makes one."""

    kernels: tuple[Kernel, ...]
    hyper: Hyperparameters
    x: Tensor
    whitening: Whitening
    scaled_weights: Tensor  # s_f α (M × n)
    contexts: Tensor

    @property
    def d_x(self) -> int:
        return self.x.shape[-1] - self.contexts.shape[-1]

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and standard deviation of every design ``x`` (N × d_x) in every context, the context
        running fastest: M × (N·m) each. Differentiable once, as ``ExactGP.moments``."""
        if not x.requires_grad:
            return self._moments_alone(self._design_sqdist(x))
        mean, sd = _WithPullback.apply(x, self.moments_and_pullback)  # type: ignore[no-untyped-call]
        return mean, sd

    def _moments_alone(self, sqdist: Tensor) -> tuple[Tensor, Tensor]:
        """``moments`` of designs whose part of r² is ``sqdist`` (M × N × n), one expert after the other: with no
        gradient to come nothing large is kept, and what is at work stays in cache."""
        count = sqdist.shape[1] * len(self.contexts)
        mean, explained = sqdist.new_empty(len(sqdist), count), sqdist.new_empty(len(sqdist), count)
        for m, kernel in enumerate(self.kernels):
            known, reported, part, shape = self.whitening[m], self.whitening.rows, self.parts[m], self.hyper.shape[m]
            # all pairs only of the rows inducing points, which carry the variance
            if kernel.separable and reported < sqdist.shape[-1]:
                designs = kernel.value(sqdist[m], shape)
                torch.mm(designs, (part * self.scaled_weights[m]).mT, out=mean[m].view(len(designs), -1))
                cross = (designs[:, None, :reported] * part[:, :reported]).flatten(0, 1)
            else:
                cross = product_gram((kernel,), sqdist[m : m + 1], (part,), shape[None], slope=False)[0][0]
                torch.mv(cross, self.scaled_weights[m], out=mean[m])
            torch.linalg.vector_norm(known.of(cross.mT, spent=True), dim=-2, out=explained[m])
        variance = torch.sub(self._prior, explained.square_())
        return mean.add_(self.hyper.mean[:, None]), torch.maximum(variance, MIN_VARIANCE * self._prior).sqrt_()

    def integrated(self, x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and standard deviation of F(x) = Σ_j w_j f(x, c_j), which is Gaussian: M × N each.

        ``weights`` is m, or N × m for weights of each design's own. Differentiable once in ``x`` (N × d_x).
        """
        if not x.requires_grad:
            cross, _ = self._averaged(x, weights, slope=False)
            return self._solve(cross, self._prior_variance(weights), spent=True)[:2]
        make = partial(self.integrated_and_pullback, weights=weights)
        mean, sd = _WithPullback.apply(x, make)  # type: ignore[no-untyped-call]
        return mean, sd

    def moments_and_pullback(self, x: Tensor) -> Differentiable:
        """``moments``, and the function that takes ∂/∂mean and ∂/∂sd to ∂/∂x: no graph is built.

            ∂μ/∂k = α,  ∂σ/∂k = −(K+noise)⁻¹k / σ,  ∂k/∂x = 2 k'(r²) (x − x_i)/ℓ²,

        so that it costs one more triangular solve and a few products.
        """
        cross, slopes = self._cross(x, slope=True)
        if self.whitening.rows == cross.shape[-1]:  # solutions take the place of ``cross``, where some slopes are
            slopes = tuple(one.clone() if k.separable else one for k, one in zip(self.kernels, slopes, strict=True))
        mean, sd, half = self._solve(cross, self._prior, spent=True)
        inverse_sd = self._inverse_sd(sd, self._prior)

        def pullback(grad_mean: Tensor, grad_sd: Tensor) -> Tensor:
            grad_sd = grad_sd * inverse_sd
            if _share_used(grad_mean) < MOSTLY_USED:  # a worst case looks at few contexts
                used = torch.nonzero(((grad_mean != 0) | (grad_sd != 0)).any(0)).squeeze(-1)
                if len(used) < MOSTLY_USED * mean.shape[1]:
                    chosen = half.mT.index_select(1, used).mT
                    some = self._cross_gradient(chosen, grad_mean[:, used], grad_sd[:, used])
                    some = _times(some, tuple(slope.index_select(0, used) for slope in slopes))
                    return self._design_gradient(x, self._gathered(some, used, len(x)))
            grad_sqdist = _times(self._cross_gradient(half, grad_mean, grad_sd), slopes)
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
        cross, slopes = self._averaged(x, weights, slope=True)
        mean, sd, half = self._solve(cross, prior)
        inverse_sd = self._inverse_sd(sd, prior)

        def pullback(grad_mean: Tensor, grad_sd: Tensor) -> Tensor:
            grad_sqdist = _times(self._cross_gradient(half, grad_mean, grad_sd * inverse_sd), slopes)
            return self._design_gradient(x, grad_sqdist)

        return mean, sd, pullback

    def warped(self, x: Tensor, weights: Tensor, unwarp: Unwarp) -> tuple[Tensor, Tensor]:
        """``warped_and_pullback`` for autograd, differentiable once in ``x``."""
        if not x.requires_grad:
            return self.warped_and_pullback(x, weights, unwarp)[:2]
        make = partial(self.warped_and_pullback, weights=weights, unwarp=unwarp)
        mean, sd = _WithPullback.apply(x, make)  # type: ignore[no-untyped-call]
        return mean, sd

    def warped_and_pullback(self, x: Tensor, weights: Tensor, unwarp: Unwarp) -> Differentiable:
        """Mean and standard deviation of F(x) = Σ_j w_j y(x, c_j), M × N, where the outcomes y are warped values of
        what the experts model: ``unwarp`` takes the modelled moments to those of y, with a pullback of its own.

        The values at a design's contexts are as correlated as the modelled ones, so with s_j of y, σ_j modelled and
        v_j = w_j s_j / σ_j the variance is vᵀCv, C the modelled covariance. C = K_c − HᵀH, H = L⁻¹k at the contexts,
        so nothing is solved that the moments do not need.
        """
        cross, slopes = self._cross(x, slope=True)
        mean, sd, half = self._solve(cross, self._prior)
        center, spread, to_modelled = unwarp(mean, sd)
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
        inverse_sd = self._inverse_sd(sd, self._prior)

        def pullback(grad_mean: Tensor, grad_sd: Tensor) -> Tensor:
            by_ratio = (grad_sd.unsqueeze(-1) * by_stretched * weights).reshape(len(mean), -1)
            by_center = (grad_mean.unsqueeze(-1) * weights).reshape(len(mean), -1)
            by_mean, by_sd = to_modelled(by_center, by_ratio / sd)
            by_sd = by_sd - by_ratio * ratio / sd
            of_each = half * (by_sd * inverse_sd).unsqueeze(1)
            shared = (grad_sd / of_mean).unsqueeze(-1) * stretched
            of_all = (together.unsqueeze(-1) * shared.unsqueeze(1)).reshape(half.shape)
            known = self.whitening.back(of_each + of_all).mT.neg()
            gradient = _times(self._and_of_mean(known, by_mean), slopes)
            return self._design_gradient(x, _by_design(gradient, len(x)).sum(-2))

        return (center.reshape(shape) * weights).sum(-1), of_mean, pullback

    def _solve(self, cross: Tensor, prior: Tensor, *, spent: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and sd (M × N) of what has correlation ``cross`` (M × N × n) with the data and variance ``prior`` (M × 1
        or M × N) before them, and W crossᵀ (M × n × N), in the place of ``cross`` if that is ``spent``."""
        mean = torch.stack([torch.mv(cross[m], self.scaled_weights[m]) for m in range(len(self.kernels))])
        mean += self.hyper.mean[:, None]
        half = self.whitening.of(cross.mT, spent=spent)
        variance = torch.sub(prior, torch.linalg.vector_norm(half, dim=-2).square_())
        return mean, torch.maximum(variance, MIN_VARIANCE * prior).sqrt_(), half

    def _cross_gradient(self, half: Tensor, grad_mean: Tensor, grad_sd: Tensor) -> Tensor:
        """∂/∂cross (M × N × n) from ∂/∂mean and (∂/∂sd)/sd (M × N); in place: the largest arrays of the hot path."""
        known = self.whitening.back(half).mT
        return self._and_of_mean(known.mul_(-grad_sd.unsqueeze(-1)), grad_mean)

    def _and_of_mean(self, known: Tensor, grad_mean: Tensor) -> Tensor:
        """∂/∂cross (M × N × n) from the sd's share in the rows that tell it (M × N × k), and from ∂/∂mean (M × N)."""
        weights, count = self.scaled_weights.unsqueeze(-2), known.shape[-1]
        if count == weights.shape[-1]:
            return known.addcmul_(grad_mean.unsqueeze(-1), weights)
        gradient = grad_mean.unsqueeze(-1) * weights
        gradient[..., :count] += known
        return gradient

    def _prior_variance(self, weights: Tensor) -> Tensor:
        """Of Σ_j w_j f(x, c_j): M × 1 for weights m, M × N for N × m."""
        variance = ((weights @ self._context_covariance) * weights).sum(-1)
        return variance.reshape(len(variance), -1)

    @staticmethod
    def _inverse_sd(sd: Tensor, prior: Tensor) -> Tensor:
        """1/σ, and 0 where σ is at its floor and does not change."""
        return torch.where(sd > ((1.0 + 1e-9) * MIN_VARIANCE * prior).sqrt_(), sd.reciprocal(), 0.0)

    def _cross(self, x: Tensor, *, slope: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Correlation of f at all pairs with the data (M × (N·m) × n), and if wanted what gives its slopes in r²."""
        return product_gram(self.kernels, self._design_sqdist(x), self.parts, self.hyper.shape, slope=slope)

    def _averaged(self, x: Tensor, weights: Tensor, *, slope: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The same of Σ_j w_j f(x, c_j): M × N × n."""
        return averaged_gram(self.kernels, self._design_sqdist(x), self.parts, weights, self.hyper.shape, slope=slope)

    def _design_sqdist(self, x: Tensor) -> Tensor:
        """The designs' part of r² (M × N × n): with z = x − ½ it is (z, z², 1) times what belongs to the data."""
        z = x - 0.5
        expanded = torch.cat([z, z.square(), z.new_ones(len(z), 1)], dim=-1)
        return torch.bmm(expanded.expand(len(self.kernels), -1, -1), self.data_part).clamp_min_(0.0)

    def _design_gradient(self, x: Tensor, grad_sqdist: Tensor) -> Tensor:
        """∂/∂x (N × d_x) from ∂/∂r² (M × N × n) up to ``slope_factors``, back the way of ``_design_sqdist``."""
        by_z, by_square = torch.bmm(grad_sqdist, self.data_slopes).sum(0).chunk(2, dim=-1)
        return torch.addcmul(by_z, x - 0.5, by_square, value=2.0)

    # What belongs to the data and to the contexts: made once.

    @cached_property
    def _prior(self) -> Tensor:
        """The variance of f (M × 1)."""
        return self.hyper.outputscale[:, None]

    @cached_property
    def data_part(self) -> Tensor:
        """r² = Σ_k z_k²/ℓ_k² − 2 z_k z_ik/ℓ_k² + z_ik²/ℓ_k² as a product with (z, z², 1): M × (2 d_x + 1) × n.

        Inputs are centered on the middle of the unit cube, which keeps the rounding error near 1e-15.
        """
        z = self.x[:, : self.d_x].mT - 0.5  # d_x × n
        inverse = self.hyper.lengthscale[:, : self.d_x, None].square().reciprocal()
        linear, squares = -2.0 * inverse * z, inverse.expand(-1, -1, z.shape[-1])
        return torch.cat([linear, squares, (inverse * z.square()).sum(1, keepdim=True)], dim=1)

    @cached_property
    def data_slopes(self) -> Tensor:
        """∂r²/∂(z, z²), times the ``slope_factors``: M × n × 2 d_x."""
        factors = slope_factors(self.kernels, self.x)[:, None, None]
        return (factors * self.data_part[:, : 2 * self.d_x]).mT.contiguous()

    @cached_property
    def parts(self) -> tuple[Tensor, ...]:
        """What belongs to the contexts in ``_cross`` (m × n for each expert)."""
        sqdist = scaled_sqdist(self.contexts, self.x[:, self.d_x :], self.hyper.lengthscale[:, self.d_x :])
        return context_parts(self.kernels, sqdist, self.hyper.shape)

    @cached_property
    def _context_covariance(self) -> Tensor:
        """Prior covariance of f(x, c_i) and f(x, c_j), the same for every x (M × m × m)."""
        hyper = self.hyper
        sqdist = scaled_sqdist(self.contexts, self.contexts, hyper.lengthscale[:, self.d_x :])
        sqdist.diagonal(dim1=-2, dim2=-1).zero_()
        return gram(self.kernels, sqdist, hyper.outputscale, hyper.shape)


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


def _times(gradient: Tensor, slopes: tuple[Tensor, ...]) -> Tensor:
    """``gradient`` (M × N × n) times the slopes (N × n) of each expert, in place."""
    for m, slope in enumerate(slopes):
        gradient[m].mul_(slope)
    return gradient


def _share_used(gradient: Tensor) -> float:
    """Of the entries of ``gradient``, those that are not zero."""
    return int(gradient.count_nonzero()) / max(gradient.numel(), 1)
