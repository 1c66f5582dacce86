"""Uncertainty of the context distribution: every context seen, and their effective sample size.

The answer is summed over these and not over the compressed atoms of ``distributions``, which have a bias of their own;
the search may use those, since it needs only to find the design.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from edrbo.contexts.distributions import (
    DISTINCT,
    ContextDistribution,
    ContextHistory,
    Given,
    Levels,
    compress,
    sobol_points,
)
from edrbo.errors import InvalidValueError
from edrbo.streams import stream

BOX_POINTS = 64  # stand for the box when no context was ever seen
MAX_EXACT_CONTEXTS = 8192  # contexts that are summed over one by one; a longer log is cut to …
LONG_LINE, LONG_SPACE = 2048, 512  # … so many, for one context variable and for several
FEW_GROUPS = 4  # contexts not seen that are joined with all that is known exactly of the others


@dataclass(frozen=True, eq=False)
class DistributionUncertainty:
    """The distribution as a random one: Σ_j W_j δ(c_j) with W ~ Dirichlet(effective · weights), the Bayesian bootstrap.

    Under it the mean of g has expectation Σ_j w_j g(c_j) and variance Var_w(g) / (effective + 1). ``effective`` is the
    number of equally weighted contexts that would tell as much, or ``math.inf``: the distribution is the user's, and
    exact.
    """

    contexts: Tensor  # N × d_c
    weights: Tensor  # N, sum to one
    effective: float
    levels: Levels | None = None  # None: all context variables are real
    count: float | None = None  # contexts that tell of the spread of f, if that is another number than ``effective``
    groups: Tensor | None = None  # N: rows of one group share a context seen, beside what is known exactly of others

    def __post_init__(self) -> None:
        if self.weights.shape != self.contexts.shape[:1] or not self.effective > 0:
            raise InvalidValueError(
                f"a distribution on {tuple(self.contexts.shape)} contexts with weights {tuple(self.weights.shape)}, "
                f"known as from {self.effective} of them",
                "give one weight per context and a positive effective number",
            )

    @property
    def exact(self) -> bool:
        return math.isinf(self.effective)

    def thinned(self, size: int) -> DistributionUncertainty:
        """The same distribution on at most ``size`` contexts, which hold its mean; no less and no better known."""
        if len(self.contexts) <= size:
            return self
        discrete = None if self.levels is None else self.levels.discrete
        small = compress(self.contexts, self.weights, size, discrete=discrete)
        return replace(self, contexts=small.atoms, weights=small.weights, groups=None)

    def variance(self, outcomes: Tensor) -> Tensor:
        """Over what is not known of the distribution, of outcomes (... × N) in its contexts: of the means of groups, if
        any."""
        mean = outcomes @ self.weights
        if self.groups is None:
            return (outcomes - mean[..., None]).square() @ self.weights
        share, within = self._by_group
        return ((outcomes * within) @ share - mean[..., None]).square() @ self._group_weights

    @cached_property
    def _by_group(self) -> tuple[Tensor, Tensor]:
        """Which row is in which group (N × G), and each row's weight within its own (N)."""
        assert self.groups is not None
        member = torch.nn.functional.one_hot(self.groups).to(self.weights.dtype)
        return member, self.weights / self._group_weights[self.groups].clamp_min(1e-300)

    @cached_property
    def _group_weights(self) -> Tensor:
        """G."""
        assert self.groups is not None
        total = self.weights.new_zeros(int(self.groups.max()) + 1)
        return total.index_add_(0, self.groups, self.weights)

    def with_one_more(self, anywhere: Tensor) -> DistributionUncertainty:
        """The same once one more context is counted that nobody has seen, from ``anywhere`` (p × d_c): a Dirichlet
        process.

        Of n contexts drawn independently the next one is a new extreme with a probability of some 1/(n + 1), which no
        resampling of those seen knows. A distribution that is exact stays what it is.
        """
        if self.exact or not len(anywhere):
            return self
        share = 1.0 / (1.0 + self.effective)
        contexts, groups = anywhere, None
        within = anywhere.new_full((len(anywhere),), 1.0 / len(anywhere))
        if self.groups is not None:
            contexts, within, own = self._beside_what_is_exact(anywhere)
            groups = torch.cat([self.groups, self.groups.max() + 1 + own])
        return replace(
            self,
            contexts=torch.cat([self.contexts, contexts]),
            weights=torch.cat([(1.0 - share) * self.weights, share * within]),
            effective=self.effective + 1.0,
            count=None if self.count is None else self.count + 1.0,
            groups=groups,
        )

    def smoothed(self, size: int, lower: Tensor, upper: Tensor, seed: int) -> DistributionUncertainty:
        """Each context as a few of a normal around it, together at most ``size``, inside the box from ``lower`` to
        ``upper`` (d_c): a kernel density estimate whose kernels' shares are not known.

        Of n contexts a share has steps of 1/n, and designs that differ by less seem the same. What is exact stays what
        it is, as do levels and contexts that repeat.
        """
        count, d_c = self.contexts.shape
        copies = size // count
        as_is = self.exact or self.groups is not None or self.levels is not None or not d_c or copies < 2
        if as_is or len(np.unique(self.contexts.numpy(), axis=0)) < DISTINCT * count:
            return self
        spread = (self.weights @ (self.contexts - self.weights @ self.contexts).square()).sqrt()
        bandwidth = spread * (4.0 / ((d_c + 2) * self.effective)) ** (1.0 / (d_c + 4))  # Silverman (1986)
        moves = torch.special.ndtri(sobol_points(d_c, copies * count, seed).clamp(1e-6, 1.0 - 1e-6))
        return replace(
            self,
            contexts=(self.contexts.repeat_interleave(copies, 0) + bandwidth * moves).clamp(lower, upper),
            weights=self.weights.repeat_interleave(copies) / copies,
            groups=torch.arange(count).repeat_interleave(copies),
        )

    def _beside_what_is_exact(self, anywhere: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """A few of ``anywhere`` (p × d_c) with every value of what is known exactly: contexts (n × d_c), weights (n,
        sum to one) and groups (n). What is known exactly is what differs between the rows of a group."""
        assert self.groups is not None
        rows = (self.groups == self._group_weights.argmax()).nonzero().squeeze(-1)
        one = self.contexts[rows]
        exact = (one != one[:1]).any(0)
        few = anywhere[torch.linspace(0, len(anywhere) - 1, min(FEW_GROUPS, len(anywhere))).round().long()]
        contexts = torch.where(exact, one, few[:, None]).flatten(0, 1)
        return (
            contexts,
            self._by_group[1][rows].repeat(len(few)) / len(few),
            torch.arange(len(few)).repeat_interleave(len(one)),
        )

    def thinned_to_extremes(self, size: int) -> DistributionUncertainty:
        """The same on at most ``size`` contexts, of which the least and largest in every variable are real ones."""
        if len(self.contexts) <= size:
            return self
        ends = torch.from_numpy(np.unique(torch.cat([self.contexts.argmin(0), self.contexts.argmax(0)]).numpy()))
        inner = torch.ones(len(self.contexts), dtype=torch.bool)
        inner[ends] = False
        rest = replace(self, contexts=self.contexts[inner], weights=self.weights[inner], groups=None)
        if len(ends) >= size or not bool((rest.weights > 0).any()):
            return self.thinned(size)
        few = rest.thinned(size - len(ends))  # keeps the weights' proportions
        mass = rest.weights.sum() * few.weights / few.weights.sum()
        contexts = torch.cat([self.contexts[ends], few.contexts])
        return replace(self, contexts=contexts, weights=torch.cat([self.weights[ends], mass]), groups=None)

    def small_sample(self) -> DistributionUncertainty:
        """With the variance Var / (n − 1) that a mean has whose variance is estimated from the same n contexts, for the
        bootstrap's n + 1."""
        return self if self.exact else replace(self, effective=max(self.effective - 2.0, 0.5))

    def draw(self, count: int, seed: int) -> Tensor:
        """Weights of ``count`` distributions drawn from this belief (count × N)."""
        if self.exact or len(self.weights) == 1:
            return self.weights.expand(count, -1)
        if self.groups is not None:
            whole = replace(
                self, contexts=self.contexts[: len(self._group_weights)], weights=self._group_weights, groups=None
            )
            return whole.draw(count, seed)[:, self.groups] * self._by_group[1]
        rates = self.effective * self.weights.numpy()
        drawn = stream(seed, "laws").standard_gamma(rates, size=(count, len(rates)))
        total = drawn.sum(axis=1, keepdims=True)
        # with an effective number far below one all rates are tiny and a row may round to zero: then it is the mean
        # distribution
        shares = np.where(total > 0.0, drawn / np.where(total > 0.0, total, 1.0), self.weights.numpy())
        return torch.from_numpy(shares)


def distribution_uncertainty(
    context_distribution: ContextDistribution, history: ContextHistory, effective: float
) -> DistributionUncertainty:
    """What ``history``, which counts as ``effective`` equal contexts, tells of the true distribution.

    Only what a method's ``context_distribution`` takes for granted counts: samples given once and for all, and how fast
    it forgets. Of no context at all, the whole box as one context tells it.
    """
    if len(history.lower) == 0:  # no context variables: one empty context, for certain
        return known_distribution(history.lower.new_zeros(1, 0))
    if isinstance(context_distribution, Given):
        return known_distribution(context_distribution.samples, context_distribution.weights, history.levels)
    if len(history.contexts) == 0:
        points = history.box(BOX_POINTS)
        return DistributionUncertainty(points, points.new_full((len(points),), 1.0 / len(points)), 1.0, history.levels)
    half_life = context_distribution.half_life
    weights = history.normalized_weights(half_life)
    if half_life is not None:
        effective = min(effective, float(1.0 / weights.square().sum()))
    return _shortened(DistributionUncertainty(history.contexts, weights, effective, history.levels))


def known_distribution(
    contexts: Tensor, weights: Tensor | None = None, levels: Levels | None = None
) -> DistributionUncertainty:
    """Samples (n × d_c) of a distribution that is known: a forecast, or one context."""
    share = contexts.new_ones(len(contexts)) if weights is None else weights
    return _shortened(DistributionUncertainty(contexts, share / share.sum(), math.inf, levels))


def _shortened(context_distribution: DistributionUncertainty) -> DistributionUncertainty:
    if len(context_distribution.contexts) <= MAX_EXACT_CONTEXTS:
        return context_distribution
    return context_distribution.thinned(LONG_LINE if context_distribution.contexts.shape[1] == 1 else LONG_SPACE)
