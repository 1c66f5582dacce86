"""MAP hyper-parameters for all experts at once: analytic gradients, bounded L-BFGS, warm start.

The parameters of one expert are θ = (log ℓ_1..d, log s_f, log noise, log α). The constant mean is profiled out
in closed form (its prior is Gaussian), so by the envelope theorem it does not appear in the gradient:

    ∂ log p(y) / ∂θ = ½ tr((ααᵀ − K⁻¹) ∂K/∂θ)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.surrogate.exact_gp import Hyperparameters, noise_per_expert, safe_cholesky
from edrbo.surrogate.kernels import Kernel, gram_and_slope
from edrbo.surrogate.lbfgs import minimize_batch
from edrbo.surrogate.priors import LogNormal, Priors
from edrbo.surrogate.repeats import Repeats

LENGTHSCALE_BOUNDS = (5e-3, 50.0)
OUTPUTSCALE_BOUNDS = (1e-2, 1e2)
NOISE_BOUNDS = (1e-6, 2.0)
SHAPE_BOUNDS = (5e-2, 50.0)
NATS = 0.003  # a search ends when a step gains less of the log posterior: fits end within 0.01 of the maximum, mostly
UNIT = 0.03  # of the search, per nat: the curvature in θ is then about one, and its first steps have the right length
LARGEST_BATCH = 2**22  # elements of the Gram matrices that are worked on together
HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Likelihood:
    """The log posterior of the hyper-parameters given x (n × d) and standardized y (n).

    The Gram matrix is symmetric with a known diagonal, so everything elementwise is done on the P = n(n−1)/2 pairs
    below it, whose squared differences are taken once.
    """

    x: Tensor
    y: Tensor
    known_noise: Tensor | None  # n, NaN where unknown
    priors: Priors
    repeats: Repeats | None = None  # the observations behind x and y, if some share a row

    @property
    def observations(self) -> int:
        return len(self.y) if self.repeats is None else len(self.repeats.rows)

    @cached_property
    def _pairs(self) -> Tensor:
        """Row and column of every pair (2 × P)."""
        return torch.tril_indices(len(self.y), len(self.y), offset=-1)

    @cached_property
    def _flat(self) -> Tensor:
        """Where the pairs stand in a matrix written out row by row (P)."""
        return self._pairs[0] * len(self.y) + self._pairs[1]

    @cached_property
    def _differences(self) -> Tensor:
        """Squared difference of every pair in each input (d × P)."""
        first, second = self._pairs
        return (self.x[first] - self.x[second]).square().T.contiguous()

    def _below_diagonal(self, matrix: Tensor) -> Tensor:
        """The pairs' entries of a matrix (M × n × n), M × P. NumPy takes them three times as fast as PyTorch."""
        return torch.from_numpy(np.take(matrix.reshape(len(matrix), -1).numpy(), self._flat.numpy(), axis=1))

    def value_and_gradient(self, theta: Tensor, kernels: tuple[Kernel, ...]) -> tuple[Tensor, Tensor]:
        """Log posterior (M) and gradient (M × (d+3)) at ``theta`` (M × (d+3)); row m belongs to kernels[m]."""
        n, d = self.x.shape
        hyper = unpack(theta)
        sqdist = hyper.lengthscale.square().reciprocal() @ self._differences  # M × P
        signal, slope = gram_and_slope(kernels, sqdist, hyper.outputscale, hyper.shape)
        # the factorization reads the lower triangle alone
        covariance = signal.new_zeros(len(kernels), n * n).index_copy_(1, self._flat, signal).view(-1, n, n)
        count = None if self.repeats is None else self.repeats.count
        noise = noise_per_expert(hyper.noise, n, self.known_noise, count)
        covariance.diagonal(dim1=-2, dim2=-1).copy_(hyper.outputscale[:, None] + noise)
        chol = safe_cholesky(covariance)
        mean = profile_mean(chol, self.y, self.priors.mean_sd)
        inverse = torch.cholesky_inverse(chol)  # symmetric, and LAPACK leaves it column by column: .mT is contiguous
        residual = self.y - mean[:, None]
        alpha = (inverse @ residual.unsqueeze(-1)).squeeze(-1)
        value = (
            -0.5 * (residual * alpha).sum(-1)
            - chol.diagonal(dim1=-2, dim2=-1).log().sum(-1)
            - n * HALF_LOG_2PI
            - 0.5 * (mean / self.priors.mean_sd).square()
        )
        # ∂ log p / ∂K = ½ (ααᵀ − K⁻¹): twice that for a pair, which stands in K twice
        outer = torch.addcmul(inverse.mT, alpha.unsqueeze(-1), alpha.unsqueeze(-2), value=-1.0)
        pairs = self._below_diagonal(outer).neg_()
        own = 0.5 * (alpha.square() - inverse.diagonal(dim1=-2, dim2=-1))
        gradient = torch.zeros_like(theta)
        gradient[:, :d] = -2.0 * (slope.mul_(pairs) @ self._differences.T) / hyper.lengthscale.square()
        gradient[:, d] = torch.linalg.vecdot(pairs, signal) + hyper.outputscale * own.sum(-1)
        by_noise = own if count is None else own / count
        unknown = by_noise if self.known_noise is None else by_noise[:, self.known_noise.isnan()]
        gradient[:, d + 1] = hyper.noise * unknown.sum(-1)
        if self.repeats is not None:
            scatter, scatter_slope = self.repeats.log_density(hyper.noise)
            value += scatter
            gradient[:, d + 1] += scatter_slope
        for m, kernel in enumerate(kernels):
            if kernel.has_shape:
                by_shape = kernel.shape_slope(sqdist[m], hyper.shape[m], signal[m])
                gradient[m, d + 2] = hyper.shape[m] * (pairs[m] @ by_shape)
        prior_value, prior_gradient = self._log_prior(theta, kernels)
        return value + prior_value, gradient + prior_gradient

    def _log_prior(self, theta: Tensor, kernels: tuple[Kernel, ...]) -> tuple[Tensor, Tensor]:
        d = self.x.shape[1]
        learns_shape = torch.tensor([kernel.has_shape for kernel in kernels])
        columns = (
            (slice(0, d), self.priors.lengthscale, None),
            (slice(d, d + 1), self.priors.outputscale, None),
            (slice(d + 1, d + 2), self.priors.noise, None),
            (slice(d + 2, d + 3), self.priors.shape, learns_shape),
        )
        value, gradient = torch.zeros_like(theta[:, 0]), torch.zeros_like(theta)
        for column, prior, used in columns:
            if prior is None:
                continue
            standard = (theta[:, column] - prior.loc) / prior.scale
            # density of the parameter itself, hence the extra −log θ (BoTorch's convention)
            log_density = -0.5 * standard.square() - theta[:, column] - math.log(prior.scale) - HALF_LOG_2PI
            slope = -standard / prior.scale - 1.0
            if used is not None:
                log_density, slope = log_density * used[:, None], slope * used[:, None]
            value += log_density.sum(-1)
            gradient[:, column] += slope
        return value, gradient


