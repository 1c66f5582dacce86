"""Gaussian processes of what comes out, asked about what is set: f(x + δ, c) as a function of (x, u, c).

A design variable with a tolerance adds a coordinate u to the context, of known distribution, and what comes out is
x + (u − ½)(a + b x). The experts know f of what comes out. So a query (x, u, c) is first taken there, and everything
else is as it was; inputs of this kind have the columns x, then u, then c.

    t        variables with a tolerance
    queries  ... × (d_x + t + d_c)
    inputs   ... × (d_x + d_c), those of the experts
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from edrbo.surrogate.exact_gp import ExactGP
from edrbo.surrogate.gaussian_model import Differentiable, pairs
from edrbo.surrogate.kernels import gram, scaled_sqdist
from edrbo.surrogate.paired_gp import MIN_VARIANCE, PairedGP, Unwarp


@dataclass(frozen=True, eq=False)
class Shift:
    """``columns`` (t) of a design that come out at x + (u − ½)(``offset`` + ``slope`` x), each t."""

    d_x: int
    columns: Tensor
    offset: Tensor
    slope: Tensor

    @property
    def count(self) -> int:
        return len(self.columns)

    def inputs(self, queries: Tensor) -> Tensor:
        """Where the experts are asked; differentiable."""
        x, u, c = self._split(queries)
        own = x[..., self.columns]
        moved = own + (u - 0.5) * (self.offset + self.slope * own)
        return torch.cat([x.index_copy(-1, self.columns, moved), c], dim=-1)

    def pullback(self, queries: Tensor, by_inputs: Tensor) -> Tensor:
        """∂/∂queries from ∂/∂inputs."""
        x, u, _ = self._split(queries)
        by_x, by_c = by_inputs[..., : self.d_x], by_inputs[..., self.d_x :]
        own, by_own = x[..., self.columns], by_x[..., self.columns]
        by_u = by_own * (self.offset + self.slope * own)
        by_x = by_x.index_copy(-1, self.columns, by_own * (1.0 + (u - 0.5) * self.slope))
        return torch.cat([by_x, by_u, by_c], dim=-1)

    def without(self, columns: Tensor) -> Tensor:
        """The columns of inputs out of those of queries (... × (d_x + t + d_c))."""
        return torch.cat([columns[..., : self.d_x], columns[..., self.d_x + self.count :]], dim=-1)

    def beside(self, columns: Tensor, own: Tensor) -> Tensor:
        """The columns of queries: those of inputs, with ``own`` (... × t) for u."""
        return torch.cat([columns[..., : self.d_x], own, columns[..., self.d_x :]], dim=-1)

    def _split(self, queries: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        stop = self.d_x + self.count
        return queries[..., : self.d_x], queries[..., self.d_x : stop], queries[..., stop:]


@dataclass(frozen=True)
class ShiftedGP(ExactGP):
    """``ExactGP`` whose points, data included, are queries: data stand at what came out, u = ½."""

    shift: Shift = field(kw_only=True)
    unshifted: ExactGP = field(kw_only=True)  # on inputs
    sparse: ClassVar[bool] = False

    @classmethod
    def of(cls, gp: ExactGP, shift: Shift) -> Self:
        """``gp`` on inputs, asked by queries."""
        x = shift.beside(gp.x, gp.x.new_full((*gp.x.shape[:-1], shift.count), 0.5))
        own = gp.hyper.lengthscale[:, shift.columns] / (shift.offset + 0.5 * shift.slope)
        hyper = replace(gp.hyper, lengthscale=shift.beside(gp.hyper.lengthscale, own))
        parts = gp.kernels, hyper, x, gp.y, gp.noise_variance, gp.chol, gp.alpha, gp.source
        return cls(*parts, shift=shift, unshifted=gp)

    @property
    def observed(self) -> Tensor:
        data = self.unshifted.observed
        return self.shift.beside(data, data.new_full((*data.shape[:-1], self.shift.count), 0.5))

    @property
    def count(self) -> int:
        return self.unshifted.count

    def past_factor(self) -> tuple[Tensor, Tensor]:
        return self.unshifted.past_factor()

    def log_evidence(self) -> Tensor:
        return self.unshifted.log_evidence()

    def held_out(self, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self.unshifted.held_out(rows)

    def one_step_ahead(self) -> tuple[Tensor, Tensor]:
        return self.unshifted.one_step_ahead()

    def noise_doubt(self, points: Tensor) -> Tensor:
        return self.unshifted.noise_doubt(self.shift.inputs(points))

    def noise_ratio(self, points: Tensor) -> Tensor | None:
        return self.unshifted.noise_ratio(self.shift.inputs(points))

    def expert(self, m: int) -> ShiftedGP:
        return self.of(self.unshifted.expert(m), self.shift)

    def with_lengthscale(self, lengthscale: Tensor) -> ShiftedGP:
        return self.of(self.unshifted.with_lengthscale(self.shift.without(lengthscale)), self.shift)

    def extend(self, x: Tensor, y: Tensor, noise_variance: Tensor | None = None) -> Self:
        return self.of(self.unshifted.extend(self.shift.inputs(x), y, noise_variance), self.shift)

    def _gram(self, a: Tensor, b: Tensor) -> Tensor:
        lengthscale = self.shift.without(self.hyper.lengthscale)
        sqdist = scaled_sqdist(self.shift.inputs(a), self.shift.inputs(b), lengthscale)
        return gram(self.kernels, sqdist, self.hyper.outputscale, self.hyper.shape)

    def paired_with(self, contexts: Tensor) -> PairedGP:
        base = self.unshifted.paired_with(contexts.new_zeros(1, 0))
        given = {part.name: getattr(base, part.name) for part in fields(PairedGP)}
        return ShiftedPairedGP(**{**given, "contexts": contexts}, shift=self.shift, base=base)


@dataclass(frozen=True, eq=False)
class ShiftedPairedGP(PairedGP):
    """Contexts (m × (t + d_c)) begin with u. What designs and contexts share of a distance is not apart from the rest:
    ``base`` is asked at every pair."""

    shift: Shift
    base: PairedGP  # on inputs, with no contexts

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.base.moments(self.shift.inputs(pairs(x, self.contexts)))

    def moments_and_pullback(self, x: Tensor) -> Differentiable:
        queries = pairs(x, self.contexts)
        mean, sd, back = self.base.moments_and_pullback(self.shift.inputs(queries))

        def pullback(grad_mean: Tensor, grad_sd: Tensor) -> Tensor:
            by_query = self.shift.pullback(queries, back(grad_mean, grad_sd))
            return by_query[:, : x.shape[1]].reshape(len(x), -1, x.shape[1]).sum(1)

        return mean, sd, pullback

    def integrated(self, x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        mean, covariance = self._joint(x)
        row = weights.expand(len(x), -1)
        variance = ((covariance @ row[None, :, :, None]).squeeze(-1) * row).sum(-1)
        floor = MIN_VARIANCE * self.hyper.outputscale[:, None]
        return (mean * row).sum(-1), torch.maximum(variance, floor).sqrt()

    def integrated_and_pullback(self, x: Tensor, weights: Tensor) -> Differentiable:
        return _by_autograd(x, lambda point: self.integrated(point, weights))

    def warped(self, x: Tensor, weights: Tensor, unwarp: Unwarp) -> tuple[Tensor, Tensor]:
        mean, covariance = self._joint(x)
        sd = covariance.diagonal(dim1=-2, dim2=-1).clamp_min(1e-14).sqrt()
        center, spread, _ = unwarp(mean.flatten(1), sd.flatten(1))
        center, spread = center.reshape(mean.shape), spread.reshape(mean.shape)
        row = weights.expand(len(x), -1) * spread / sd
        variance = ((covariance @ row[..., None]).squeeze(-1) * row).sum(-1)
        return (center * weights).sum(-1), variance.clamp_min(1e-14).sqrt()

    def warped_and_pullback(self, x: Tensor, weights: Tensor, unwarp: Unwarp) -> Differentiable:
        return _by_autograd(x, lambda point: self.warped(point, weights, unwarp))

    def _joint(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean (M × N × m) and covariance (M × N × m × m) over the contexts of each design."""
        inputs = self.shift.inputs(pairs(x, self.contexts)).reshape(len(x), len(self.contexts), -1)
        hyper, base = self.hyper, self.base
        cross = gram(
            base.kernels, scaled_sqdist(inputs, base.x, base.hyper.lengthscale), hyper.outputscale, hyper.shape
        )
        scale = hyper.outputscale[:, None, None]
        unit = cross.transpose(0, 1) / scale[..., None]  # M × N × m × n
        mean = (unit @ base.scaled_weights[:, None, :, None]).squeeze(-1) + hyper.mean[:, None, None]
        count = unit.shape[-1]
        half = base.whitening.of(unit.reshape(len(unit), -1, count).mT).mT.reshape(unit.shape)
        sqdist = scaled_sqdist(inputs, inputs, base.hyper.lengthscale)
        prior = gram(base.kernels, sqdist, hyper.outputscale, hyper.shape).transpose(0, 1)
        return mean, prior - half @ half.mT


def _by_autograd(x: Tensor, moments: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Differentiable:
    with torch.enable_grad():
        point = x.detach().requires_grad_()
        mean, sd = moments(point)

    def pullback(grad_mean: Tensor, grad_sd: Tensor) -> Tensor:
        (gradient,) = torch.autograd.grad((mean, sd), point, (grad_mean, grad_sd), retain_graph=True)
        return gradient

    return mean.detach(), sd.detach(), pullback
