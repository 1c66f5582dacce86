"""Credible intervals of a design's expected value under the true context distribution, and of its next outcome.

Three things are not known, and each widens the interval of E_c f(x, c):

    model       f itself: each expert's joint posterior over the contexts
    contexts    the distribution, of which a sample is known: the Bayesian bootstrap over all contexts seen
    experts     which expert is right: their means differ

Each is given as a 95 % half-width; they add in squares. Sums run over all contexts, not over the compressed atoms of
the search.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.acquisition import CHUNK
from edrbo.acquisition.scores import SQRT2
from edrbo.contexts.uncertainty import MAX_EXACT_CONTEXTS, DistributionUncertainty
from edrbo.optimizer.calibration import Z95, Trust, student_quantile
from edrbo.surrogate.ensemble import ExpertEnsemble, radius
from edrbo.surrogate.gaussian_model import pairs

Array = NDArray[np.float64]

# For many designs a long log is cut, so that this many pairs of a design and a context are looked at …
JOINT_PAIRS, MARGINAL_PAIRS = 2**16, 2**14
ROOT_2_PI = math.sqrt(2.0 * math.pi)
FEWEST_JOINT, FEWEST_MARGINAL = 64, 32  # … but no shorter than this
MOST_JOINT = 512  # all covariances between so many contexts are held at once
MAX_STEPS = 64  # to a quantile: a limit that is hardly met, five are usual
STEP_TOLERANCE = 1e-12  # of the range, a step that is no longer worth taking


@dataclass(frozen=True, eq=False)
class ValueIntervals:
    """Beliefs about N designs in the model's units (maximization): N each.

    ``model``, ``contexts`` and ``experts`` are 95 % half-widths of E_c f(x, c); ``outcome_lower`` and
    ``outcome_upper`` bound the next single outcome, context and noise included, with 95 %.
    """

    mean: Array
    model: Array
    contexts: Array
    experts: Array
    disagreement: Array
    outcome_lower: Array
    outcome_upper: Array

    @property
    def half(self) -> Array:
        """Half of the 95 % interval."""
        return np.sqrt(self.model**2 + self.contexts**2 + self.experts**2)

    @property
    def robust(self) -> Array:
        return self.mean - SQRT2 * self.disagreement


def value_intervals(
    model: ExpertEnsemble,
    context_distribution: DistributionUncertainty,
    box: Tensor,
    x: Tensor,
    trust: Trust,
    experts: ExpertEnsemble | None = None,
) -> ValueIntervals:
    """At designs ``x`` (N × d_x), for the distribution as far as it is known; ``box`` (p × d_c) are contexts it may yet
    show.

    ``experts`` are those whose disagreement is reported, by default the members of ``model``.
    """
    count = max(len(x), 1)
    joint = context_distribution.thinned(min(max(JOINT_PAIRS // count, FEWEST_JOINT), MOST_JOINT))
    marginal = context_distribution.thinned(min(max(MARGINAL_PAIRS // count, FEWEST_MARGINAL), MAX_EXACT_CONTEXTS))
    width = model.num_experts * (max(len(joint.weights), len(marginal.weights)) + len(box)) * model.gp.x.shape[-2]
    find = _Finder(model, experts or model, joint, marginal, box, trust)
    with torch.no_grad():
        parts = [find(some) for some in torch.split(x, max(1, CHUNK // width))]
    return ValueIntervals(*torch.cat(parts, dim=1).numpy())


class _Finder:
    """The beliefs at some designs, with what belongs to the contexts worked out once."""

    def __init__(
        self,
        model: ExpertEnsemble,
        experts: ExpertEnsemble,
        joint: DistributionUncertainty,
        marginal: DistributionUncertainty,
        box: Tensor,
        trust: Trust,
    ) -> None:
        self.model, self.joint, self.marginal, self.trust = model, joint, marginal, trust
        self.experts = experts
        self.reported_apart = None if experts is model else experts.paired_with(marginal.contexts)
        count = model.num_experts
        self.shares = box.new_full((count,), 1.0 / count) if model.weights is None else model.weights
        self.together = model.paired_with(joint.contexts)
        # Of a distribution known from n contexts the next one is new with probability 1/(n + 1): then from anywhere in
        # the box.
        beats_observations = 0.0 if marginal.exact else 1.0 / (1.0 + marginal.effective)
        box = box[:0] if marginal.exact else box
        self.next_contexts = torch.cat([marginal.contexts, box])
        self.apart = model.paired_with(self.next_contexts)
        anywhere = box.new_full((len(box),), beats_observations / max(len(box), 1))
        self.next_weights = torch.cat([(1.0 - beats_observations) * marginal.weights, anywhere])

    def __call__(self, x: Tensor) -> Tensor:
        """The fields of ``ValueIntervals`` in their order (7 × N)."""
        means, sds = (part.reshape(-1, len(x), len(self.next_weights)) for part in self.apart.moments(x))
        noise_variance = self.trust.noise_at(self.model, pairs(x, self.next_contexts))
        whole = noise_variance.shape[1] > 1
        lower, upper = self._outcome(
            means, sds, noise_variance.reshape(means.shape) if whole else noise_variance[..., None]
        )
        known, weights = len(self.marginal.weights), self.marginal.weights
        means, sds = means[..., :known], sds[..., :known]  # M × N × m
        averages, integrated = self.together.integrated(x, self.joint.weights)  # M × N
        exact = means @ weights
        if known >= len(self.joint.weights):
            averages = exact
        mean, of_model = self.shares @ averages, self.shares @ integrated.square()
        of_experts = self.shares @ (averages - mean).square()
        # The variance of f over contexts, expected under the belief: of its mean, and what is not known together.
        over_contexts = self.shares @ self.marginal.variance(means)
        if self.marginal.groups is None:
            over_contexts = over_contexts + (self.shares @ (sds.square() @ weights) - of_model).clamp_min(0.0)
        from_model, from_experts = (_half(self.trust.reach, part) for part in (of_model, of_experts))
        from_contexts = torch.zeros_like(mean) if self.marginal.exact else self._context_half(over_contexts)
        return torch.stack([mean, from_model, from_contexts, from_experts, self._apart(x, means, sds), lower, upper])

    def _apart(self, x: Tensor, means: Tensor, sds: Tensor) -> Tensor:
        """Mean over contexts of the experts' distance from their barycenter (N)."""
        both = (means.flatten(1), sds.flatten(1)) if self.reported_apart is None else self.reported_apart.moments(x)
        return radius(*both, self.experts.weights).reshape(len(x), -1) @ self.marginal.weights

    def _context_half(self, variance: Tensor) -> Tensor:
        """Of a mean over contexts whose ``variance`` is estimated from the same contexts."""
        context_distribution = self.marginal
        freedom = max(
            (context_distribution.effective if context_distribution.count is None else context_distribution.count)
            - 1.0,
            1.0,
        )
        return _half(student_quantile(freedom), variance / max(context_distribution.effective - 1.0, 1.0))

    def _outcome(self, means: Tensor, sds: Tensor, noise_variance: Tensor) -> tuple[Tensor, Tensor]:
        """The 2.5 and 97.5 % quantiles of y (N) over experts and contexts, with noise around f (M × N × m)."""
        if not math.isfinite(self.trust.reach):
            beyond = means.new_full((means.shape[1],), math.inf)
            return -beyond, beyond
        scaling = self.model.scaling
        slope = scaling.slope(scaling.standardize(means))
        variance = (self.trust.reach / Z95 * sds).square() + noise_variance * slope.square()
        weights = (self.shares[:, None] * self.next_weights).flatten()
        flat = means.transpose(0, 1).flatten(1), variance.sqrt().transpose(0, 1).flatten(1)
        lower, upper = mixture_quantiles((0.025, 0.975), *flat, weights)
        return lower, upper