def profile_mean(chol: Tensor, y: Tensor, mean_sd: float) -> Tensor:
    """The constant mean (M) that maximizes the posterior given the covariance factors ``chol`` (M × n × n)."""
    columns = torch.stack([torch.ones_like(y), y], dim=-1).expand(*chol.shape[:-1], 2)
    half = torch.linalg.solve_triangular(chol, columns, upper=False)
    ones, outcomes = half.unbind(-1)
    precision = ones.square().sum(-1) + mean_sd**-2
    mean: Tensor = torch.sum(ones * outcomes, -1) / precision
    return mean


def unpack(theta: Tensor) -> Hyperparameters:
    """θ (M × (d+3)) as named hyper-parameters; the mean, which θ does not hold, is left at zero."""
    values = theta.exp()
    lengthscale, outputscale, noise, shape = values[:, :-3], values[:, -3], values[:, -2], values[:, -1]
    return Hyperparameters(lengthscale, outputscale, noise, torch.zeros_like(noise), shape)


def pack(hyper: Hyperparameters) -> Tensor:
    """The inverse of ``unpack``, without the mean."""
    rest = torch.stack([hyper.outputscale, hyper.noise, hyper.shape], dim=-1)
    return torch.cat([hyper.lengthscale, rest], dim=-1).log()


def default_theta(kernels: tuple[Kernel, ...], d: int, priors: Priors) -> Tensor:
    """Where a cold fit starts: the priors' modes (M × (d+3))."""

    def start(prior: LogNormal | None, otherwise: float) -> float:
        return math.log(otherwise if prior is None else prior.mode)

    row = [start(priors.lengthscale, 0.5)] * d
    row += [start(priors.outputscale, 1.0), start(priors.noise, 1e-2), start(priors.shape, 1.0)]
    return torch.tensor(row, dtype=torch.float64).expand(len(kernels), d + 3).clone()


def fit(
    kernels: tuple[Kernel, ...], likelihood: Likelihood, start: Tensor, *, max_iterations: int = 50, nats: float = NATS
) -> Hyperparameters:
    """Maximize the log posterior of every expert from ``start`` (S·M × (d+3): S starts for each expert).

    Rows s·M + m start expert m for the s-th time; the best end of each expert wins.
    """
    count = len(kernels)
    row_kernels = kernels * (len(start) // count)
    lower, upper = _bounds(likelihood)
    at_once = max(1, LARGEST_BATCH // len(likelihood.y) ** 2)
    level = np.full(len(start), np.nan)  # where each search began: it stops by what a step gains relative to the value

    def negative(theta: NDArray[np.float64], rows: list[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        used = tuple(row_kernels[i] for i in rows)
        batches = [slice(i, i + at_once) for i in range(0, len(rows), at_once)]
        parts = [likelihood.value_and_gradient(torch.from_numpy(theta[some]), used[some]) for some in batches]
        value, gradient = (torch.cat(list(piece)).numpy() for piece in zip(*parts, strict=True))
        level[rows] = np.where(np.isnan(level[rows]), value, level[rows])
        return UNIT * (level[rows] - value), -UNIT * gradient

    theta, cost = minimize_batch(
        negative, start.numpy(), lower, upper, max_iterations=max_iterations, ftol=UNIT * nats, gtol=1e-5
    )
    value = level - cost / UNIT
    winner = value.reshape(-1, count).argmax(axis=0) * count + np.arange(count)
    return unpack(torch.from_numpy(theta[winner]))


def _bounds(likelihood: Likelihood) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    d = likelihood.x.shape[1]
    outputscale = (1.0, 1.0) if likelihood.priors.outputscale is None else OUTPUTSCALE_BOUNDS
    pairs = [LENGTHSCALE_BOUNDS] * d + [outputscale, NOISE_BOUNDS, SHAPE_BOUNDS]
    lower, upper = np.log(np.array(pairs)).T
    return lower, upper
