"""The posterior probability of a chance constraint: that a limit holds in its share of contexts.

f is drawn from the joint posterior of the model over all contexts seen, so that errors at neighboring contexts go
together. Given f, a share v of the n contexts seen breaks the limit; what share of all contexts does so is
Beta(n v + 1, n (1 − v)): the Bayesian bootstrap of the contexts with one more that nobody has seen and that breaks it.
Of contexts drawn independently and a known f that is exact for the design at which the next of them would break the
limit (Clopper and Pearson's bound): it takes 59 contexts, none of which breaks it, to be 95 % sure that 95 % of all
contexts keep it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from edrbo.contexts.distributions import ContextPoints
from edrbo.contexts.uncertainty import DistributionUncertainty
from edrbo.optimizer.goal_posterior import shares_within
from edrbo.optimizer.recommendation import Recommender
from edrbo.records.outcomes import Limit
from edrbo.streams import stream

Array = NDArray[np.float64]

ATOMS = 256  # contexts that are looked at one by one
HALVINGS = 40
BREAKS, KEEPS = (0.0, 1.0), (1.0, 0.0)  # one context more that nobody has seen: kept and broken


@dataclass(frozen=True, eq=False)
class Chance:
    """A limit, and what is known of its outcome and of the distribution of contexts."""

    limit: Limit
    known: Recommender
    context_distribution: DistributionUncertainty

    @classmethod
    def of(cls, limit: Limit, known: Recommender) -> Chance:
        return cls(limit, known, known.context_distribution.thinned(ATOMS))

    @cached_property
    def allowed(self) -> float:
        """Of the contexts seen, the largest share that may break it if f were known; none if that is too much."""
        return allowed_share(self.limit, self.context_distribution)

    def holds(self, x: Tensor) -> Array:
        """Probability (N) that it holds at designs ``x`` (N × d_x) in as large a share of contexts as it asks for."""
        found: Array = probability_of(1.0 - self._shares(x), self.limit.probability, self.context_distribution).mean(
            axis=1
        )
        return found

    def share(self, x: Tensor) -> tuple[float, tuple[float, float]]:
        """The expected share of contexts in which it holds at the design ``x`` (d_x), and a 95 % interval of it.

        Each end allows for one context more than was seen, which breaks the limit or keeps it: where f is known these
        are Clopper and Pearson's ends, and where every context seen keeps the limit the upper one is 1.
        """
        shares = self._shares(x[None])[0]
        if self.context_distribution.exact:
            low, high = np.quantile(shares, [0.025, 0.975])
            return float(shares.mean()), (float(low), float(high))
        low, high = (
            np.quantile(self._drawn(shares, *more), level) for more, level in ((BREAKS, 0.025), (KEEPS, 0.975))
        )
        return float(shares.mean()), (float(low), float(high))

    def _drawn(self, shares: Array, kept: float, broken: float) -> Array:
        """The share of all contexts, drawn for each share (draws) of those seen, with so many contexts more."""
        n, random = self.context_distribution.effective, stream(self.known.seed, "shares")
        good, bad = n * shares + kept, n * (1.0 - shares) + broken
        drawn = random.beta(np.maximum(good, 1e-9), np.maximum(bad, 1e-9))
        return np.asarray(np.where(bad <= 0.0, 1.0, np.where(good <= 0.0, 0.0, drawn)))

    def _shares(self, x: Tensor) -> Array:
        known, context_distribution = self.known, self.context_distribution
        points = ContextPoints(
            context_distribution.contexts, context_distribution.weights, context_distribution.contexts[:0]
        )
        return shares_within(known.model_goal, known.worlds, points, x, known.trust, known.seed)


def probability_of(broken: Array, probability: float, context_distribution: DistributionUncertainty) -> Array:
    """That a limit holds in a share ``probability`` of all contexts if a share ``broken`` of those seen breaks it."""
    if context_distribution.exact:
        return (broken <= 1.0 - probability + 1e-12).astype(np.float64)
    from scipy.special import betainc

    n = context_distribution.effective
    kept = np.maximum(n * (1.0 - broken), 1e-9)
    return np.asarray(betainc(n * broken + 1.0, kept, 1.0 - probability), dtype=np.float64)


def allowed_share(limit: Limit, context_distribution: DistributionUncertainty) -> float:
    """Of the contexts seen, the largest share that may break a limit if f were known; none if that is too much."""
    if context_distribution.exact:
        return 1.0 - limit.probability
    low, high = 0.0, 1.0 - limit.probability
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        sure = float(probability_of(np.array(middle), limit.probability, context_distribution)) >= limit.confidence
        low, high = (middle, high) if sure else (low, middle)
    return low
