"""Wasserstein balls: the exact worst case on finitely many points, and the Lipschitz bound on it.

Where a worst distribution within a Wasserstein ball puts its mass: the exact plan on finitely many points, and good
points.

The mass of atom j may go to any context c'; the plan that lowers the mean of s most spends a budget radius^order on the
mean cost ‖c_j − c'‖^order. With a multiplier λ on the cost every atom goes to argmin_c' s(c') + λ ‖c_j − c'‖^order by
itself. On a fixed set of points λ is found exactly (``cheapest_plans``). Points that hold nearly all of the loss are
found by column generation (``worst_targets``): solve on the points at hand, let every atom go downhill from its target
under the λ found, add where it arrives, solve again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.risk.base import (
    DEFAULT_SUPPORT,
    Field,
    Functional,
    WorstCaseFunctional,
    check_radius,
    held_choices,
)
from edrbo.contexts.distributions import ContextPoints
from edrbo.errors import InvalidValueError

__all__ = ["Wasserstein", "WassersteinLipschitz"]


Array = NDArray[np.float64]
Integers = NDArray[np.intp]

OVER, WITHIN = 0, 1  # the budget
SCORE, COST = 0, 1
MAX_CUTS = 500  # a limit that is not met: ten to thirty cuts are usual
FIRST_STEPS = {1: (1.0, 4.0), 2: (0.5, 1.0, 2.0)}  # in radii, downhill from every atom: by order, what a move is like
ROUNDS = 1  # of column generation, and
DOWNHILL = 3  # steps of every atom in each: at least 0.97 of the loss (tests/functional/test_transport.py)
TARGET_GRID = 0.25  # of the radius: targets on a line are rounded to multiples of it
LONGEST = 0.3  # step, in the unit cube


@dataclass(frozen=True, eq=False)
class Plans:
    """The cheapest plans of b rows: a mixture of two, of which one is over the budget and one within it."""

    over: Tensor  # b × m targets, by index
    within: Tensor  # b × m
    share: Tensor  # b, of ``over``
    multiplier: Tensor  # b, λ

    def distribution(self, weights: Tensor, size: int) -> Tensor:
        """Where the mass of the atoms (m) arrives: b × size."""
        share = self.share.unsqueeze(-1)
        mass = weights.new_zeros(len(share), size)
        return mass.scatter_add_(-1, self.over, share * weights).scatter_add_(-1, self.within, (1.0 - share) * weights)


def moving_costs(atoms: Tensor, targets: Tensor, order: int) -> Tensor:
    """‖c_j − c'_k‖^order (... × m × n) from atoms (m × d_c) to targets (... × n × d_c)."""
    costs = (atoms[:, None] - targets.unsqueeze(-3)).square().sum(-1)
    return costs if order == 2 else costs.sqrt()


def cheapest_plans(values: Tensor, weights: Tensor, costs: Tensor, budget: float) -> Plans:
    """Plans for values (b × n) at targets of which the atoms are the first, weights (m) and moving costs (m × n), or
    those of each row's own targets (b × m × n).

    The mean score of a plan plus λ · its mean cost is a line in λ that touches the concave dual function from above.
    Starting with a plan over the budget and one within it, their lines are intersected; the plan that is best there
    replaces one of the two, until no plan is better at the intersection: then λ is exact.
    """
    v, w, c = values.numpy(), weights.numpy(), costs.numpy()  # rows are few and short: torch is slow to start
    low = v.min(axis=-1, keepdims=True)
    least_gain = 1e-13 * np.maximum(v.max(axis=-1) - low[:, 0], 1e-300)
    # λ = 0: all mass to the nearest of the minimizers; λ = ∞: all mass stays.
    plans = np.empty((2, len(v), len(w)), dtype=np.intp)
    plans[OVER] = np.where((v == low)[:, None], c, np.inf).argmin(axis=-1)
    plans[WITHIN] = np.arange(len(w))
    lines = np.stack([_lines(v, w, c, plan) for plan in plans])  # 2 × b × 2
    costly, cheap = lines[OVER, :, COST] > budget, lines[WITHIN, :, COST] < budget
    live = np.flatnonzero(costly & cheap & (lines[WITHIN, :, SCORE] > lines[OVER, :, SCORE]))
    scores, own = v[live], c if c.ndim == 2 else c[live]
    for _ in range(MAX_CUTS):
        if len(live) == 0:
            break
        over, within = lines[OVER, live], lines[WITHIN, live]
        multiplier = (within[:, SCORE] - over[:, SCORE]) / (over[:, COST] - within[:, COST])
        total = multiplier[:, None, None] * own
        total += scores[:, None]
        plan = total.argmin(axis=-1)
        line = _lines(scores, w, own, plan)
        known, found = over[:, SCORE] + multiplier * over[:, COST], line[:, SCORE] + multiplier * line[:, COST]
        better = known - found > least_gain[live]
        if not better.all():
            live, plan, line = live[better], plan[better], line[better]
            scores, own = scores[better], own if own.ndim == 2 else own[better]
        side = np.where(line[:, COST] > budget, OVER, WITHIN)
        plans[side, live], lines[side, live] = plan, line
    (over_score, over_cost), (within_score, within_cost) = lines[OVER].T, lines[WITHIN].T
    gap = over_cost - within_cost
    positive = np.where(gap > 0, gap, 1.0)
    share = np.clip((budget - within_cost) / positive, 0.0, 1.0)
    # where even the plan to the minimum is within the budget, cost is no matter
    price = np.where(over_cost > budget, np.maximum(within_score - over_score, 0.0) / positive, 0.0)
    return Plans(*map(torch.from_numpy, (plans[OVER], plans[WITHIN], share, price)))


