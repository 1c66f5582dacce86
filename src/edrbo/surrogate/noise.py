"""Noise that varies: a small second model of the logarithm of the noise variance over designs and contexts.

    log noise(z) = log noise_m + Σ_k Σ_j β_kj φ_j(z_k),    φ_j(z) = cos(π j z),    β_kj ~ N(0, (SPREAD/j)²)

That is a Gaussian process of the log variance, a sum of smooth functions of one input each, by its first cosines.
The coefficients are the maximum of their posterior: Newton's method on the marginal likelihood of the experts, with the
expected information (the residuals are in it, and of replicates the scatter). Which inputs there are is chosen by one
step of that, and whether there is any such model by Laplace's evidence of it: nothing changes until that is better
than the evidence of one noise for all by ``MARGIN``. What is learned so enters the experts as the noise of each row.

Goldberg, Williams and Bishop (1998); Kersting, Plagemann, Pfaff and Burgard (2007); Ankenman, Nelson and Staum (2010).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate, fitted_rows
from edrbo.surrogate.exact_gp import safe_cholesky
from edrbo.surrogate.fit import MOST_FITTED, Likelihood, fit_experts, pack
from edrbo.surrogate.gaussian_model import Differentiable, pairs
from edrbo.surrogate.inducing_gp import InducingGP
from edrbo.surrogate.kernels import Hyperparameters, get_kernel, noise_ratio
from edrbo.surrogate.paired_gp import PairedGP
from edrbo.surrogate.scaling import Scaling
from edrbo.surrogate.tolerance import ShiftedGP, ShiftedPairedGP

COSINES = 3  # of each input
SPREAD = 1.5  # prior standard deviation of the first one's coefficient
LEVEL_SPREAD = 1.0  # of the level, which noise_variance has already
PROMISING = 2.5  # nats that one step along an input must gain for the search to be made …
MARGIN = 3.0  # … and by which the evidence of the model must be better, once it was
FEWEST = 20  # observations whose noise is not known
LEAST_NOISE = 0.005  # of the outcomes' variance: below, what varies may be the fit of f as well
STEPS, DECREASE_AT_END = 25, 1e-6
LARGEST_STEP = 2.0  # in a coefficient


@dataclass(frozen=True)
class VaryingNoiseSurrogate(Surrogate):
    """``Surrogate`` whose noise varies over the inputs where the evidence asks for it."""

    @classmethod
    def of(cls, surrogate: Surrogate) -> VaryingNoiseSurrogate:
        """The experts of ``surrogate``."""
        own = surrogate.sparse_from, surrogate.inducing_points
        return cls(surrogate.experts, surrogate.priors, surrogate.weighting, *own)

    def fit(
        self,
        X: Tensor,
        Y: Tensor,
        Yvar: Tensor | None = None,
        *,
        start: Hyperparameters | None = None,
        cold: bool = True,
    ) -> ExpertEnsemble:
        if self._is_large(X):
            return self.at(X, Y, Yvar, self.fit_hyperparameters(X, Y, Yvar, start=start, cold=cold))
        before = None if start is None else start.noise_profile
        start = None if start is None else replace(start, noise_profile=None, noise_doubt=None)
        alike = super().fit(X, Y, Yvar, start=start, cold=cold)
        first = varying_noise(alike, before)
        if first is None:
            return alike
        # lengthscales that go with it, and once more
        refitted = self._refitted(alike, first[0])
        profile, doubt = varying_noise(self._plain(alike, refitted), first[0]) or first
        return self.at(X, Y, Yvar, replace(refitted, noise_profile=profile, noise_doubt=doubt))

    def fit_hyperparameters(
        self, X: Tensor, Y: Tensor, Yvar: Tensor | None, *, start: Hyperparameters | None, cold: bool
    ) -> Hyperparameters:
        """Of very many observations those tell how the noise varies that lengthscales are fitted to."""
        if not self._is_large(X):
            return self.fit(X, Y, Yvar, start=start, cold=cold).gp.hyper
        before, scaling, some = None if start is None else start.noise_profile, Scaling.of(Y), fitted_rows(X)
        plain = None if start is None else replace(start, noise_profile=None, noise_doubt=None)
        hyper = self._hyperparameters(X, Y, Yvar, scaling, plain, cold)
        exact = replace(self, sparse_from=len(X) + 1)
        alike = exact._at(X[some], Y[some], None if Yvar is None else Yvar[some], hyper, scaling)
        first = varying_noise(alike, before)
        if first is None:
            return hyper
        refitted = self._refitted(alike, first[0])
        profile, doubt = varying_noise(self._plain(alike, refitted), first[0]) or first
        return replace(refitted, noise_profile=profile, noise_doubt=doubt)

    def _is_large(self, X: Tensor) -> bool:
        """Whether a model of ``X`` (n × d) is not what lengthscales are fitted to."""
        return len(X) > MOST_FITTED or len(X) >= self.sparse_from

    def extend(self, model: ExpertEnsemble, X: Tensor, Y: Tensor, Yvar: Tensor | None = None) -> ExpertEnsemble:
        if model.gp.hyper.noise_profile is None or isinstance(model.gp, InducingGP):
            return super().extend(model, X, Y, Yvar)
        return self.at(X, Y, Yvar, model.gp.hyper)

    def _refitted(self, model: ExpertEnsemble, profile: Tensor) -> Hyperparameters:
        gp = model.gp
        kernels, ratio = tuple(get_kernel(name) for name in self.experts), noise_ratio(profile, gp.x)
        priors = self.priors(gp.x.shape[-1])
        likelihood = Likelihood(gp.x, gp.y, model.known_noise, priors, model.replicates, noise_ratio=ratio)
        hyper = fit_experts(kernels, likelihood, pack(gp.hyper))
        return replace(hyper, mean=gp.hyper.mean, noise_profile=profile)

    def _plain(self, model: ExpertEnsemble, hyper: Hyperparameters) -> ExpertEnsemble:
        """``model`` with these lengthscales, and one noise."""
        hyper = replace(hyper, noise_profile=None, noise_doubt=None)
        gp = model.gp.conditioned(model.gp.kernels, hyper, model.known_noise, model.exposure)
        return replace(model, gp=gp)


def varying_noise(model: ExpertEnsemble, start: Tensor | None = None) -> tuple[Tensor, Tensor] | None:
    """The coefficients (d × COSINES) of the noise of ``model``, whose rows have one noise, and their covariance; None
    if it does not vary as far as the data say. ``start`` are those of before."""
    finder = _Finder.of(model)
    if finder is None:
        return None
    inputs = finder.promising()
    if not inputs:
        return None
    coefficients, covariance, gain = finder.search(inputs, start)
    return (coefficients, covariance) if gain > MARGIN else None


@dataclass(frozen=True, eq=False)
class _Finder:
    """Of M experts on k rows: signal (M × k × k), residuals (M × k), the noise of rows where all is alike (M × k), how
    many observations a row is the mean of and their scatter (k), and which rows have a noise that is not known (k)."""

    x: Tensor
    signal: Tensor
    residual: Tensor
    noise: Tensor
    count: Tensor
    scatter: Tensor
    free: Tensor

    @classmethod
    def of(cls, model: ExpertEnsemble) -> _Finder | None:
        gp = model.gp
        known = model.known_noise
        free = torch.ones_like(gp.y) if known is None else known.isnan().to(gp.y.dtype)
        replicates, none = model.replicates, torch.zeros_like(gp.y)
        count = torch.ones_like(gp.y) if replicates is None else replicates.count
        enough = float((free * count).sum()) >= FEWEST and gp.x.ndim == 2
        if not enough or float(gp.hyper.noise_variance.mean()) < LEAST_NOISE or gp.x.shape[-1] == 0:
            return None
        if replicates is None:
            scatter = none
        else:
            scatter = none.index_add(0, replicates.rows, replicates.deviation.square()) * free
        signal = gp.chol @ gp.chol.mT - torch.diag_embed(gp.noise_variance)
        residual = gp.y - gp.hyper.mean[:, None]
        return cls(gp.x, signal, residual, gp.noise_variance, count, scatter, free)

    def features(self, inputs: list[int]) -> tuple[Tensor, Tensor]:
        """The level and the cosines of some inputs (k × p), and the prior variances of their coefficients (p)."""
        columns, variances = [torch.ones_like(self.count)], [LEVEL_SPREAD**2]
        for k in inputs:
            for j in range(1, COSINES + 1):
                columns.append(torch.cos(math.pi * j * self.x[:, k].clamp(0.0, 1.0)))
                variances.append((SPREAD / j) ** 2)
        return torch.stack(columns, dim=-1), torch.tensor(variances, dtype=torch.float64)

    def information(self, log_ratio: Tensor) -> tuple[float, Tensor, Tensor]:
        """Log likelihood, its slope in the log noise of each row (k), and the expected information (k × k); means over
        the experts."""
        ratio = torch.where(self.free > 0, log_ratio, 0.0).exp()
        noise = self.noise * ratio
        chol = safe_cholesky(self.signal + torch.diag_embed(noise))
        inverse = torch.cholesky_inverse(chol)
        alpha = (inverse @ self.residual.unsqueeze(-1)).squeeze(-1)
        own = self.noise * self.count * ratio  # of single observations: M × k
        more = (self.count - 1.0) * self.free
        value = -0.5 * (self.residual * alpha).sum(-1) - chol.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        value = value - 0.5 * (more * own.log() + self.scatter / own).sum(-1)
        slope = 0.5 * noise * (alpha.square() - inverse.diagonal(dim1=-2, dim2=-1))
        slope = (slope.mean(0) + 0.5 * (self.scatter / own).mean(0) - 0.5 * more) * self.free
        scaled = noise * self.free
        both = 0.5 * (scaled.unsqueeze(-1) * scaled.unsqueeze(-2) * inverse.square()).mean(0)
        return float(value.mean()), slope, both + torch.diag(0.5 * more)

    def promising(self) -> list[int]:
        """The inputs along which one step from one noise for all gains more than chance does in most data. What the
        coefficients cost is not counted yet: where it is quiet at few places one step sees but a part of it."""
        _, slope, information = self.information(torch.zeros_like(self.count))
        gains = []
        for k in range(self.x.shape[-1]):
            features, variances = self.features([k])
            gradient = features.mT @ slope
            curvature = features.mT @ information @ features + torch.diag(1.0 / variances)
            step = torch.linalg.solve(curvature, gradient)
            gains.append(0.5 * float(gradient @ step))
        return [k for k, gain in enumerate(gains) if gain > PROMISING]

    def search(self, inputs: list[int], start: Tensor | None) -> tuple[Tensor, Tensor, float]:
        """The coefficients (d × COSINES) at the top of the posterior, their covariance there, and by how much Laplace's
        evidence of the model is better than that of one noise for all."""
        features, variances = self.features(inputs)
        base = self.information(torch.zeros_like(self.count))[0]
        ends = [self._climb(features, variances, torch.zeros_like(variances))]
        if start is not None:
            warm = torch.cat([torch.zeros(1, dtype=torch.float64), start[inputs].flatten()])
            ends.append(self._climb(features, variances, warm))
        top, value, curvature = max(ends, key=lambda end: end[1])
        coefficients = torch.zeros(self.x.shape[-1], COSINES, dtype=torch.float64)
        coefficients[inputs] = top[1:].reshape(len(inputs), COSINES)
        places = torch.tensor([COSINES * k + j for k in inputs for j in range(COSINES)])
        covariance = torch.zeros(coefficients.numel(), coefficients.numel(), dtype=torch.float64)
        covariance[places[:, None], places] = torch.linalg.inv(curvature)[1:, 1:]
        return coefficients, covariance, value - base - _cost(curvature, variances)

    def _climb(self, features: Tensor, variances: Tensor, start: Tensor) -> tuple[Tensor, float, Tensor]:
        """Newton's method with halving; the end (p), its log posterior, and the curvature there (p × p)."""

        def at(point: Tensor) -> tuple[float, Tensor, Tensor]:
            value, slope, information = self.information(features @ point)
            gradient = features.mT @ slope - point / variances
            curvature = features.mT @ information @ features + torch.diag(1.0 / variances)
            return value - 0.5 * float((point.square() / variances).sum()), gradient, curvature

        point, (value, gradient, curvature) = start, at(start)
        for _ in range(STEPS):
            step = torch.linalg.solve(curvature, gradient)
            step = step * min(1.0, LARGEST_STEP / max(float(step.abs().max()), 1e-12))
            promised = float(gradient @ step)
            size, found = 1.0, at(point + step)
            while found[0] < value and size > 1e-3:
                size *= 0.5
                found = at(point + size * step)
            if found[0] < value:
                break
            point, (value, gradient, curvature) = point + size * step, found
            if promised < DECREASE_AT_END:
                break
        return point, value, curvature


