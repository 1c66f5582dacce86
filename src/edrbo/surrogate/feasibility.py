"""Feasibility: the probability that an evaluation succeeds, by a Gaussian-process classifier of its own.

A run fails for one of two reasons. It stands behind a *wall*, where a latent function g of the inputs is below zero, or
it had *bad luck*, which strikes everywhere alike with probability ε:

    P(success | ξ) = (1 − ε) Φ(g(ξ)),   g ~ GP(mean, k)

The kernel is a plane plus a Matérn-5/2, since walls mostly stand where some input is too large or too small. The
posterior is found by expectation propagation. Lengthscale, size of g and ε are not fitted but averaged over a grid of
members, each weighing what its evidence says: whether a failure was luck or a wall is the very question.

Glossary: H members, n runs, P points, N queries, d inputs.

    points   P × d      inputs g is taken at, in the coding of the surrogate
    spread   n × P      weights of the points in each run: one point, or the atoms of the distribution where c is not
             known tau, nu  H × n      precision, and precision × mean, of each run's EP site

Expectation propagation for binary outcomes (Minka, 2001): a latent Gaussian vector given signs with label noise.

    f ~ N(0, K),   P(yes_i | f) = (1 − ε) Φ(mean + f_i),   P(no_i | f) = ε + (1 − ε) Φ(−mean − f_i)

Each likelihood is replaced by a Gaussian *site* such that leaving it out and putting the likelihood in its place gives
the same first two moments (Rasmussen and Williams, 2006, section 3.6). All sites move at once, damped. Many problems
with the same answers are solved together: H kernels, means and ε.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from edrbo.surrogate.gaussian_model import pairs
from edrbo.surrogate.kernels import Matern52

DAMPING = 0.6  # from 0.9 on, sites of a "no" taken for an accident swing to and fro
SWEEPS, TOLERANCE = 20, 1e-3  # probabilities end within a few thousandths of the fixed point
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
    sites = covariance.new_zeros(2, *covariance.shape[:2]) if start is None else start.clone()
    moving = torch.arange(len(covariance))  # problems whose sites still move: each ends by itself
    for _ in range(sweeps):
        some = slice(None) if len(moving) == len(covariance) else moving
        tau, nu = sites[:, some]
        _, _, center, marginal = _moments(covariance[some], tau, nu)
        precision, cavity, tilted = _leave_out(center, marginal, tau, nu, mean[some], luck[some], yes)
        new_tau = (tilted.variance.reciprocal() - precision).clamp_min(LEAST_PRECISION)
        new_nu = tilted.mean * (precision + new_tau) - precision * cavity
        change = torch.maximum((new_tau - tau).abs() / (1.0 + tau), (new_nu - nu).abs() / (1.0 + nu.abs()))
        sites[:, some] = torch.stack([tau + DAMPING * (new_tau - tau), nu + DAMPING * (new_nu - nu)])
        moving = moving[change.amax(-1) >= TOLERANCE]
        if not len(moving):
            break
    tau, nu = sites
    chol, root, center, marginal = _moments(covariance, tau, nu)
    precision, cavity, tilted = _leave_out(center, marginal, tau, nu, mean, luck, yes)
    evidence = _log_evidence(tilted, chol, nu, center, tau, precision, cavity)
    inverse = root.unsqueeze(-1) * torch.cholesky_inverse(chol) * root.unsqueeze(-2)
    alpha = nu - (inverse @ (covariance @ nu.unsqueeze(-1))).squeeze(-1)
    return EPPosterior(alpha, inverse, evidence, sites)


def _leave_out(
    center: Tensor, marginal: Tensor, tau: Tensor, nu: Tensor, mean: Tensor, luck: Tensor, yes: Tensor
) -> tuple[Tensor, Tensor, _Tilted]:
    """Precision and mean of each cavity, and the likelihood put in place of the site."""
    precision = (marginal.reciprocal() - tau).clamp_min(LEAST_PRECISION)
    cavity = (center / marginal - nu) / precision
    return precision, cavity, _tilt(cavity, precision.reciprocal(), mean[:, None], luck[:, None], yes)


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


LENGTHSCALES = (0.15, 0.4, 1.0)  # of the Matérn part, in √d of the unit cube
SIZES = (2.0, 6.0, 18.0)  # standard deviation of g: how sharp walls are, beside Φ's own width of one
LUCK = (0.01, 0.05, 0.2)  # ε
PLANE = 0.5  # share of the plane in the variance of g
USUAL = 0.82  # probability that g is above zero where nothing is known; at 0.9 middling chances are optimistic
NEGLIGIBLE = 0.02  # members that weigh less than this beside the heaviest are left out
FIRST_SWEEPS = 6  # of all members; then the heavy ones go on
LEAST_VARIANCE = 1e-9  # of g, so that its standard deviation has a gradient
ROUGH_MEMBERS = 3  # that designs are screened by
MOST_RUNS = 96  # of more, the last failures and the successes next to them are kept
CHUNK = 2**18  # elements of the largest temporary (members × queries × points): stays in cache

_matern = Matern52()


@dataclass(frozen=True)
class Members:
    """Kernels and luck: H each."""

    lengthscale: Tensor
    size: Tensor
    luck: Tensor

    @classmethod
    def grid(cls, d: int) -> Members:
        rows = torch.tensor(list(itertools.product(LENGTHSCALES, SIZES, LUCK)), dtype=torch.float64)
        return cls(rows[:, 0] * math.sqrt(d), rows[:, 1], rows[:, 2])

    def __getitem__(self, chosen: Tensor) -> Members:
        return Members(self.lengthscale[chosen], self.size[chosen], self.luck[chosen])

    @property
    def mean(self) -> Tensor:
        """Prior mean of g (H), such that Φ(g) is ``USUAL`` on average."""
        usual: Tensor = torch.special.ndtri(self.size.new_tensor(USUAL)) * (1.0 + self.size.square()).sqrt()
        return usual

    def covariance(self, a: Tensor, b: Tensor) -> Tensor:
        """Of g at ``a`` (N × d) with g at ``b`` (P × d): H × N × P."""
        lengthscales, which = self._lengthscales
        correlation = self._combine(_matern.value(_sqdist(a, b, lengthscales), self.size), _plane(a, b))
        return self.size.square()[:, None, None] * correlation[which]

    def covariance_and_slopes(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """``covariance``, and s²(1 − share) 2 g'(r²)/ℓ²: what (a − b) is multiplied by in its gradient in a."""
        lengthscales, which = self._lengthscales
        value, slope = _matern.value_and_slope(_sqdist(a, b, lengthscales), self.size)
        factor = 2.0 * (1.0 - PLANE) * (self.size / self.lengthscale).square()
        correlation = self._combine(value, _plane(a, b))[which]
        return self.size.square()[:, None, None] * correlation, factor[:, None, None] * slope[which]

    @cached_property
    def _lengthscales(self) -> tuple[Tensor, Tensor]:
        """The different ones, and which of them each member has: kernels are worked out once for each."""
        found: tuple[Tensor, Tensor] = torch.unique(self.lengthscale, return_inverse=True)
        return found

    def variance(self, a: Tensor) -> Tensor:
        """Of g at ``a`` (N × d) before anything is known: H × N."""
        plane = 12.0 / a.shape[1] * (a - 0.5).square().sum(-1)
        return self.size.square()[:, None] * (1.0 - PLANE + PLANE * plane)

    @staticmethod
    def _combine(matern: Tensor, plane: Tensor) -> Tensor:
        return (1.0 - PLANE) * matern + PLANE * plane


