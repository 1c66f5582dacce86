"""Wasserstein balls: the exact worst case on finitely many points, and the Lipschitz bound on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from edrbo.acquisition.functional.base import DEFAULT_SUPPORT, Functional, WorstCase, check_radius
from edrbo.context.laws import ContextPoints
from edrbo.errors import InvalidValueError

__all__ = ["Wasserstein", "WassersteinLipschitz"]

CHUNK = 2**18  # entries of (rows × atoms × targets) held at once: stays in a CPU cache
MAX_CUTS = 500  # a limit that is not met: ten to thirty cuts are usual


@dataclass(frozen=True)
class WassersteinLipschitz(Functional):
    """Σ_j w_j s_j − radius · max_c ‖∇_c s(x, c)‖, a lower bound on the Wasserstein-1 worst case.

    ``slope`` (...) is that maximum and must carry its gradient in x.
    """

    radius: float
    support_size: int = DEFAULT_SUPPORT
    needs_slope: ClassVar[bool] = True
    has_kinks: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_radius(self.radius)

    def __call__(self, values: Tensor, points: ContextPoints, slope: Tensor | None = None) -> Tensor:
        if slope is None:
            raise InvalidValueError(
                "WassersteinLipschitz needs the slope of the score in the context",
                "pass slope = max over contexts of the gradient norm, one number per row of values",
            )
        return (points.mass * values).sum(-1) - self.radius * slope


@dataclass(frozen=True)
class Wasserstein(WorstCase):
    """min { pᵀs : W_order(p, w) ≤ radius }, p on the atoms and the support, unit-coded distances.

    With the cost d^order the constraint is a budget radius^order on the mean cost of moving every atom's
    mass; its multiplier λ ≥ 0 is found exactly.
    """

    radius: float
    order: Literal[1, 2] = 1
    support_size: int = DEFAULT_SUPPORT
    locally_linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_radius(self.radius)
        if self.order not in (1, 2):
            raise InvalidValueError(f"order is {self.order}", "Wasserstein-1 and Wasserstein-2 are known")

    def worst_case(self, values: Tensor, points: ContextPoints) -> Tensor:
        everywhere = points.all
        costs = (points.atoms[:, None] - everywhere[None]).square().sum(-1)
        if self.order == 1:
            costs = costs.sqrt()
        rows = values.reshape(-1, values.shape[-1])
        step = max(1, CHUNK // costs.numel())
        worst = [
            _cheapest_plans(rows[start : start + step], points.weights, costs, self.radius**self.order)
            for start in range(0, len(rows), step)
        ]
        return torch.cat(worst).reshape(values.shape) if worst else torch.zeros_like(values)


def _cheapest_plans(values: Tensor, weights: Tensor, costs: Tensor, budget: float) -> Tensor:
    """Worst-case distributions (b × n) for values (b × n), weights (m) and moving costs (m × n).

    For a multiplier λ the best plan sends atom j to argmin_k s_k + λ cost_jk. Its mean score plus
    λ · its mean cost is a line that touches the concave dual function from above. Starting with a plan
    over the budget and one within it, their lines are intersected; the plan that is best there replaces
    one of the two, until no plan is better at the intersection: then λ is exact, and the mixture of the two
    plans that spends the budget is the worst case.
    """
    atoms = torch.arange(len(weights))
    low = values.amin(-1, keepdim=True)
    scale = (values.amax(-1) - low.squeeze(-1)).clamp_min(1e-300)
    # λ = 0: all mass to the nearest of the minimizers; λ = ∞: all mass stays.
    over = costs.masked_fill((values != low).unsqueeze(1), torch.inf).argmin(-1)
    within = atoms.expand_as(over).clone()
    over_line, within_line = _line(values, weights, costs, over), _line(values, weights, costs, within)
    live = (over_line[1] > budget) & (within_line[1] < budget) & (within_line[0] > over_line[0])
    for _ in range(MAX_CUTS):
        rows = live.nonzero().squeeze(-1)
        if len(rows) == 0:
            break
        (score_a, cost_a), (score_b, cost_b) = over_line[:, rows], within_line[:, rows]
        multiplier = (score_b - score_a) / (cost_a - cost_b)
        totals = torch.addcmul(values[rows, None], multiplier[:, None, None], costs)
        plan = torch.from_numpy(totals.numpy().argmin(-1))  # several times faster than PyTorch's
        line = _line(values[rows], weights, costs, plan)
        gain = score_a + multiplier * cost_a - (line[0] + multiplier * line[1])
        live[rows] = better = gain > 1e-13 * scale[rows]
        for side, side_line, chosen in (
            (over, over_line, better & (line[1] > budget)),
            (within, within_line, better & (line[1] <= budget)),
        ):
            side[rows[chosen]] = plan[chosen]
            side_line[:, rows[chosen]] = line[:, chosen]
    gap = over_line[1] - within_line[1]
    share = ((budget - within_line[1]) / torch.where(gap > 0, gap, 1.0)).clamp(0.0, 1.0).unsqueeze(-1)
    worst = torch.zeros_like(values).scatter_add_(-1, over, share * weights)
    return worst.scatter_add_(-1, within, (1.0 - share) * weights)


def _line(values: Tensor, weights: Tensor, costs: Tensor, plan: Tensor) -> Tensor:
    """Mean score and mean moving cost of plans (b × m targets): 2 × b."""
    score = (weights * values.gather(-1, plan)).sum(-1)
    cost = (weights * costs.expand(len(plan), -1, -1).gather(-1, plan.unsqueeze(-1)).squeeze(-1)).sum(-1)
    return torch.stack([score, cost])
