"""Gaussian processes on very many observations: what n of them say, in k inducing points.

The posterior is that of FITC (Snelson and Ghahramani, 2006): at the inducing points Z, rows of the data, f has its
prior; the data see f through Z, and what a row's own value has beyond that, the residual, counts as noise of its own,

    Q = K_nZ K_Z⁻¹ K_Zn,   Λ = noise + diag(K − Q),   y ~ N(mean, Q + Λ).

With K_Z = LLᵀ and V = L⁻¹K_Zn all that the data say is in G = VΛ⁻¹Vᵀ and VΛ⁻¹(y, 1). These are sums over the data, so a
further row costs O(k²), whatever n. And they are what *pseudo-observations* of f at Z say, with noise of covariance

    R = L G⁻¹ Lᵀ,   C = K_Z + R,   α = L⁻ᵀ (I + G)⁻¹ VΛ⁻¹ (y − mean),

so that C and α take the places of K + noise and (K + noise)⁻¹(y − mean) in ``ExactGP``: everything that an exact model
of k observations can do, this one can, as fast. R is never more than the noise at Z: each of these rows was observed.

Inducing points are found by randomly pivoted Cholesky (Chen, Epperly, Tropp and Webber, 2023): the next one is a row
drawn with its residual as probability. That keeps the sum of all residuals small, and so favors places where there are
many data, as around a design that is good; the largest residual first (greedy) would spread points over the whole cube.
The mean ``residual`` is the error of the approximation, and known.

    Z        k × d         inducing points, rows of the data
    prior    M × k × k     L
    data     n × d         the inputs of all that was observed
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from edrbo.streams import stream
from edrbo.surrogate.exact_gp import ExactGP, safe_cholesky
from edrbo.surrogate.kernels import Hyperparameters, Kernel, gram, scaled_sqdist

MIN_ROWS, MOST_EXACT = 600, 2000  # rows from which on a model may be sparse, and those from which on it always is
MOST_POINTS = 384  # inducing points
NEGLIGIBLE, TOLERABLE = 0.05, 0.5  # what is left out, in units of ``least_noise``: enough points, and few enough
SIGNAL_SHARE = 1e-3  # of the variance of f: less noise than that asks for no more points
CANDIDATES = 2048  # rows among which inducing points are looked for, at even steps
CHUNK = 1024  # rows that are looked at together
STEP = 128  # rows that are predicted together, one step ahead
FEWEST_ROWS = 64  # modelled rows that are kept as they are; of more the sums are taken
JITTER = 1e-9  # of the prior variance at inducing points
PROBES = 128  # rows by which the roughest expert is found


def least_noise(hyper: Hyperparameters) -> Tensor:
    """What residuals of each expert (M) are measured by: its noise, and where f has next to none a little of f."""
    return torch.maximum(hyper.noise_variance, SIGNAL_SHARE * hyper.outputscale)


def find_inducing_points(
    kernels: tuple[Kernel, ...], hyper: Hyperparameters, x: Tensor, most: int = MOST_POINTS
) -> tuple[Tensor, float]:
    """The numbers of at most ``most`` rows of ``x`` (n × d), in order, and what they leave out of the roughest expert,
    in units of its ``least_noise``.

    A function of the data in their order alone: the draws have a stream of their own.
    """
    rows = np.unique(np.linspace(0, len(x) - 1, min(len(x), CANDIDATES)).astype(np.int64))
    candidates = x[torch.from_numpy(rows)]
    m = _roughest(kernels, hyper, candidates)
    kernel, one, scale = kernels[m : m + 1], hyper.expert(m), float(hyper.outputscale[m])
    enough = NEGLIGIBLE * float(least_noise(hyper)[m])
    left = candidates.new_full((len(rows),), scale)
    factor = candidates.new_empty(most, len(rows))
    chosen: list[int] = []
    random = stream(0, "inducing points", len(x)).random(most)
    while len(chosen) < min(most, len(rows)) and float(left.mean()) > enough:
        below, k = left.cumsum(0), len(chosen)
        pivot = min(int(torch.searchsorted(below, random[k] * below[-1])), len(rows) - 1)
        sqdist = scaled_sqdist(candidates[pivot : pivot + 1], candidates, one.lengthscale)
        row = gram(kernel, sqdist, one.outputscale, one.shape)[0, 0]
        found = (row - factor[:k, pivot] @ factor[:k]) / left[pivot].sqrt()
        factor[k] = found
        left = (left - found.square()).clamp_min_(0.0)
        left[pivot] = 0.0
        # the same place again: its residual is rounding error
        left[left < JITTER * scale] = 0.0
        chosen.append(pivot)
    numbers = torch.from_numpy(np.sort(rows[np.array(chosen, dtype=np.int64)]))
    return numbers, float(left.mean()) / float(least_noise(hyper)[m])


def _roughest(kernels: tuple[Kernel, ...], hyper: Hyperparameters, x: Tensor) -> int:
    """The expert whose f at ``x`` (n × d) is known least by a few rows, in units of its noise."""
    probes = x[torch.from_numpy(np.linspace(0, len(x) - 1, min(len(x), PROBES)).astype(np.int64))]
    prior = _prior_root(kernels, hyper, probes)
    _, left = _whitened(kernels, hyper, probes, prior, x)
    return int((left.mean(-1) / least_noise(hyper)).argmax())


def _prior_root(kernels: tuple[Kernel, ...], hyper: Hyperparameters, points: Tensor) -> Tensor:
    """L of ``points`` (k × d)."""
    covariance = gram(kernels, scaled_sqdist(points, points, hyper.lengthscale), hyper.outputscale, hyper.shape)
    scale = hyper.outputscale[:, None]
    covariance.diagonal(dim1=-2, dim2=-1).copy_((1.0 + JITTER) * scale.expand(-1, len(points)))
    return safe_cholesky(covariance, scale)


def _whitened(
    kernels: tuple[Kernel, ...], hyper: Hyperparameters, points: Tensor, prior: Tensor, x: Tensor
) -> tuple[Tensor, Tensor]:
    """V (M × k × n) of inputs ``x`` (n × d), and their residuals (M × n)."""
    cross = gram(kernels, scaled_sqdist(points, x, hyper.lengthscale), hyper.outputscale, hyper.shape)
    whitened = torch.linalg.solve_triangular(prior, cross, upper=False)
    return whitened, (hyper.outputscale[:, None] - whitened.square().sum(-2)).clamp_min_(0.0)


@dataclass(frozen=True, eq=False)
class Summary:
    """Sums over observations, for each of M experts; r are the columns (y, 1).

    ``gram`` VΛ⁻¹Vᵀ (M × k × k), ``moments`` VΛ⁻¹r (M × k × 2), ``squares`` rᵀΛ⁻¹r (M × 2 × 2), ``log_noise`` Σ log Λ
    and ``residual`` Σ diag(K − Q) (M each).
    """

    gram: Tensor
    moments: Tensor
    squares: Tensor
    log_noise: Tensor
    residual: Tensor

    def plus(self, whitened: Tensor, residual: Tensor, y: Tensor, noise_variance: Tensor) -> Summary:
        """With further observations: V (M × k × n) and residuals (M × n) of them, ``y`` (n) and their noise (M × n)."""
        noise = noise_variance + residual
        columns = torch.stack([y, torch.ones_like(y)], dim=-1)
        weighted = whitened / noise.unsqueeze(-2)
        return Summary(
            torch.baddbmm(self.gram, weighted, whitened.mT),
            self.moments + weighted @ columns,
            self.squares + (columns / noise.unsqueeze(-1)).mT @ columns,
            self.log_noise + noise.log().sum(-1),
            self.residual + residual.sum(-1),
        )

    @classmethod
    def nothing(cls, prior: Tensor) -> Summary:
        experts, points = prior.shape[:2]
        return cls(
            torch.zeros_like(prior),
            prior.new_zeros(experts, points, 2),
            prior.new_zeros(experts, 2, 2),
            prior.new_zeros(experts),
            prior.new_zeros(experts),
        )

    def expert(self, m: int) -> Summary:
        row = slice(m, m + 1 or None)
        return Summary(self.gram[row], self.moments[row], self.squares[row], self.log_noise[row], self.residual[row])


@dataclass(frozen=True)
class PseudoGP(ExactGP):
    """``ExactGP`` of pseudo-observations at ``x`` (k × d) whose noise is correlated: ``noise`` (M × k × k) is R.

    ``y`` and ``noise_variance`` remain those of the n observations behind them.
    """

    noise: Tensor = field(kw_only=True)

    def expert(self, m: int) -> PseudoGP:
        row = slice(m, m + 1 or None)
        return PseudoGP(*self._of_expert(m), noise=self.noise[row])

    def _of_expert(self, m: int) -> tuple[tuple[Kernel, ...], Hyperparameters, Tensor, Tensor, Tensor, Tensor, Tensor]:
        row = slice(m, m + 1 or None)
        return (
            self.kernels[row],
            self.hyper.expert(m),
            self.x,
            self.y,
            self.noise_variance[..., row, :],
            self.chol[..., row, :, :],
            self.alpha[..., row, :],
        )

    @property
    def _targets(self) -> Tensor:
        """The pseudo-outcomes less the mean (... × M × k): Cα."""
        return (self.chol @ (self.chol.mT @ self.alpha.unsqueeze(-1))).squeeze(-1)

    def with_lengthscale(self, lengthscale: Tensor) -> PseudoGP:
        """The same pseudo-observations under other lengthscales (M × d): O(k³), whatever n."""
        hyper = replace(self.hyper, lengthscale=lengthscale)
        own = gram(self.kernels, scaled_sqdist(self.x, self.x, lengthscale), hyper.outputscale, hyper.shape)
        chol = safe_cholesky(own + self.noise, hyper.outputscale[:, None])
        alpha = torch.cholesky_solve(self._targets.unsqueeze(-1), chol).squeeze(-1)
        return PseudoGP(self.kernels, hyper, self.x, self.y, self.noise_variance, chol, alpha, noise=self.noise)

    def extend(self, x: Tensor, y: Tensor, noise_variance: Tensor | None = None) -> PseudoGP:
        """With observations that stay as they are, beside the pseudo-observations."""
        x, y, noise_rows, chol, all_x = self._grown(x, y, noise_variance)
        old, q = self.x.shape[-2], x.shape[-2]
        targets = self._targets
        residual = y.unsqueeze(-2) - self.hyper.mean[:, None]
        batch = residual.shape[:-2]
        both = torch.cat([targets.expand(*batch, *targets.shape[-2:]), residual], dim=-1)
        alpha = torch.cholesky_solve(both.unsqueeze(-1), chol).squeeze(-1)
        noise = self.noise.new_zeros(*batch, len(self.kernels), old + q, old + q)
        noise[..., :old, :old] = self.noise
        noise[..., old:, old:] = torch.diag_embed(noise_rows)
        return replace(self, x=all_x, chol=chol, alpha=alpha, noise=noise)

    def whitened_information(self, chol: Tensor, cross: Tensor, least: Tensor) -> Tensor:
        root = safe_cholesky(self.noise + torch.diag_embed(least.expand(self.noise.shape[:-1])), least)
        half = torch.linalg.solve_triangular(chol, cross, upper=False)
        explained = torch.linalg.solve_triangular(root, half.mT, upper=False)
        information: Tensor = explained.mT @ explained
        return information

    def log_evidence(self) -> Tensor:
        """That of the pseudo-observations (... × M)."""
        roots = self.chol.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        evidence: Tensor = -0.5 * (self._targets * self.alpha).sum(-1) - roots
        return evidence - 0.5 * math.log(2.0 * math.pi) * self.alpha.shape[-1]

    @property
    def fitted(self) -> tuple[Tensor, Tensor]:
        return self.alpha, self._targets - (self.noise @ self.alpha.unsqueeze(-1)).squeeze(-1)


@dataclass(frozen=True)
class InducingGP(PseudoGP):
    """M Gaussian processes on ``data`` (n × d) by inducing points; ``x`` are these, and behind them modelled rows that
    stay as they are.

    ``mean_sd`` is that of the constant mean's prior, which is profiled out.
    """

    data: Tensor = field(kw_only=True)
    prior: Tensor = field(kw_only=True)
    summary: Summary = field(kw_only=True)
    mean_sd: float = field(kw_only=True)

    @classmethod
    def of(
        cls,
        kernels: tuple[Kernel, ...],
        hyper: Hyperparameters,
        x: Tensor,
        y: Tensor,
        noise_variance: Tensor,
        points: Tensor,
        mean_sd: float,
    ) -> InducingGP:
        """Condition on ``x`` (n × d) and ``y`` (n) with noise variances (M × n); ``points`` (k) are numbers of rows."""
        z = x[points]
        prior = _prior_root(kernels, hyper, z)
        empty = torch.zeros_like(prior)
        start = cls(
            *(kernels, hyper, z, y[:0], noise_variance[:, :0], prior, empty[..., 0]),
            noise=empty,
            data=x[:0],
            prior=prior,
            summary=Summary.nothing(prior),
            mean_sd=mean_sd,
        )
        return start.absorb(x, y, noise_variance)

    def absorb(self, x: Tensor, y: Tensor, noise_variance: Tensor) -> InducingGP:
        """With observations ``x`` (q × d), ``y`` (q) and their noise (M × q) in the sums: O(q k²), whatever n."""
        summary = self.summary
        for some in torch.split(torch.arange(len(x)), CHUNK):
            whitened, residual = _whitened(self.kernels, self.hyper, self.x, self.prior, x[some])
            summary = summary.plus(whitened, residual, y[some], noise_variance[:, some])
        return self._summarized(
            torch.cat([self.data, x]),
            torch.cat([self.y, y]),
            torch.cat([self.noise_variance, noise_variance], dim=-1),
            summary,
        )

    def _summarized(self, data: Tensor, y: Tensor, noise_variance: Tensor, summary: Summary) -> InducingGP:
        """The pseudo-observations that say what ``summary`` does."""
        identity = torch.eye(self.prior.shape[-1], dtype=self.prior.dtype)
        inner = safe_cholesky(summary.gram + identity)  # of I + G
        solved = torch.cholesky_solve(summary.moments, inner)
        explained = summary.squares - summary.moments.mT @ solved  # (y, 1)ᵀ (Q + Λ)⁻¹ (y, 1)
        mean = explained[:, 0, 1] / (explained[:, 1, 1] + self.mean_sd**-2)
        weights = solved[..., :1] - mean[:, None, None] * solved[..., 1:]
        alpha = torch.linalg.solve_triangular(self.prior.mT, weights, upper=True).squeeze(-1)
        inverse = torch.cholesky_inverse(safe_cholesky(summary.gram))
        chol = self.prior @ safe_cholesky(identity + inverse)
        noise = self.prior @ inverse @ self.prior.mT
        hyper = replace(self.hyper, mean=mean)
        points = self.x[: len(identity)]
        return InducingGP(
            *(self.kernels, hyper, points, y, noise_variance, chol, alpha),
            noise=noise,
            data=data,
            prior=self.prior,
            summary=summary,
            mean_sd=self.mean_sd,
        )

    def with_outcomes(self, y: Tensor, mean: Tensor | None = None, source_mean: Tensor | None = None) -> InducingGP:
        """The same inputs and points with other outcomes (n); the mean is profiled anew."""
        start = replace(
            self,
            x=self.x[: self.prior.shape[-1]],
            y=y[:0],
            noise_variance=self.noise_variance[:, :0],
            data=self.data[:0],
            summary=Summary.nothing(self.prior),
        )
        return start.absorb(self.data, y, self.noise_variance)

    def expert(self, m: int) -> InducingGP:
        row = slice(m, m + 1 or None)
        return InducingGP(
            *self._of_expert(m),
            noise=self.noise[..., row, :, :],
            data=self.data,
            prior=self.prior[row],
            summary=self.summary.expert(m),
            mean_sd=self.mean_sd,
        )

    def extend(self, x: Tensor, y: Tensor, noise_variance: Tensor | None = None) -> PseudoGP:
        """With modelled rows: a few stay as they are, of many the sums are taken."""
        k = self.prior.shape[-1]
        if x.ndim > 2 or y.ndim > 1 or len(x) <= FEWEST_ROWS or self.x.shape[-2] > k:
            return super().extend(x, y, noise_variance)
        own = self.hyper.noise_variance[:, None].expand(-1, len(x))
        known = own if noise_variance is None else torch.where(noise_variance.isnan(), own, noise_variance)
        return self.absorb(x, y, known)

    @property
    def observed(self) -> Tensor:
        return self.data

    @property
    def count(self) -> int:
        return len(self.data) + self.x.shape[-2] - self.prior.shape[-1]

    @property
    def residual(self) -> Tensor:
        """The mean of the residuals at the data (M)."""
        return self.summary.residual / len(self.data)

    def log_evidence(self) -> Tensor:
        """Of the observations, and of the modelled rows after these (... × M)."""
        summary, k = self.summary, self.prior.shape[-1]
        inner = safe_cholesky(summary.gram + torch.eye(k, dtype=self.prior.dtype))
        solved = torch.cholesky_solve(summary.moments, inner)
        explained, mean = summary.squares - summary.moments.mT @ solved, self.hyper.mean
        square = explained[:, 0, 0] - 2.0 * mean * explained[:, 0, 1] + mean.square() * explained[:, 1, 1]
        roots = inner.diagonal(dim1=-2, dim2=-1).log().sum(-1) + 0.5 * summary.log_noise
        evidence = -0.5 * square - roots - 0.5 * math.log(2.0 * math.pi) * len(self.data)
        if self.x.shape[-2] == k:
            return evidence
        half = (self.chol.mT @ self.alpha.unsqueeze(-1)).squeeze(-1)[..., k:]
        more = self.chol.diagonal(dim1=-2, dim2=-1)[..., k:].log().sum(-1)
        return evidence - 0.5 * half.square().sum(-1) - more - 0.5 * math.log(2.0 * math.pi) * half.shape[-1]

    def information_gain(self) -> Tensor:
        inner = safe_cholesky(self.summary.gram + torch.eye(self.prior.shape[-1], dtype=self.prior.dtype))
        beyond = self.summary.log_noise - self.noise_variance.log().sum(-1)
        gain: Tensor = 2.0 * inner.diagonal(dim1=-2, dim2=-1).log().sum(-1) + beyond
        return gain.clamp_min(0.0)

    def held_out(self, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """(Q + Λ)⁻¹(y − mean) and the diagonal of (Q + Λ)⁻¹ for ``rows`` (q), or all: M × q each, O(q k²)."""
        inner = safe_cholesky(self.summary.gram + torch.eye(self.prior.shape[-1], dtype=self.prior.dtype))
        moments = self.summary.moments
        weights = torch.cholesky_solve(moments[..., :1] - self.hyper.mean[:, None, None] * moments[..., 1:], inner)
        solved, precision = [], []
        points = self.x[: self.prior.shape[-1]]
        for some in torch.split(torch.arange(len(self.data)) if rows is None else rows, CHUNK):
            whitened, residual = _whitened(self.kernels, self.hyper, points, self.prior, self.data[some])
            noise = self.noise_variance[:, some] + residual
            explained = (whitened.mT @ weights).squeeze(-1)
            solved.append((self.y[some] - self.hyper.mean[:, None] - explained) / noise)
            share = torch.linalg.solve_triangular(inner, whitened, upper=False).square().sum(-2)
            precision.append((1.0 - share / noise) / noise)
        return torch.cat(solved, dim=-1), torch.cat(precision, dim=-1)

    def one_step_ahead(self) -> tuple[Tensor, Tensor]:
        """``STEP`` rows at a time, jointly: what came before is in the sums."""
        identity = torch.eye(self.prior.shape[-1], dtype=self.prior.dtype)
        points, mean = self.x[: len(identity)], self.hyper.mean[:, None]
        summary, errors, spreads = Summary.nothing(self.prior), [], []
        for some in torch.split(torch.arange(len(self.data)), STEP):
            whitened, residual = _whitened(self.kernels, self.hyper, points, self.prior, self.data[some])
            inner = safe_cholesky(summary.gram + identity)
            half = torch.linalg.solve_triangular(inner, whitened, upper=False)
            centered = summary.moments[..., :1] - mean.unsqueeze(-1) * summary.moments[..., 1:]
            before = (half.mT @ torch.linalg.solve_triangular(inner, centered, upper=False)).squeeze(-1)
            covariance = half.mT @ half + torch.diag_embed(self.noise_variance[:, some] + residual)
            root = safe_cholesky(covariance)
            spread = root.diagonal(dim1=-2, dim2=-1)
            ahead = torch.linalg.solve_triangular(
                root, (self.y[some] - mean - before).unsqueeze(-1), upper=False
            ).squeeze(-1)
            errors.append(ahead * spread)
            spreads.append(spread)
            summary = summary.plus(whitened, residual, self.y[some], self.noise_variance[:, some])
        return torch.cat(errors, dim=-1), torch.cat(spreads, dim=-1)
