"""The largest gain for the cost.

What a run may gain is its hopeful value a(x) beyond the level m that is had already: an optimism about an improvement.
Gain over cost, (a − m) / c, is right as long as much is left to spend; with the last run the gain alone is. Nobody says
here how much is left, so the geometric mean of the two is made largest, (a − m) / √c, by Dinkelbach's method: maximize
a − λ√c with λ the best ratio so far, and again. Each round finds a ratio at least as large, and where all costs are the
same the first round's design stays. Where nothing is to be gained even hopefully there is no such ratio, and the most
hopeful design is taken whatever it costs: all that a run can then do is show that hope or caution was wrong, and there
it does so soonest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.maximizer import Objective
from edrbo.acquisition.wrapped import Wrapped, wrap

Array = NDArray[np.float64]

ROUNDS = 2  # after the one that does not look at the cost
WORTHWHILE = 1e-3  # by how much a round must raise the ratio to count

Search = Callable[[Sequence[Objective]], Tensor]  # a ladder → the best design (d_x)


class Costs(Protocol):
    """What runs of designs cost, above zero."""

    def of(self, coded: Array) -> Array:
        """Of designs (N × d_x), N."""

    def and_slope(self, coded: Array) -> tuple[Array, Array]:
        """The same, and the gradient (N × d_x)."""


@dataclass(frozen=True, eq=False)
class Roots:
    """The square roots of ``costs``."""

    costs: Costs

    def of(self, coded: Array) -> Array:
        root: Array = np.sqrt(self.costs.of(coded))
        return root

    def and_slope(self, coded: Array) -> tuple[Array, Array]:
        cost, slope = self.costs.and_slope(coded)
        root = np.sqrt(cost)
        return root, 0.5 * slope / root[:, None]


@dataclass(frozen=True, eq=False)
class Costly(Wrapped):
    """``objective`` less ``price`` · cost."""

    costs: Costs
    price: float

    def __call__(self, x: Tensor) -> Tensor:
        value: Tensor = self.objective(x)
        return value - self.price * torch.from_numpy(self.costs.of(x.numpy()))

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient = self.objective.value_and_gradient(x)
        cost, slope = map(torch.from_numpy, self.costs.and_slope(x.numpy()))
        return value - self.price * cost, gradient - self.price * slope


def best_per_cost(ladder: Sequence[Objective], costs: Costs, level: float, search: Search) -> Tensor:
    """The design (d_x) with the largest (objective − level) / √cost; where nothing is to be gained, the objective's."""
    best, roots = search(ladder), Roots(costs)
    ratio = _ratio(ladder[-1], roots, level, best)
    for _ in range(ROUNDS):
        if not 0.0 < ratio < math.inf:
            break
        x = search(wrap(ladder, partial(Costly, costs=roots, price=ratio)))
        found = _ratio(ladder[-1], roots, level, x)
        if not found > (1.0 + WORTHWHILE) * ratio:
            break
        best, ratio = x, found
    return best


def _ratio(objective: Objective, costs: Costs, level: float, x: Tensor) -> float:
    with torch.no_grad():
        return (float(objective(x[None])) - level) / float(costs.of(x[None].numpy())[0])
