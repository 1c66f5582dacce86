"""The cost model: what a run of a design costs, learned from reported costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from edrbo.surrogate.ensemble import ExpertEnsemble, single_gp

Array = NDArray[np.float64]

LATEST = 200  # costs that are learned from: more say little, and would take long


@dataclass(frozen=True, eq=False)
class LearnedCost:
    """exp of a Gaussian process of log cost on the design: above zero, and ``low`` to ``high`` as those that were
    reported.

    Where nothing like it was run it is the typical cost.
    """

    model: ExpertEnsemble
    low: float
    high: float

    def of(self, coded: Array) -> Array:
        """The median cost of coded designs (N × d_x), N."""
        mean, _ = self.model.moments(torch.from_numpy(coded))
        cost: Array = mean[0].exp().numpy().clip(self.low, self.high)
        return cost

    def and_slope(self, coded: Array) -> tuple[Array, Array]:
        """The same, and the gradient by the coded columns (N × d_x)."""
        nothing = torch.zeros(1, 0, dtype=torch.float64)
        mean, sd, pullback = self.model.paired_with(nothing).moments_and_pullback(torch.from_numpy(coded))
        cost = mean[0].exp().numpy()
        gradient = pullback(mean.exp(), torch.zeros_like(sd)).numpy()
        inside = (cost >= self.low) & (cost <= self.high)
        return cost.clip(self.low, self.high), np.where(inside[:, None], gradient, 0.0)


def learn_cost(x: Array, costs: Array) -> LearnedCost | None:
    """From coded designs (n × d_x) and what their runs cost (n); None while all that cost anything cost the same."""
    some = np.flatnonzero(costs > 0.0)[-LATEST:]
    x, costs = x[some], costs[some]
    if len(np.unique(costs)) < 2:
        return None
    model = single_gp().fit(torch.from_numpy(x), torch.from_numpy(np.log(costs)))
    return LearnedCost(model, float(costs.min()), float(costs.max()))