def _lines(values: Array, weights: Array, costs: Array, plan: Integers) -> Array:
    """Mean score and mean moving cost of plans (b × m targets): b × 2."""
    size = values.shape[1]
    places = np.arange(0, plan.size * size, size) if costs.ndim == 3 else np.arange(0, len(weights) * size, size)
    at = plan + (places.reshape(plan.shape) if costs.ndim == 3 else places)  # in the costs as one row of numbers
    found = np.take(values, plan + np.arange(0, len(plan) * size, size)[:, None])
    line: Array = np.empty((len(plan), 2))
    line[:, SCORE], line[:, COST] = found @ weights, np.take(costs, at) @ weights
    return line


def worst_targets(field: Field, points: ContextPoints, radius: float, order: int, rounds: int = ROUNDS) -> Tensor:
    """Contexts (k × d_c) the worst distributions of a ball move mass to, for the designs of ``field``; at most 2 m a
    design.

    Targets stay in the box that holds all of ``points``: its support has the corners of the context box.
    """
    box = points.all.amin(0), points.all.amax(0)
    mass = points.weights > 0
    atoms, weights = points.atoms[mass], points.weights[mass]
    if radius == 0.0 or atoms.shape[1] == 0:
        return atoms[:0]
    levels, field = points.levels, held_choices(field, points.levels)
    own = atoms.expand(field.count, -1, -1)
    scores, slopes = field.slopes_everywhere(own)  # k × m, k × m × d_c
    downhill = -slopes / torch.linalg.vector_norm(slopes, dim=-1, keepdim=True).clamp_min(1e-300)
    steps = torch.cat([own + step * radius * downhill for step in FIRST_STEPS[order]], dim=1).clamp(*box)
    fixed = torch.cat([points.atoms[~mass], points.support])
    if levels is not None:
        near = levels.neighbors(atoms)
        near = near[((near >= box[0]) & (near <= box[1])).all(-1)]
        steps, fixed = levels.snap(steps), torch.cat([fixed, near])
    others = torch.cat([fixed.expand(field.count, -1, -1), steps], dim=1)
    targets, values = torch.cat([own, others], dim=1), torch.cat([scores, field.everywhere(others)], dim=1)
    costs, budget = moving_costs(atoms, targets, order), radius**order
    for _ in range(rounds):
        price = cheapest_plans(values, weights, costs, budget).multiplier
        best = torch.addcmul(values[:, None], price[:, None, None], costs).argmin(-1)
        start = targets.gather(1, best[..., None].expand_as(own))
        arrived, reached = _go_downhill(field, own, start, price[:, None], radius, order, box)
        if levels is not None:
            arrived = levels.snap(arrived)
            reached = field.everywhere(arrived)
        targets, values = torch.cat([targets, arrived], dim=1), torch.cat([values, reached], dim=1)
        costs = torch.cat([costs, moving_costs(atoms, arrived, order)], dim=-1)
    plans = cheapest_plans(values, weights, costs, budget)
    used = torch.zeros(values.shape, dtype=torch.bool)
    used.scatter_(1, plans.over, True).scatter_(1, plans.within, True)
    used[:, : len(atoms)] = False
    found = targets[used]
    if found.shape[1] == 1 and levels is None:
        # Where mass arrives it costs as much to go on as it brings: on a line targets may be moved a little, and so
        # become fewer.
        found = ((found / (TARGET_GRID * radius)).round() * TARGET_GRID * radius).clamp(*box)
    return torch.from_numpy(np.unique(found.numpy(), axis=0))