def _sqdist(a: Tensor, b: Tensor, lengthscales: Tensor) -> Tensor:
    """r² for each lengthscale (k × N × P)."""
    return (a.unsqueeze(-2) - b).square().sum(-1) / lengthscales[:, None, None].square()


def _plane(a: Tensor, b: Tensor) -> Tensor:
    """Covariance of planes through the middle of the cube, of unit variance on average over it: N × P."""
    return 12.0 / a.shape[1] * ((a - 0.5) @ (b - 0.5).mT)


@dataclass(frozen=True, eq=False)
class Feasibility:
    """The probability of success as a function of the design, averaged over a context distribution.

    weight: H; alpha: H × P and precision: H × P × P, so that g has mean kᵀα and variance k₀ − kᵀ precision k;
    atoms: m × d_c and weights: m, the distribution of the context (m × 0 where success does not depend on it).
    """

    members: Members
    weight: Tensor
    points: Tensor
    alpha: Tensor
    precision: Tensor
    atoms: Tensor
    weights: Tensor

    def rough(self) -> Feasibility:
        """A cheap approximation that ranks designs much alike: the members that weigh most, in the middle context."""
        heavy = self.weight.argsort(descending=True, stable=True)[:ROUGH_MEMBERS]
        weight = self.weight[heavy]
        parts = self.members[heavy], weight / weight.sum(), self.points, self.alpha[heavy], self.precision[heavy]
        return Feasibility(*parts, (self.weights @ self.atoms)[None], self.weights.new_ones(1))

    def probability(self, x: Tensor, optimism: float | None = None) -> Tensor:
        """P(success) of the designs ``x`` (N × d_x): N. Differentiable.

        With ``optimism`` g is taken to be that many standard deviations above its mean: near one wherever nobody knows,
        as an upper confidence bound is for an outcome.
        """
        parts = [self._probability(part, optimism) for part in self._split(x)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def probability_and_gradient(self, x: Tensor, optimism: float | None = None) -> tuple[Tensor, Tensor]:
        """``probability``, and its gradient in ``x`` (N × d_x), without a graph."""
        parts = [self._probability_and_gradient(part, optimism) for part in self._split(x)]
        probability, gradient = (torch.cat(list(pieces)) for pieces in zip(*parts, strict=True))
        return probability, gradient

    def _split(self, x: Tensor) -> tuple[Tensor, ...]:
        width = len(self.weight) * len(self.points) * len(self.atoms)
        return torch.split(x, max(1, CHUNK // width))

    def _probability(self, x: Tensor, optimism: float | None) -> Tensor:
        joint = pairs(x, self.atoms)
        cross = self.members.covariance(joint, self.points)
        z, _, _ = _standard(*self._moments(joint, cross, cross @ self.precision), optimism)
        return self._over_contexts(self._weight_of_success @ torch.special.ndtr(z))

    def _probability_and_gradient(self, x: Tensor, optimism: float | None) -> tuple[Tensor, Tensor]:
        joint = pairs(x, self.atoms)
        cross, slope = self.members.covariance_and_slopes(joint, self.points)
        half = cross @ self.precision
        z, by_mean, by_variance = _standard(*self._moments(joint, cross, half), optimism)
        density = self._weight_of_success[:, None] * (-0.5 * z.square()).exp() / math.sqrt(2.0 * math.pi)
        by_mean, by_variance = density * by_mean, density * by_variance
        # k₀ and k depend on the query: dp = by_mean αᵀdk + by_variance (dk₀ − 2 kᵀ precision dk)
        by_cross = by_mean.unsqueeze(-1) * self.alpha.unsqueeze(-2) - 2.0 * by_variance.unsqueeze(-1) * half
        apart = by_cross * slope
        gradient = (apart.sum(-1, keepdim=True) * joint - apart @ self.points).sum(0)
        plane = 12.0 / joint.shape[1] * PLANE * self.members.size.square()[:, None]
        gradient += (plane.unsqueeze(-1) * by_cross).sum(0) @ (self.points - 0.5)
        gradient += 2.0 * (plane * by_variance).sum(0)[:, None] * (joint - 0.5)
        by_design = gradient[:, : x.shape[1]].reshape(len(x), len(self.atoms), -1)
        probability = self._over_contexts(self._weight_of_success @ torch.special.ndtr(z))
        return probability, (self.weights[:, None] * by_design).sum(1)

    def _moments(self, joint: Tensor, cross: Tensor, half: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of g (H × N)."""
        mean = self.members.mean[:, None] + (cross @ self.alpha.unsqueeze(-1)).squeeze(-1)
        return mean, (self.members.variance(joint) - (half * cross).sum(-1)).clamp_min(LEAST_VARIANCE)

    @property
    def _weight_of_success(self) -> Tensor:
        """w_h (1 − ε_h): what a member's Φ counts (H)."""
        return self.weight * (1.0 - self.members.luck)

    def _over_contexts(self, at_pairs: Tensor) -> Tensor:
        return at_pairs.reshape(-1, len(self.atoms)) @ self.weights


def _standard(mean: Tensor, variance: Tensor, optimism: float | None) -> tuple[Tensor, Tensor, Tensor]:
    """z, with P(g > 0) = Φ(z) for normal g seen through Φ, and its derivatives by mean and variance; or z of the
    optimist."""
    if optimism is None:
        width = (1.0 + variance).sqrt()
        z = mean / width
        return z, width.reciprocal(), -0.5 * z / width.square()
    sd = variance.sqrt()
    return mean + optimism * sd, torch.ones_like(mean), 0.5 * optimism / sd


def fit_feasibility(x: Tensor, c: Tensor, success: Tensor, atoms: Tensor, weights: Tensor) -> Feasibility:
    """From runs at designs ``x`` (n × d_x) in contexts ``c`` (n × d_c, NaN where not known), ``success`` (n) or not.

    ``atoms`` (m × d_c) with ``weights`` (m) are the distribution of the context. Where a run's context is not known,
    its g is the average over the distribution. If that of no failure is known, success is taken for a function of the
    design alone.
    """
    known = ~c.isnan().any(-1)
    if not bool((known & ~success).any()):
        c, atoms, weights = c[:, :0], atoms[:1, :0], weights.new_ones(1)
        known = torch.ones_like(success)
    kept = _most_informative(torch.cat([x, torch.where(known[:, None], c, weights @ atoms)], dim=-1), success)
    points, spread = _points(x[kept], c[kept], known[kept], atoms, weights)
    members = Members.grid(points.shape[1])
    covariance = spread @ members.covariance(points, points) @ spread.mT
    answers = success[kept]
    first = propagate(covariance, members.mean, members.luck, answers, sweeps=FIRST_SWEEPS)
    heavy = _heavy(first.log_evidence)
    members, covariance, sites = members[heavy], covariance[heavy], first.sites[:, heavy]
    posterior = propagate(covariance, members.mean, members.luck, answers, start=sites)
    return Feasibility(
        members,
        posterior.log_evidence.softmax(0),
        points,
        posterior.alpha @ spread,
        spread.mT @ posterior.precision @ spread,
        atoms,
        weights,
    )


def _heavy(log_evidence: Tensor) -> Tensor:
    """Which members weigh enough to count (H)."""
    return log_evidence >= log_evidence.max() + math.log(NEGLIGIBLE)


def _most_informative(inputs: Tensor, success: Tensor) -> Tensor:
    """Rows that say most about walls, in order: all, or the last failures and the successes nearest to them."""
    n = len(inputs)
    if n <= MOST_RUNS:
        return torch.arange(n)
    failures, successes = (torch.nonzero(which).squeeze(-1) for which in (~success, success))
    failures = failures[-max(MOST_RUNS // 2, MOST_RUNS - len(successes)) :]
    nearest = (inputs[successes].unsqueeze(1) - inputs[failures]).square().sum(-1).amin(-1)
    close = nearest.argsort(stable=True)[: MOST_RUNS - len(failures)]
    return torch.cat([failures, successes[close]]).sort().values


def _points(x: Tensor, c: Tensor, known: Tensor, atoms: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Where g is taken (P × d), and how much of each run that is (n × P)."""
    m = len(atoms)
    at_atoms = torch.cat([x[~known].repeat_interleave(m, dim=0), atoms.repeat(int((~known).sum()), 1)], dim=-1)
    points = torch.cat([torch.cat([x, c], dim=-1)[known], at_atoms])
    spread = x.new_zeros(len(x), len(points))
    spread[known.nonzero().squeeze(-1), torch.arange(int(known.sum()))] = 1.0
    rows = (~known).nonzero().squeeze(-1).repeat_interleave(m)
    spread[rows, torch.arange(int(known.sum()), len(points))] = weights.repeat(int((~known).sum()))
    return points, spread
