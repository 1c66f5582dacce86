"""MAP hyper-parameters for all experts at once: analytic gradients and curvature, bounded Newton steps, warm start.

The parameters of one expert are θ = (log ℓ_1..d, log s_f, log noise, log α). The constant mean is profiled out
in closed form (its prior is Gaussian), so by the envelope theorem it does not appear in the gradient:

    ∂ log p(y) / ∂θ = ½ tr((ααᵀ − K⁻¹) ∂K/∂θ)

The curvature is the *average information* of mixed models (Gilmour, Thompson and Cullis, 1995), the mean of the
observed and the expected one where second derivatives of K are left out. It costs products with vectors only:

    −∂² log p(y) / ∂θ_i ∂θ_j ≈ ½ (∂K/∂θ_i α)ᵀ K⁻¹ (∂K/∂θ_j α)

Rows of earlier sources (``earlier``) add two columns for each source behind those. With D_s the rows of a source and
K_f = K − noise, ∂K/∂log a_s = D_s K_f + K_f D_s, which needs K_f α = y − mean − noise α and K⁻¹ K_f = I − K⁻¹ noise.

When there are very many observations, hyper-parameters are fitted to some (``representative``): a fit costs O(n³) each
time the likelihood is looked at, conditioning on the data once. A few hundred observations say
nearly all there is to say about a handful of hyper-parameters, if they are chosen well: some spread out, which tell the
lengthscales, and some as they came, near-duplicates among them, which tell the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.surrogate.earlier import (
    MEAN_SD,
    RELATED,
    RELATED_SD,
    TRANSFORMED_BOUNDS,
    between_sources,
    row_noise,
)
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
    source: Tensor | None = None  # n, 0 for f itself; its rows come last, and have the replicates
    correlation: Tensor | None = None  # P: by which f of a pair is correlated besides, as it drifts
    noise_ratio: Tensor | None = None  # n: by how much the noise of a row is larger than ``noise_variance``

    @property
    def observations(self) -> int:
        return len(self.y) if self.replicates is None else len(self.replicates.rows)

    @property
    def sources(self) -> int:
        """S: of earlier sources."""
        return 0 if self.source is None else int(self.source.max())

    @property
    def parameters(self) -> int:
        """Columns of θ."""
        return self.x.shape[1] + 3 + 2 * self.sources

    @property
    def count(self) -> Tensor | None:
        """Observations in each row (n), of the noise that is meant; None where it is one."""
        if self.noise_ratio is not None:
            return (1.0 if self.replicates is None else self.replicates.count) / self.noise_ratio
        if self.replicates is None or self.source is None:
            return None if self.replicates is None else self.replicates.count
        return torch.cat([self.y.new_ones(len(self.y) - len(self.replicates.count)), self.replicates.count])

    @cached_property
    def _pair_sources(self) -> Tensor:
        """Of every pair, where the covariance of its sources stands in a matrix written out (P)."""
        assert self.source is not None
        first, second = self._pairs
        return self.source[first] * (self.sources + 1) + self.source[second]

    @cached_property
    def _members(self) -> Tensor:
        """Which rows are of f, of the first source, …: (S+1) × n of zeros and ones."""
        assert self.source is not None
        return torch.nn.functional.one_hot(self.source, self.sources + 1).mT.to(self.y.dtype)

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
        hyper = unpack(theta, self.sources)
        inverse_square = hyper.lengthscale.square().reciprocal()
        sqdist = inverse_square @ self._differences  # M × P
        signal, slope = gram_and_slope(kernels, sqdist, hyper.outputscale, hyper.shape)
        if self.correlation is not None:
            signal, slope = signal.mul_(self.correlation), slope.mul_(self.correlation)
        own_noise, own_variance, unit = hyper.noise_variance, hyper.outputscale[:, None], signal
        if self.source is not None:
            between, unit = between_sources(hyper), signal.clone()
            factor = between.flatten(1)[:, self._pair_sources]
            signal *= factor
            slope *= factor
            own_noise = row_noise(hyper, self.source)
            own_variance = own_variance * between.diagonal(dim1=-2, dim2=-1)[:, self.source]
        covariance = self._lower(signal)  # the factorization reads the lower triangle alone
        noise_variance = noise_per_expert(own_noise, n, self.known_noise, self.count)
        covariance.diagonal(dim1=-2, dim2=-1).copy_(own_variance + noise_variance)
        chol = safe_cholesky(covariance)
        inverse = torch.cholesky_inverse(chol)  # symmetric, and LAPACK leaves it column by column: .mT is contiguous
        if self.source is None:
            mean, alpha = self._mean_and_alpha(inverse)
            residual = self.y - mean[:, None]
            of_mean = 0.5 * (mean / self.priors.mean_sd).square()
        else:
            means, alpha = self._means_and_alpha(inverse)
            residual = self.y - means @ self._members
            of_mean = 0.5 * (means / self._mean_sds).square().sum(-1)
        value = (
            -0.5 * torch.linalg.vecdot(residual, alpha)
            - chol.diagonal(dim1=-2, dim2=-1).log().sum(-1)
            - n * HALF_LOG_2PI
            - of_mean
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
            if self.source is not None:  # of f alone: half of D K_f α + K_f D α
                own = self._members[0]
                by_scale = 0.5 * (own * by_scale + self._times(signal, own_variance, own * alpha))
                by_noise = own * by_noise
            by_shape = torch.zeros_like(alpha)
            for m, pairs in enumerate(shape_slopes):
                if pairs is not None:
                    by_shape[m] = hyper.shape[m] * (self._symmetric(pairs[None])[0] @ alpha[m])
            columns = torch.cat([by_length, torch.stack([by_scale, by_noise, by_shape], dim=-1)], dim=-1)
            if self.source is not None:
                related = [self._symmetric(part) @ alpha.unsqueeze(-1) for part in self._by_related(hyper, unit)]
                noises = [(row * free_noise * alpha).unsqueeze(-1) for row in self._members[1:]]
                columns = torch.cat([columns, *related, *noises], dim=-1)
            curvature = 0.5 * columns.mT @ (inverse @ columns)
        # ∂ log p / ∂K = ½ (ααᵀ − K⁻¹): twice that for a pair, which stands in K twice
        outer = torch.addcmul(inverse.mT, alpha.unsqueeze(-1), alpha.unsqueeze(-2), value=-1.0)
        pairs = self._below_diagonal(outer).neg_()
        own = 0.5 * (alpha.square() - inverse.diagonal(dim1=-2, dim2=-1))
        gradient = torch.zeros_like(theta)
        gradient[:, :d] = -2.0 * inverse_square * (slope.mul_(pairs) @ self._differences.T)
        if self.source is None:
            gradient[:, d] = torch.linalg.vecdot(pairs, signal) + hyper.outputscale * own.sum(-1)
            gradient[:, d + 1] = torch.linalg.vecdot(free_noise, own)
        else:
            signals = alpha * (residual - noise_variance * alpha) - 1.0
            signals += noise_variance * inverse.diagonal(dim1=-2, dim2=-1)
            gradient[:, d] = 0.5 * signals @ self._members[0]
            by_related = [torch.linalg.vecdot(pairs, part) for part in self._by_related(hyper, unit)]
            by_own_noise = (free_noise * own) @ self._members.mT
            gradient[:, d + 1] = by_own_noise[:, 0]
            gradient[:, d + 3 :] = torch.cat([torch.stack(by_related, dim=-1), by_own_noise[:, 1:]], dim=-1)
        for m, by_pair in enumerate(shape_slopes):
            if by_pair is not None:
                gradient[m, d + 2] = hyper.shape[m] * (pairs[m] @ by_pair)
        if self.replicates is not None:
            scatter, scatter_slope, scatter_curvature = self.replicates.log_density(
                hyper.noise_variance, self.noise_ratio
            )
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

    def _times(self, pairs: Tensor, diagonal: Tensor, vector: Tensor) -> Tensor:
        """The symmetric matrices with these pairs and diagonals (M × n) times vectors (M × n)."""
        product: Tensor = (self._symmetric(pairs) @ vector.unsqueeze(-1)).squeeze(-1) + diagonal * vector
        return product

    def _by_related(self, hyper: Hyperparameters, unit: Tensor) -> list[Tensor]:
        """∂K/∂u_s of every pair, for each source (M × P); ``unit`` is s_f k."""
        assert hyper.correlation is not None
        related = torch.cat([torch.ones_like(hyper.outputscale)[:, None], hyper.correlation], dim=-1)
        amplitude = torch.cat(
            [torch.ones_like(related[:, :1]), hyper.outputscale.rsqrt()[:, None].expand(-1, self.sources)], dim=-1
        )
        weight = related * amplitude
        found = []
        for s in range(1, self.sources + 1):
            matrix = torch.zeros(len(unit), self.sources + 1, self.sources + 1, dtype=unit.dtype)
            slope = ((1.0 - related[:, s].square()) * amplitude[:, s])[:, None] * weight
            slope[:, s] = 0.0
            matrix[:, s], matrix[:, :, s] = slope, slope
            found.append(unit * matrix.flatten(1)[:, self._pair_sources])
        return found

    @cached_property
    def _mean_sds(self) -> Tensor:
        """Of the constant means of f and of each source (S+1)."""
        return self.y.new_tensor([MEAN_SD] + [self.priors.mean_sd] * self.sources)

    def _means_and_alpha(self, inverse: Tensor) -> tuple[Tensor, Tensor]:
        """``_mean_and_alpha`` of f and of every source: M × (S+1), M × n."""
        columns = torch.cat([self._members, self.y[None]]).mT
        solved = inverse @ columns
        means = profiled_means(self._members, solved, self._mean_sds)
        return means, solved[..., -1] - (solved[..., :-1] @ means.unsqueeze(-1)).squeeze(-1)

    def _mean_and_alpha(self, inverse: Tensor) -> tuple[Tensor, Tensor]:
        """The profiled mean (M) and K⁻¹(y − mean) (M × n), from K⁻¹."""
        ones, outcomes = (inverse @ torch.stack([torch.ones_like(self.y), self.y], dim=-1)).unbind(-1)
        mean = outcomes.sum(-1) / (ones.sum(-1) + self.priors.mean_sd**-2)
        return mean, outcomes - mean[:, None] * ones

    @cached_property
    def _prior_curvature(self) -> Tensor:
        """Of the log-normal densities as functions of θ, which is the same everywhere."""
        priors = self.priors
        columns = [priors.lengthscale] * self.x.shape[1] + [priors.outputscale, priors.noise_variance, priors.shape]
        columns += [LogNormal(RELATED, RELATED_SD)] * self.sources + [priors.noise_variance] * self.sources
        return torch.tensor([RIDGE if prior is None else prior.scale**-2 for prior in columns], dtype=torch.float64)

    def _log_prior(self, theta: Tensor, kernels: tuple[Kernel, ...]) -> tuple[Tensor, Tensor]:
        d = self.x.shape[1]
        learns_shape = torch.tensor([kernel.has_shape for kernel in kernels])
        columns = (
            (slice(0, d), self.priors.lengthscale, None),
            (slice(d, d + 1), self.priors.outputscale, None),
            (slice(d + 1, d + 2), self.priors.noise_variance, None),
            (slice(d + 2, d + 3), self.priors.shape, learns_shape),
            (slice(d + 3 + self.sources, None), self.priors.noise_variance, None),
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
        related = slice(d + 3, d + 3 + self.sources)
        away = (theta[:, related] - RELATED) / RELATED_SD
        value -= (0.5 * away.square() + math.log(RELATED_SD) + HALF_LOG_2PI).sum(-1)
        gradient[:, related] -= away / RELATED_SD
        return value, gradient


def profiled_means(members: Tensor, solved: Tensor, sds: Tensor) -> Tensor:
    """The constant means (M × (S+1)) of rows by their ``members`` ((S+1) × n), where ``solved`` (M × n × (S+2)) is K⁻¹
    of these and of the outcomes, and each is normal with one of ``sds``."""
    projected = members @ solved
    precision = projected[..., :-1] + torch.diag(sds**-2)
    means: Tensor = torch.linalg.solve(precision, projected[..., -1:]).squeeze(-1)
    return means


def profile_means(chol: Tensor, y: Tensor, source: Tensor, mean_sd: float) -> Tensor:
    """``profile_mean`` of f and of every earlier source: M × (S+1)."""
    count = int(source.max()) + 1
    members = torch.nn.functional.one_hot(source, count).mT.to(y.dtype)
    columns = torch.cat([members, y[None]]).mT.expand(*chol.shape[:-1], count + 1)
    sds = y.new_tensor([MEAN_SD] + [mean_sd] * (count - 1))
    return profiled_means(members, torch.cholesky_solve(columns, chol), sds)


def profile_mean(chol: Tensor, y: Tensor, mean_sd: float) -> Tensor:
    """The constant mean (M) that maximizes the posterior given the covariance factors ``chol`` (M × n × n)."""
    columns = torch.stack([torch.ones_like(y), y], dim=-1).expand(*chol.shape[:-1], 2)
    half = torch.linalg.solve_triangular(chol, columns, upper=False)
    ones, outcomes = half.unbind(-1)
    precision = ones.square().sum(-1) + mean_sd**-2
    mean: Tensor = torch.sum(ones * outcomes, -1) / precision
    return mean


def unpack(theta: Tensor, sources: int = 0) -> Hyperparameters:
    """θ (M × (d+3+2S)) as named hyper-parameters; the means, which θ does not hold, are left at zero."""
    d = theta.shape[1] - 3 - 2 * sources
    values = theta[:, : d + 3].exp()
    lengthscale, outputscale, noise_variance, shape = values[:, :-3], values[:, -3], values[:, -2], values[:, -1]
    hyper = Hyperparameters(lengthscale, outputscale, noise_variance, torch.zeros_like(noise_variance), shape)
    if not sources:
        return hyper
    related, noises = theta[:, d + 3 :].chunk(2, dim=-1)
    return replace(hyper, correlation=related.tanh(), source_noise=noises.exp(), source_mean=torch.zeros_like(noises))


def pack(hyper: Hyperparameters) -> Tensor:
    """The inverse of ``unpack``, without the mean."""
    rest = torch.stack([hyper.outputscale, hyper.noise_variance, hyper.shape], dim=-1)
    theta = torch.cat([hyper.lengthscale, rest], dim=-1).log()
    if hyper.correlation is None or hyper.source_noise is None:
        return theta
    return torch.cat([theta, hyper.correlation.atanh(), hyper.source_noise.log()], dim=-1)


def default_theta(
    kernels: tuple[Kernel, ...], d: int, priors: Priors, sources: int = 0, related: float = RELATED
) -> Tensor:
    """Where a cold fit starts: the priors' modes (M × (d+3+2S)), earlier sources being ``related``."""

    def start(prior: LogNormal | None, otherwise: float) -> float:
        return math.log(otherwise if prior is None else prior.mode)

    row = [start(priors.lengthscale, 0.5)] * d
    row += [start(priors.outputscale, 1.0), start(priors.noise_variance, 1e-2), start(priors.shape, 1.0)]
    row += [related] * sources + [start(priors.noise_variance, 1e-2)] * sources
    return torch.tensor(row, dtype=torch.float64).expand(len(kernels), len(row)).clone()