def _go_downhill(
    field: Field,
    atoms: Tensor,
    start: Tensor,
    price: Tensor,
    radius: float,
    order: int,
    box: tuple[Tensor, Tensor],
) -> tuple[Tensor, Tensor]:
    """From each ``start`` (k × m × d_c) a few steps down s(c') + price · ‖c_j − c'‖^order: ends and scores there.

    At order 2 the first step is the one that solves the problem for a linear s; at order 1 it is a radius long. A step
    that does not lead down is taken back and shortened.
    """
    here = start
    scores, slopes = field.slopes_everywhere(here)
    total = scores + price * _own_cost(atoms, here, order)
    first = (0.5 / price.clamp_min(1e-300)).clamp_max(1e3) if order == 2 else torch.full_like(price, radius)
    length = first.expand_as(scores)
    for step in range(1, DOWNHILL + 1):
        away = here - atoms
        if order == 2:
            move = -length[..., None] * (slopes + 2.0 * price[..., None] * away)
        else:
            distance = torch.linalg.vector_norm(away, dim=-1, keepdim=True).clamp_min(1e-9)
            gradient = slopes + price[..., None] * away / distance
            size = torch.linalg.vector_norm(gradient, dim=-1, keepdim=True).clamp_min(1e-300)
            move = -length[..., None] * gradient / size
        there = (here + move.clamp(-LONGEST, LONGEST)).clamp(*box)
        last = step == DOWNHILL  # nobody asks where to go on from there
        there_scores, there_slopes = (field.everywhere(there), slopes) if last else field.slopes_everywhere(there)
        there_total = there_scores + price * _own_cost(atoms, there, order)
        lower = there_total < total
        here, slopes = (torch.where(lower[..., None], *both) for both in ((there, here), (there_slopes, slopes)))
        scores, total = torch.where(lower, there_scores, scores), torch.where(lower, there_total, total)
        length = length * torch.where(lower, 1.5, 0.3)
    return here, scores


def _own_cost(atoms: Tensor, targets: Tensor, order: int) -> Tensor:
    """‖c_j − c'_j‖^order (k × m)."""
    square = (atoms - targets).square().sum(-1)
    return square if order == 2 else square.sqrt()


CHUNK = 2**18  # entries of (rows × atoms × targets) held at once: stays in a CPU cache


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

    def value_and_slopes(
        self, values: Tensor, points: ContextPoints, slope: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        by_slope = None if slope is None else torch.full_like(slope, -self.radius)
        return self(values, points, slope), points.mass.expand_as(values), by_slope


@dataclass(frozen=True)
class Wasserstein(WorstCaseFunctional):
    """min { pᵀs : W_order(p, w) ≤ radius }, p on the atoms and the support, unit-coded distances.

    Exact on those points. Over the whole context box it is as exact as the support: the general one (``support_size``)
    ranks designs; ``refine`` gives the points that matter for one design, with which at least 0.97 of the loss
    E s − worst case is caught (one to three context variables, radius 0.02 to 0.3), with more ``rounds`` 0.99.
    """

    radius: float
    order: Literal[1, 2] = 1
    support_size: int = DEFAULT_SUPPORT
    rounds: int = ROUNDS
    has_kinks: ClassVar[bool] = False
    locally_linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_radius(self.radius)
        if self.order not in (1, 2):
            raise InvalidValueError(f"order is {self.order}", "Wasserstein-1 and Wasserstein-2 are known")

    def worst_case(self, values: Tensor, points: ContextPoints) -> Tensor:
        costs = _costs(points, self.order)
        rows = values.reshape(-1, values.shape[-1])
        budget, step = self.radius**self.order, max(1, CHUNK // costs.numel())
        worst = [
            cheapest_plans(some, points.weights, costs, budget).distribution(points.weights, len(points.all))
            for some in torch.split(rows, step)
        ]
        return torch.cat(worst).reshape(values.shape) if len(rows) else torch.zeros_like(values)

    def refine(self, field: Field, points: ContextPoints) -> Tensor:
        return worst_targets(field, points, self.radius, self.order, self.rounds)

    def rough(self) -> Functional:
        return _OneTarget(self.radius, self.order)


@lru_cache(maxsize=4)
def _costs(points: ContextPoints, order: int) -> Tensor:
    """``moving_costs`` (m × (m + p)) between ``points``, which one maximization asks for many times."""
    return moving_costs(points.atoms, points.all, order)


@dataclass(frozen=True)
class _OneTarget(Functional):
    """The worst case when mass moves to one point only, the same share of every atom: above ``Wasserstein``."""

    radius: float
    order: Literal[1, 2]
    support_size: int = 0

    def __call__(self, values: Tensor, points: ContextPoints, slope: Tensor | None = None) -> Tensor:
        cost = points.weights @ _costs(points, self.order)
        share = (self.radius**self.order / cost.clamp_min(1e-300)).clamp_max(1.0)
        mean = (points.mass * values).sum(-1)
        return mean + (share * (values - mean[..., None])).amin(-1).clamp_max(0.0)
