"""Hyper-parameters as what they are, not known: an ensemble whose members are draws from their posterior.

A fit is the top of one hill. What is believed of f by it alone is too sure with few data, and wrong where noise was
taken for signal: forty noisy outcomes are explained by rough functions without noise as well as by smooth ones with
much of it, and the fit decides for one of the two. Searches need no more than that; answers are made from draws.

Importance sampling: for each expert two searches, from its fit and from large noise and smooth functions; around both
ends draws of Student's t with the curvature there; weights by the posterior of the logarithms of the hyper-parameters;
and of the draws a few, by systematic resampling, so that a member stands for an equal share of the posterior.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.streams import stream
from edrbo.surrogate.earlier import beside_priors
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate, with_profiled_mean
from edrbo.surrogate.fit import LARGEST_BATCH, Likelihood, bounds_of, noisy_theta, pack, unpack
from edrbo.surrogate.kernels import Hyperparameters, Kernel, Priors
from edrbo.surrogate.quasi_newton import minimize_newton

Array = NDArray[np.float64]

MEMBERS = 4  # that each expert becomes
PROPOSED, FEWEST_PROPOSED = 48, 12  # draws around each of the two ends
LARGEST_WORK = 2e9  # n³ × draws; of more observations fewer are drawn, and of very many none: they leave little doubt
FREEDOM, WIDER = 5.0, 1.2  # of Student's t around an end
NATS = 0.01
NOISE_DOUBT = (
    2.0  # times as wide as in a fit is the prior of the noise, of which nobody knows beforehand how large it is
)


def doubted(surrogate: Surrogate, model: ExpertEnsemble) -> ExpertEnsemble:
    """``model`` with draws of its hyper-parameters in place of those that fit best, where ``surrogate`` fits any."""
    return marginalized(model, surrogate.priors(model.gp.x.shape[-1])) if surrogate.fits else model


@lru_cache(maxsize=16)
def marginalized(model: ExpertEnsemble, priors: Priors, members: int = MEMBERS) -> ExpertEnsemble:
    """The experts of ``model``, each as ``members`` draws of its hyper-parameters given the same data."""
    gp = model.gp
    if model.approximation is not None:  # of so many observations there is little doubt
        return model
    n, experts = len(gp.y), len(gp.kernels)
    proposed = min(PROPOSED, int(LARGEST_WORK / (2.0 * experts * n**3)))
    if proposed < FEWEST_PROPOSED or gp.x.ndim > 2:
        return model
    known, sources = model.known_noise, gp.hyper.sources
    priors = beside_priors(priors) if sources else priors
    if priors.noise_variance is not None:
        priors = replace(
            priors, noise_variance=replace(priors.noise_variance, scale=NOISE_DOUBT * priors.noise_variance.scale)
        )
    together = gp.pair_correlation(torch.tril_indices(n, n, offset=-1))
    ratio = gp.noise_ratio(gp.x)
    likelihood = Likelihood(gp.x, gp.y, known, priors, model.replicates, gp.source, together, ratio)
    theta = _drawn(likelihood, gp.kernels, pack(gp.hyper), proposed, members)  # M × members × p
    shares = None if model.weights is None else model.weights.numpy()
    rows = _members(shares, experts, members)
    kernels = tuple(gp.kernels[m] for m, _ in rows)
    hyper = unpack(torch.stack([theta[m, k] for m, k in rows]), sources)
    own, doubt = gp.hyper, gp.hyper.noise_doubt
    hyper = replace(hyper, power=own.power, half_life=own.half_life, noise_profile=own.noise_profile, noise_doubt=doubt)
    return _conditioned(model, kernels, hyper, likelihood)


def _conditioned(
    model: ExpertEnsemble, kernels: tuple[Kernel, ...], hyper: Hyperparameters, likelihood: Likelihood
) -> ExpertEnsemble:
    gp = model.gp.conditioned(kernels, hyper, likelihood.known_noise, likelihood.count)
    gp = with_profiled_mean(gp, gp.y, likelihood.priors.mean_sd)
    return ExpertEnsemble(gp, model.scaling, "equal", model.replicates)


def _members(shares: Array | None, experts: int, members: int) -> list[tuple[int, int]]:
    """Which draw of which expert each member is; where experts do not weigh the same they have more or fewer."""
    if shares is None:
        return [(m, k) for m in range(experts) for k in range(members)]
    ends = np.round(np.cumsum(shares) * experts * members).astype(int)
    counts = np.diff(np.concatenate([[0], ends]))
    return [(m, k % members) for m, count in enumerate(counts.tolist()) for k in range(count)]


def _drawn(likelihood: Likelihood, kernels: tuple[Kernel, ...], fitted: Tensor, proposed: int, members: int) -> Tensor:
    """θ (M × members × p), as ``fit.pack`` writes hyper-parameters."""
    experts, p = fitted.shape
    free = _free(likelihood, kernels)
    lower, upper = bounds_of(likelihood)
    starts = torch.cat([fitted, noisy_theta(fitted, likelihood.sources)])
    ends = _tops(likelihood, kernels * 2, starts, free.repeat(2, 1), lower, upper)
    curvature = _evaluated(likelihood, kernels * 2, ends, curved=True)[1]
    factors = [_spread(curvature[row], free[row % experts]) for row in range(2 * experts)]
    random = stream(0, "hyper-parameters", len(likelihood.y))
    normal = torch.from_numpy(random.standard_normal((2 * experts, proposed, p)))
    scale = torch.from_numpy(np.sqrt(FREEDOM / random.chisquare(FREEDOM, (2 * experts, proposed, 1))))
    draws = torch.stack(
        [ends[row] + scale[row] * (normal[row] @ factors[row].mT) for row in range(2 * experts)]
    )  # 2M × proposed × p
    found = torch.empty(experts, members, p, dtype=torch.float64)
    inside = ((draws >= lower) & (draws <= upper) | ~free.repeat(2, 1)[:, None]).all(-1)
    held = draws.clamp(lower, upper)
    density = _evaluated(likelihood, [k for k in kernels * 2 for _ in range(proposed)], held.flatten(0, 1))[0]
    density = torch.where(inside, density.reshape(2 * experts, proposed), -torch.inf)
    for m in range(experts):
        both = torch.cat([held[m], held[m + experts]])
        target = torch.cat([density[m], density[m + experts]])
        tried = torch.stack([_log_t(both, ends[row], factors[row], free[m]) for row in (m, m + experts)])
        weights = (target - tried.logsumexp(0)).softmax(0).numpy()
        steps = (np.arange(members) + 0.5) / members  # along the noise, so that little and much are both there
        order = np.argsort(both[:, likelihood.x.shape[1] + 1].numpy(), kind="stable")
        below = np.cumsum(weights[order])
        found[m] = both[torch.from_numpy(order[np.searchsorted(below / below[-1], steps).clip(0, len(order) - 1)])]
    return found


def _free(likelihood: Likelihood, kernels: tuple[Kernel, ...]) -> Tensor:
    """Which hyper-parameters (M × p) of each expert are not fixed."""
    d = likelihood.x.shape[1]
    free = torch.ones(len(kernels), likelihood.parameters, dtype=torch.bool)
    free[:, d] = likelihood.priors.outputscale is not None
    free[:, d + 2] = torch.tensor([kernel.has_shape for kernel in kernels])
    return free


def _logarithmic(likelihood: Likelihood, free: Tensor) -> Tensor:
    """Which of the ``free`` columns of θ are logarithms: all but those of correlations."""
    first = likelihood.x.shape[1] + 3
    found = free.clone()
    found[:, first : first + likelihood.sources] = False
    return found


def _tops(
    likelihood: Likelihood, kernels: tuple[Kernel, ...], start: Tensor, free: Tensor, lower: Tensor, upper: Tensor
) -> Tensor:
    """The ends of searches for the top of the posterior of θ from ``start`` (S × p)."""

    def negative(theta: Array, rows: list[int], curved: bool) -> tuple[Array, Array, Array | None]:
        some = tuple(kernels[row] for row in rows)
        value, gradient, curvature = likelihood.evaluate(torch.from_numpy(theta), some, curved=curved)
        kept = free[rows].double()
        logs = _logarithmic(likelihood, free[rows]).double()
        value = value + (torch.from_numpy(theta) * logs).sum(-1)
        slope = (gradient + logs) * kept
        return -value.numpy(), -slope.numpy(), None if curvature is None else curvature.numpy()

    ends, _ = minimize_newton(negative, start.numpy(), lower.numpy(), upper.numpy(), max_evaluations=40, tolerance=NATS)
    return torch.from_numpy(ends)


def _evaluated(
    likelihood: Likelihood, kernels: tuple[Kernel, ...] | list[Kernel], theta: Tensor, *, curved: bool = False
) -> tuple[Tensor, Tensor]:
    """The log posterior density of θ (S), up to a constant for each expert, and its curvature (S × p × p) if asked.

    The priors' densities are of the parameters themselves; of their logarithms they are those times the parameter.
    """
    at_once = max(1, LARGEST_BATCH // len(likelihood.y) ** 2)
    values, curvatures = [], []
    for start in range(0, len(theta), at_once):
        some = slice(start, start + at_once)
        value, _, curvature = likelihood.evaluate(theta[some], tuple(kernels[some]), curved=curved)
        values.append(value)
        curvatures.append(theta.new_zeros(0) if curvature is None else curvature)
    free = _free(likelihood, tuple(kernels))
    return torch.cat(values) + (theta * _logarithmic(likelihood, free)).sum(-1), torch.cat(curvatures)


def _spread(curvature: Tensor, free: Tensor) -> Tensor:
    """A factor (p × p) of the covariance of the draws around an end, zero for what is fixed."""
    p = len(free)
    kept = torch.nonzero(free).squeeze(-1)
    values, vectors = torch.linalg.eigh(curvature[kept][:, kept])
    factor = torch.zeros(p, p, dtype=torch.float64)
    factor[kept[:, None], kept] = WIDER * vectors * values.clamp_min(0.05).rsqrt()
    return factor


def _log_t(theta: Tensor, center: Tensor, factor: Tensor, free: Tensor) -> Tensor:
    """Log density (S) of Student's t around ``center``, up to a constant that all have."""
    kept = torch.nonzero(free).squeeze(-1)
    inner = factor[kept[:, None], kept]
    away = torch.linalg.solve(inner, (theta - center)[:, kept].mT).square().sum(0)
    density: Tensor = -torch.linalg.slogdet(inner)[1] - 0.5 * (FREEDOM + len(kept)) * (away / FREEDOM).log1p()
    return density