def noisy_theta(start: Tensor, sources: int = 0) -> Tensor:
    """Where a second search begins: ``start`` (M × (d+3+2S)) with much noise and smooth functions."""
    noisy, d = start.clone(), start.shape[1] - 3 - 2 * sources
    noisy[:, :d] = noisy[:, :d].clamp_min(math.log(SMOOTH))
    noisy[:, d + 1] = math.log(NOISY)
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
    return unpack(torch.from_numpy(theta[winner]), likelihood.sources)


def fit_experts(kernels: tuple[Kernel, ...], likelihood: Likelihood, start: Tensor) -> Hyperparameters:
    """``fit``; and where experts disagree about which inputs matter, each goes on from the others' ends too.

    A posterior may have several hills (f ripples along this input or along that one, levels count by themselves or not
    at all), and a search ends on the one that it starts at. Experts on different hills say so, and then the evidence
    chooses. Of many data it is asked when they begin to disagree, and again when there are further starts.
    """
    found = fit(kernels, likelihood, start)
    asked_before = len(start) == len(kernels) and _disagree(unpack(start, likelihood.sources).lengthscale)
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
    noisy = pack(fit(kernels, likelihood, noisy_theta(default, likelihood.sources)))
    theta = pack(found)
    gain = likelihood.value_and_gradient(noisy, kernels)[0] - likelihood.value_and_gradient(theta, kernels)[0]
    if not bool((gain > WORTHWHILE).any()):
        return found
    return unpack(torch.where((gain > WORTHWHILE)[:, None], noisy, theta), likelihood.sources)


def _disagree(lengthscale: Tensor) -> bool:
    """Whether an input's lengthscale (M × d), beside the expert's others, differs much between experts."""
    relative = lengthscale.log() - lengthscale.log().mean(1, keepdim=True)
    return bool((relative.amax(0) - relative.amin(0) > DISAGREEMENT).any())


def bounds_of(likelihood: Likelihood) -> tuple[Tensor, Tensor]:
    """Lower and upper ends of θ (d+3+2S each)."""
    d = likelihood.x.shape[1]
    outputscale = (1.0, 1.0) if likelihood.priors.outputscale is None else OUTPUTSCALE_BOUNDS
    pairs = [LENGTHSCALE_BOUNDS] * d + [outputscale, NOISE_BOUNDS, SHAPE_BOUNDS]
    ends = torch.tensor(pairs, dtype=torch.float64).log()
    if likelihood.sources:
        noise = torch.tensor([NOISE_BOUNDS], dtype=torch.float64).log()
        related = torch.tensor([TRANSFORMED_BOUNDS], dtype=torch.float64)
        ends = torch.cat([ends, *[related] * likelihood.sources, *[noise] * likelihood.sources])
    lower, upper = ends.unbind(-1)
    return lower, upper