def _cost(curvature: Tensor, variances: Tensor) -> float:
    """½ log det of the curvature in units of the prior: what the evidence pays for coefficients that are learned."""
    return 0.5 * float(torch.linalg.slogdet(curvature)[1] + variances.log().sum())


REACH = 6.0  # of u in [0, 1] in standard deviations, as of a tolerance


@dataclass(frozen=True)
class NoisyGP(ShiftedGP):
    """Single outcomes in place of f: queries (x, u, c) are of f(x, c) + 6 (u − ½) √noise(x, c), so that who sums over u
    as over contexts sums over the noise. Of plain experts, whose noise varies."""

    of_outcomes: ClassVar[bool] = True

    def deviation(self, queries: Tensor) -> Tensor:
        """What the noise adds at queries (... × N × (d + 1)): ... × M × N."""
        ratio = self.noise_ratio(queries)
        sd = self.hyper.noise_variance.sqrt().unsqueeze(-1)
        if ratio is None:
            return torch.zeros_like(sd * queries[..., :1].mT)
        return sd * (REACH * (queries[..., self.shift.d_x] - 0.5) * ratio.sqrt()).unsqueeze(-2)

    def extend(self, x: Tensor, y: Tensor, noise_variance: Tensor | None = None) -> Self:
        """With outcomes ``y`` whose noise is told by u."""
        return super().extend(x, y - self.deviation(x).mean(-2), noise_variance)

    def posterior(self, points: Tensor) -> tuple[Tensor, Tensor]:
        mean, covariance = super().posterior(points)
        return mean + self.deviation(points), covariance

    def posterior_beside(self, points: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, variance, covariance = super().posterior_beside(points, rows)
        return mean + self.deviation(points), variance, covariance

    def paired_with(self, contexts: Tensor) -> PairedGP:
        base = super().paired_with(contexts)
        return NoisyPairedGP(**{part.name: getattr(base, part.name) for part in fields(base)}, deviation=self.deviation)


@dataclass(frozen=True, eq=False)
class NoisyPairedGP(ShiftedPairedGP):
    """The same on all pairs of designs and contexts (m × (1 + d_c))."""

    deviation: Callable[[Tensor], Tensor]

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, sd = super().moments(x)
        return mean + self.deviation(pairs(x, self.contexts)), sd

    def moments_and_pullback(self, x: Tensor) -> Differentiable:
        mean, sd, back = super().moments_and_pullback(x)
        with torch.enable_grad():
            point = x.detach().requires_grad_()
            more = self.deviation(pairs(point, self.contexts))

        def pullback(grad_mean: Tensor, grad_sd: Tensor) -> Tensor:
            (own,) = torch.autograd.grad(more, point, grad_mean, retain_graph=True)
            return back(grad_mean, grad_sd) + own

        return mean + more.detach(), sd, pullback

    def integrated(self, x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        mean, sd = super().integrated(x, weights)
        more = self.deviation(pairs(x, self.contexts))
        return mean + (more.reshape(len(more), len(x), -1) * weights).sum(-1), sd