def mixture_quantiles(levels: tuple[float, ...], mean: Tensor, sd: Tensor, weights: Tensor) -> Tensor:
    """Quantiles (L × N) of Σ_k w_k N(mean_k, sd_k²) for each row: ``mean``, ``sd`` N × K, ``weights`` K.

    By Newton's method from the quantile of the normal with the same moments, and by halving where that leaves the
    bracket.
    """
    wanted = mean.new_tensor(levels)[:, None]
    low, high = (ends.expand(len(levels), -1) for ends in ((mean - 10.0 * sd).amin(-1), (mean + 10.0 * sd).amax(-1)))
    close = STEP_TOLERANCE * (high - low)
    center = mean @ weights
    spread = ((sd.square() + (mean - center[:, None]).square()) @ weights).sqrt()
    found = torch.clamp(center + torch.special.ndtri(wanted) * spread, low, high)
    for _ in range(MAX_STEPS):
        z = (found[..., None] - mean) / sd
        excess = torch.special.ndtr(z) @ weights - wanted
        below = excess < 0
        low, high = torch.where(below, found, low), torch.where(below, high, found)
        density = (z.square_().mul_(-0.5).exp_() / sd) @ weights
        newton = found - excess * ROOT_2_PI / density
        step = torch.where((newton >= low) & (newton <= high), newton, 0.5 * (low + high)) - found
        found = found + step
        if not bool((step.abs() > close).any()):
            break
    return found


def _half(reach: float, variance: Tensor) -> Tensor:
    """``reach`` standard deviations; none of nothing, also where the reach is infinite."""
    return torch.where(variance > 0.0, reach * variance.sqrt(), 0.0)
