"""MAP hyper-parameters for all experts at once: analytic gradients and curvature, bounded Newton steps, warm start.

The parameters of one expert are θ = (log ℓ_1..d, log s_f, log noise, log α). The constant mean is profiled out
in closed form (its prior is Gaussian), so by the envelope theorem it does not appear in the gradient:

    ∂ log p(y) / ∂θ = ½ tr((ααᵀ − K⁻¹) ∂K/∂θ)

The curvature is the *average information* of mixed models (Gilmour, Thompson and Cullis, 1995), the mean of the
observed and the expected one where second derivatives of K are left out. It costs products with vectors only:

    −∂² log p(y) / ∂θ_i ∂θ_j ≈ ½ (∂K/∂θ_i α)ᵀ K⁻¹ (∂K/∂θ_j α)

When there are very many observations, hyper-parameters are fitted to some (``representative``): a fit costs O(n³) each
time the likelihood is looked at, conditioning on the data once. A few hundred observations say
nearly all there is to say about a handful of hyper-parameters, if they are chosen well: some spread out, which tell the
lengthscales, and some as they came, near-duplicates among them, which tell the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.surrogate.exact_gp import noise_per_expert, safe_cholesky
from edrbo.surrogate.kernels import Hyperparameters, Kernel, LogNormal, Priors, gram_and_slope
from edrbo.surrogate.quasi_newton import minimize_newton
from edrbo.surrogate.replicates import Replicates

MOST_FITTED = 500  # what this costs in predictive accuracy is in research/speed.md


def representative(X: Tensor, size: int = MOST_FITTED) -> Tensor:
    """The numbers of ``size`` of the rows of ``X`` (n × d), in order; all of them if they are no more.

    Half are each as far as can be from those before (the unit cube's own distance), the first row being the first; the
    others stand at even steps among the rest. A function of the data in their order alone.
    """
    n = len(X)
    if n <= size:
        return torch.arange(n)
    points = X.numpy()
    spread = np.zeros(size // 2, dtype=np.int64)
    away = np.square(points - points[0]).sum(axis=1)
    for k in range(1, len(spread)):
        # ties by the first, and distances to nine digits: which row is taken must not hang on last bits
        spread[k] = int(np.round(away, 9).argmax())
        away = np.minimum(away, np.square(points - points[spread[k]]).sum(axis=1))
    others = np.setdiff1d(np.arange(n), spread)
    even = others[np.linspace(0, len(others) - 1, size - len(spread)).astype(np.int64)]
    return torch.from_numpy(np.union1d(spread, even))


Array = NDArray[np.float64]

LENGTHSCALE_BOUNDS = (5e-3, 50.0)
OUTPUTSCALE_BOUNDS = (1e-2, 1e2)
NOISE_BOUNDS = (1e-6, 2.0)
SHAPE_BOUNDS = (5e-2, 50.0)
NATS = 0.001  # a search ends when a step is predicted to gain less of the log posterior
DISAGREEMENT = 0.7  # of logs of lengthscales, which are seldom that far apart on one hill
CHEAP = 100  # observations, up to which a search costs little
NOISY, SMOOTH = 0.3, 1.0  # variance of the noise and lengthscales where a second search begins
WORTHWHILE = 0.05  # nats by which the second search must end higher
TELLING = 16  # observations from which on it is made; of fewer, to believe in a signal is the better bet
RIDGE = 1e-2  # curvature in every direction, where neither data nor prior have one
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
    replicates: Replicates | None = None  # the observations behind x and y, if some share a row

    @property
    def observations(self) -> int:
        return len(self.y) if self.replicates is None else len(self.replicates.rows)

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
        value, gradient, _ = self.evaluate(theta, kernels)
        return value, gradient

    def evaluate(
        self, theta: Tensor, kernels: tuple[Kernel, ...], *, curved: bool = False
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """``value_and_gradient``, and if ``curved`` the average information with that of the priors: positive definite,
        M × (d+3) × (d+3)."""
        n, d = self.x.shape
        hyper = unpack(theta)
        inverse_square = hyper.lengthscale.square().reciprocal()
        sqdist = inverse_square @ self._differences  # M × P
        signal, slope = gram_and_slope(kernels, sqdist, hyper.outputscale, hyper.shape)
        covariance = self._lower(signal)  # the factorization reads the lower triangle alone
        count = None if self.replicates is None else self.replicates.count
        noise_variance = noise_per_expert(hyper.noise_variance, n, self.known_noise, count)
        covariance.diagonal(dim1=-2, dim2=-1).copy_(hyper.outputscale[:, None] + noise_variance)
        chol = safe_cholesky(covariance)
        inverse = torch.cholesky_inverse(chol)  # symmetric, and LAPACK leaves it column by column: .mT is contiguous
        mean, alpha = self._mean_and_alpha(inverse)
        residual = self.y - mean[:, None]
        value = (
            -0.5 * torch.linalg.vecdot(residual, alpha)
            - chol.diagonal(dim1=-2, dim2=-1).log().sum(-1)
            - n * HALF_LOG_2PI
            - 0.5 * (mean / self.priors.mean_sd).square()
        )
        shape_slopes = [
            kernel.shape_slope(sqdist[m], hyper.shape[m], signal[m]) if kernel.has_shape else None
            for m, kernel in enumerate(kernels)
        ]
        free_noise = (
            noise_variance if self.known_noise is None else torch.where(self.known_noise.isnan(), noise_variance, 0.0)
        )
        curvature = None
        if curved:
            by_length = -2.0 * inverse_square.unsqueeze(-2) * self._times_differences(slope, alpha)
            by_noise = free_noise * alpha
            by_scale = residual - noise_variance * alpha  # K α is the residual
            by_shape = torch.zeros_like(alpha)
            for m, pairs in enumerate(shape_slopes):
                if pairs is not None:
                    by_shape[m] = hyper.shape[m] * (self._symmetric(pairs[None])[0] @ alpha[m])
            columns = torch.cat([by_length, torch.stack([by_scale, by_noise, by_shape], dim=-1)], dim=-1)
            curvature = 0.5 * columns.mT @ (inverse @ columns)
        # ∂ log p / ∂K = ½ (ααᵀ − K⁻¹): twice that for a pair, which stands in K twice
        outer = torch.addcmul(inverse.mT, alpha.unsqueeze(-1), alpha.unsqueeze(-2), value=-1.0)
        pairs = self._below_diagonal(outer).neg_()
        own = 0.5 * (alpha.square() - inverse.diagonal(dim1=-2, dim2=-1))
        gradient = torch.zeros_like(theta)
        gradient[:, :d] = -2.0 * inverse_square * (slope.mul_(pairs) @ self._differences.T)
        gradient[:, d] = torch.linalg.vecdot(pairs, signal) + hyper.outputscale * own.sum(-1)
        gradient[:, d + 1] = torch.linalg.vecdot(free_noise, own)
        for m, by_pair in enumerate(shape_slopes):
            if by_pair is not None:
                gradient[m, d + 2] = hyper.shape[m] * (pairs[m] @ by_pair)
        if self.replicates is not None:
            scatter, scatter_slope, scatter_curvature = self.replicates.log_density(hyper.noise_variance)
            value += scatter
            gradient[:, d + 1] += scatter_slope
            if curvature is not None:
                curvature[:, d + 1, d + 1] += scatter_curvature
        prior_value, prior_gradient = self._log_prior(theta, kernels)
        if curvature is not None:
            curvature.diagonal(dim1=-2, dim2=-1).add_(self._prior_curvature)
        return value + prior_value, gradient + prior_gradient, curvature

    def _lower(self, pairs: Tensor) -> Tensor:
        """Matrices (M × n × n) with ``pairs`` (M × P) below the diagonal."""
        n = len(self.y)
        return pairs.new_zeros(len(pairs), n * n).index_copy_(1, self._flat, pairs).view(-1, n, n)

    def _symmetric(self, pairs: Tensor) -> Tensor:
        lower = self._lower(pairs)
        return lower + lower.mT

    def _times_differences(self, pairs: Tensor, vector: Tensor) -> Tensor:
        """(S ∘ D_k) v for every input k (M × n × d), where S is symmetric with ``pairs`` below a diagonal of zeros, and
        D_k holds the squared differences (x_i − x_j)² = x_i² − 2 x_i x_j + x_j²: one product with S for all."""
        x, v = self.x - 0.5, vector.unsqueeze(-1)
        d = x.shape[1]
        products = self._symmetric(pairs) @ torch.cat([v, x * v, x.square() * v], dim=-1)
        none, once, twice = products[..., :1], products[..., 1 : d + 1], products[..., d + 1 :]
        return x.square() * none - 2.0 * x * once + twice

    def _mean_and_alpha(self, inverse: Tensor) -> tuple[Tensor, Tensor]:
        """The profiled mean (M) and K⁻¹(y − mean) (M × n), from K⁻¹."""
        ones, outcomes = (inverse @ torch.stack([torch.ones_like(self.y), self.y], dim=-1)).unbind(-1)
        mean = outcomes.sum(-1) / (ones.sum(-1) + self.priors.mean_sd**-2)
        return mean, outcomes - mean[:, None] * ones

    @cached_property
    def _prior_curvature(self) -> Tensor:
        """Of the log-normal densities as functions of θ (d+3), which is the same everywhere."""
        priors = self.priors
        columns = [priors.lengthscale] * self.x.shape[1] + [priors.outputscale, priors.noise_variance, priors.shape]
        return torch.tensor([RIDGE if prior is None else prior.scale**-2 for prior in columns], dtype=torch.float64)

    def _log_prior(self, theta: Tensor, kernels: tuple[Kernel, ...]) -> tuple[Tensor, Tensor]:
        d = self.x.shape[1]
        learns_shape = torch.tensor([kernel.has_shape for kernel in kernels])
        columns = (
            (slice(0, d), self.priors.lengthscale, None),
            (slice(d, d + 1), self.priors.outputscale, None),
            (slice(d + 1, d + 2), self.priors.noise_variance, None),
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
    lengthscale, outputscale, noise_variance, shape = values[:, :-3], values[:, -3], values[:, -2], values[:, -1]
    return Hyperparameters(lengthscale, outputscale, noise_variance, torch.zeros_like(noise_variance), shape)


def pack(hyper: Hyperparameters) -> Tensor:
    """The inverse of ``unpack``, without the mean."""
    rest = torch.stack([hyper.outputscale, hyper.noise_variance, hyper.shape], dim=-1)
    return torch.cat([hyper.lengthscale, rest], dim=-1).log()


def default_theta(kernels: tuple[Kernel, ...], d: int, priors: Priors) -> Tensor:
    """Where a cold fit starts: the priors' modes (M × (d+3))."""

    def start(prior: LogNormal | None, otherwise: float) -> float:
        return math.log(otherwise if prior is None else prior.mode)

    row = [start(priors.lengthscale, 0.5)] * d
    row += [start(priors.outputscale, 1.0), start(priors.noise_variance, 1e-2), start(priors.shape, 1.0)]
    return torch.tensor(row, dtype=torch.float64).expand(len(kernels), d + 3).clone()


def noisy_theta(start: Tensor) -> Tensor:
    """Where a second search begins: ``start`` (M × (d+3)) with much noise and smooth functions."""
    noisy = start.clone()
    noisy[:, :-3] = noisy[:, :-3].clamp_min(math.log(SMOOTH))
    noisy[:, -2] = math.log(NOISY)
    return noisy


def fit(
    kernels: tuple[Kernel, ...], likelihood: Likelihood, start: Tensor, *, max_iterations: int = 50, nats: float = NATS
) -> Hyperparameters:
    """Maximize the log posterior of every expert from ``start`` (S·M × (d+3): S starts for each expert).

    Rows s·M + m start expert m for the s-th time; the best end of each expert wins.
    """
    count = len(kernels)
    row_kernels = kernels * (len(start) // count)
    lower, upper = (ends.numpy() for ends in bounds_of(likelihood))
    at_once = max(1, LARGEST_BATCH // len(likelihood.y) ** 2)

    def negative(theta: Array, rows: list[int], curved: bool) -> tuple[Array, Array, Array | None]:
        used = tuple(row_kernels[i] for i in rows)
        batches = [slice(i, i + at_once) for i in range(0, len(rows), at_once)]
        parts = [likelihood.evaluate(torch.from_numpy(theta[some]), used[some], curved=curved) for some in batches]
        value, gradient = torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])
        curvature = torch.cat([part[2] for part in parts if part[2] is not None]).numpy() if curved else None
        return -value.numpy(), -gradient.numpy(), curvature

    theta, cost = minimize_newton(negative, start.numpy(), lower, upper, max_evaluations=max_iterations, tolerance=nats)
    winner = cost.reshape(-1, count).argmin(axis=0) * count + np.arange(count)
    return unpack(torch.from_numpy(theta[winner]))


def fit_experts(kernels: tuple[Kernel, ...], likelihood: Likelihood, start: Tensor) -> Hyperparameters:
    """``fit``; and where experts disagree about which inputs matter, each goes on from the others' ends too.

    A posterior may have several hills (f ripples along this input or along that one, levels count by themselves or not
    at all), and a search ends on the one that it starts at. Experts on different hills say so, and then the evidence
    chooses. Of many data it is asked when they begin to disagree, and again when there are further starts.
    """
    found = fit(kernels, likelihood, start)
    asked_before = len(start) == len(kernels) and _disagree(unpack(start).lengthscale)
    if not _disagree(found.lengthscale) or (asked_before and likelihood.observations > CHEAP):
        return found
    ends = pack(found)
    return fit(kernels, likelihood, torch.cat([ends.roll(k, 0) for k in range(len(kernels))]))


def fit_cold(kernels: tuple[Kernel, ...], likelihood: Likelihood, start: Tensor, default: Tensor) -> Hyperparameters:
    """``fit_experts``; and an expert for which it is all signal, or all noise, where a search from the noisy side of
    ``default`` ends higher, goes there. The hill without noise holds a search that begins on it."""
    found = fit_experts(kernels, likelihood, start)
    if likelihood.observations < TELLING:
        return found
    noisy = pack(fit(kernels, likelihood, noisy_theta(default)))
    theta = pack(found)
    gain = likelihood.value_and_gradient(noisy, kernels)[0] - likelihood.value_and_gradient(theta, kernels)[0]
    return unpack(torch.where((gain > WORTHWHILE)[:, None], noisy, theta)) if bool((gain > WORTHWHILE).any()) else found


def _disagree(lengthscale: Tensor) -> bool:
    """Whether an input's lengthscale (M × d), beside the expert's others, differs much between experts."""
    relative = lengthscale.log() - lengthscale.log().mean(1, keepdim=True)
    return bool((relative.amax(0) - relative.amin(0) > DISAGREEMENT).any())


def bounds_of(likelihood: Likelihood) -> tuple[Tensor, Tensor]:
    """Lower and upper ends of θ (d+3 each)."""
    d = likelihood.x.shape[1]
    outputscale = (1.0, 1.0) if likelihood.priors.outputscale is None else OUTPUTSCALE_BOUNDS
    pairs = [LENGTHSCALE_BOUNDS] * d + [outputscale, NOISE_BOUNDS, SHAPE_BOUNDS]
    lower, upper = torch.tensor(pairs, dtype=torch.float64).log().unbind(-1)
    return lower, upper
