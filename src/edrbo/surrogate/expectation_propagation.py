"""Expectation propagation for binary outcomes (Minka, 2001): a latent Gaussian vector given signs with label noise.

    f ~ N(0, K),   P(yes_i | f) = (1 − ε) Φ(mean + f_i),   P(no_i | f) = ε + (1 − ε) Φ(−mean − f_i)

Each likelihood is replaced by a Gaussian *site* such that leaving it out and putting the likelihood in its place gives
the same first two moments (Rasmussen and Williams, 2006, section 3.6). All sites move at once, damped. Many problems
with the same answers are solved together: H kernels, means and ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

DAMPING = 0.6  # from 0.9 on, sites of a "no" taken for an accident swing to and fro
SWEEPS, TOLERANCE = 60, 1e-3  # probabilities end within a few thousandths of the fixed point
LEAST_PRECISION = 1e-10  # of a site. That of a "no" taken for an accident would be negative: then the mean alone fits
HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True, eq=False)
class EPPosterior:
    """Where f has covariance k (n) with the data and variance k₀: mean kᵀ alpha, variance k₀ − kᵀ precision k.

    alpha: H × n, precision: H × n × n, log_evidence: H, sites (precision, precision × mean): 2 × H × n.
    """

    alpha: Tensor
    precision: Tensor
    log_evidence: Tensor
    sites: Tensor


@dataclass(frozen=True, eq=False)
class _Tilted:
    """Moments of cavity × likelihood: normalizer, mean and variance, H × n each."""

    log_normalizer: Tensor
    mean: Tensor
    variance: Tensor


def propagate(
    covariance: Tensor,
    mean: Tensor,
    luck: Tensor,
    yes: Tensor,
    *,
    sweeps: int = SWEEPS,
    start: Tensor | None = None,
) -> EPPosterior:
    """``covariance`` H × n × n, ``mean`` and ``luck`` (ε) H, ``yes`` n; ``start`` are the sites of an earlier end."""
    if start is None:
        start = covariance.new_zeros(2, *covariance.shape[:2])
    tau, nu = start
    for _ in range(sweeps):
        chol, root, center, marginal = _moments(covariance, tau, nu)
        precision = (marginal.reciprocal() - tau).clamp_min(LEAST_PRECISION)  # of the cavity
        cavity = (center / marginal - nu) / precision
        tilted = _tilt(cavity, precision.reciprocal(), mean[:, None], luck[:, None], yes)
        evidence = _log_evidence(tilted, chol, nu, center, tau, precision, cavity)
        sites = torch.stack([tau, nu])
        new_tau = (tilted.variance.reciprocal() - precision).clamp_min(LEAST_PRECISION)
        new_nu = tilted.mean * (precision + new_tau) - precision * cavity
        change = torch.maximum((new_tau - tau).abs() / (1.0 + tau), (new_nu - nu).abs() / (1.0 + nu.abs()))
        if float(change.max()) < TOLERANCE:
            break
        tau, nu = tau + DAMPING * (new_tau - tau), nu + DAMPING * (new_nu - nu)
    inverse = root.unsqueeze(-1) * torch.cholesky_inverse(chol) * root.unsqueeze(-2)
    alpha = sites[1] - (inverse @ (covariance @ sites[1].unsqueeze(-1))).squeeze(-1)
    return EPPosterior(alpha, inverse, evidence, sites)


def _moments(covariance: Tensor, tau: Tensor, nu: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Factor of B = I + τ^½ K τ^½, τ^½, and mean and variance of each f given the sites."""
    root = tau.sqrt()
    scaled = root.unsqueeze(-1) * covariance
    matrix = scaled * root.unsqueeze(-2)
    matrix.diagonal(dim1=-2, dim2=-1).add_(1.0)
    chol = torch.linalg.cholesky(matrix)
    half = torch.linalg.solve_triangular(chol, scaled, upper=False)
    center = (covariance @ nu.unsqueeze(-1) - half.mT @ (half @ nu.unsqueeze(-1))).squeeze(-1)
    variance = covariance.diagonal(dim1=-2, dim2=-1) - half.square().sum(-2)
    return chol, root, center, variance.clamp_min(1e-12)


def _tilt(cavity: Tensor, variance: Tensor, mean: Tensor, luck: Tensor, yes: Tensor) -> _Tilted:
    sign = torch.where(yes, 1.0, -1.0).to(cavity)
    width = (1.0 + variance).sqrt()
    z = sign * (mean + cavity) / width
    keeps = torch.log1p(-luck)
    by_accident = torch.where(yes, -math.inf, luck.log())
    log_normalizer = torch.logaddexp(by_accident, keeps + torch.special.log_ndtr(z))
    # first and second derivative of the log normalizer in the cavity's mean
    density = torch.exp(keeps - 0.5 * z.square() - HALF_LOG_2PI - log_normalizer)
    first = sign * density / width
    second = -z * density / width.square() - first.square()
    tilted_variance = variance + variance.square() * second
    return _Tilted(log_normalizer, cavity + variance * first, tilted_variance.clamp_min(1e-12))


def _log_evidence(
    tilted: _Tilted, chol: Tensor, nu: Tensor, center: Tensor, tau: Tensor, precision: Tensor, cavity: Tensor
) -> Tensor:
    """The EP approximation of log p(answers) (H); Rasmussen and Williams (3.65), its terms arranged to be stable."""
    total = precision + tau
    determinant = 0.5 * torch.log1p(tau / precision).sum(-1) - chol.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    sites = 0.5 * (nu * center - nu.square() / total).sum(-1)
    cavities = 0.5 * (cavity * precision * (tau * cavity - 2.0 * nu) / total).sum(-1)
    evidence: Tensor = tilted.log_normalizer.sum(-1) + determinant + sites + cavities
    return evidence
