"""Where a worst law within a Wasserstein ball puts its mass: the exact plan on finitely many points, and good points.

The mass of atom j may go to any context c'; the plan that lowers the mean of s most spends a budget radius^order on the
mean cost ‖c_j − c'‖^order. With a multiplier λ on the cost every atom goes to argmin_c' s(c') + λ ‖c_j − c'‖^order by
itself. On a fixed set of points λ is found exactly (``cheapest_plans``). Points that hold nearly all of the loss are
found by column generation (``worst_targets``): solve on the points at hand, let every atom go downhill from its target
under the λ found, add where it arrives, solve again.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edrbo.acquisition.functional.base import Field
from edrbo.context.laws import ContextPoints

MAX_CUTS = 500  # a limit that is not met: ten to thirty cuts are usual
FIRST_STEPS = {1: (1.0, 4.0), 2: (0.5, 1.0, 2.0)}  # in radii, downhill from every atom: by order, what a move is like
ROUNDS = 1  # of column generation, and
DOWNHILL = 3  # steps of every atom in each: at least 0.97 of the loss (tests/functional/test_transport.py)
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
    """‖c_j − c'_k‖^order (m × n)."""
    costs = (atoms[:, None] - targets[None]).square().sum(-1)
    return costs if order == 2 else costs.sqrt()


def cheapest_plans(values: Tensor, weights: Tensor, costs: Tensor, budget: float) -> Plans:
    """Plans for values (b × n) at targets of which the atoms are the first, weights (m) and moving costs (m × n).

    The mean score of a plan plus λ · its mean cost is a line in λ that touches the concave dual function from above.
    Starting with a plan over the budget and one within it, their lines are intersected; the plan that is best there
    replaces one of the two, until no plan is better at the intersection: then λ is exact.
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
    positive = torch.where(gap > 0, gap, 1.0)
    share = ((budget - within_line[1]) / positive).clamp(0.0, 1.0)
    # where even the plan to the minimum is within the budget, cost is no matter
    multiplier = torch.where(over_line[1] > budget, (within_line[0] - over_line[0]).clamp_min(0.0) / positive, 0.0)
    return Plans(over, within, share, multiplier)


def _line(values: Tensor, weights: Tensor, costs: Tensor, plan: Tensor) -> Tensor:
    """Mean score and mean moving cost of plans (b × m targets): 2 × b."""
    score = (weights * values.gather(-1, plan)).sum(-1)
    cost = (weights * costs.expand(len(plan), -1, -1).gather(-1, plan.unsqueeze(-1)).squeeze(-1)).sum(-1)
    return torch.stack([score, cost])


def worst_targets(field: Field, points: ContextPoints, radius: float, order: int, rounds: int = ROUNDS) -> Tensor:
    """Contexts (k × d_c) the worst law of a ball moves mass to, for scores ``field`` of one design; k at most 2 m.

    Targets stay in the box that holds all of ``points``: its support has the corners of the context box.
    """
    lower, upper = points.all.amin(0), points.all.amax(0)
    mass = points.weights > 0
    atoms, weights = points.atoms[mass], points.weights[mass]
    if radius == 0.0 or atoms.shape[1] == 0:
        return atoms[:0]
    scores, slopes = field.values_and_slopes(atoms)
    downhill = -slopes / torch.linalg.vector_norm(slopes, dim=-1, keepdim=True).clamp_min(1e-300)
    steps = torch.cat([atoms + step * radius * downhill for step in FIRST_STEPS[order]]).clamp(lower, upper)
    others = torch.cat([points.atoms[~mass], points.support, steps])
    targets, values = torch.cat([atoms, others]), torch.cat([scores, field.values(others)])
    for _ in range(rounds):
        plans = cheapest_plans(values[None], weights, moving_costs(atoms, targets, order), radius**order)
        price = float(plans.multiplier[0])
        best = (values + price * moving_costs(atoms, targets, order)).argmin(-1)
        arrived, reached = _go_downhill(field, atoms, targets[best], price, radius, order, (lower, upper))
        targets, values = torch.cat([targets, arrived]), torch.cat([values, reached])
    plans = cheapest_plans(values[None], weights, moving_costs(atoms, targets, order), radius**order)
    used = torch.zeros(len(targets), dtype=torch.bool)
    used[plans.over[0]] = used[plans.within[0]] = True
    used[: len(atoms)] = False
    return targets[used]


def _go_downhill(
    field: Field, atoms: Tensor, start: Tensor, price: float, radius: float, order: int, box: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """From each ``start`` (m × d_c) a few steps down s(c') + price · ‖c_j − c'‖^order: ends and scores there.

    At order 2 the first step is the one that solves the problem for a linear s; at order 1 it is a radius long. A step
    that does not lead down is taken back and shortened.
    """
    here = start
    scores, slopes = field.values_and_slopes(here)
    total = scores + price * _own_cost(atoms, here, order)
    length = torch.full_like(scores, min(0.5 / max(price, 1e-300), 1e3) if order == 2 else radius)
    for _ in range(DOWNHILL):
        away = here - atoms
        if order == 2:
            move = -length[:, None] * (slopes + 2.0 * price * away)
        else:
            distance = torch.linalg.vector_norm(away, dim=-1, keepdim=True).clamp_min(1e-9)
            gradient = slopes + price * away / distance
            size = torch.linalg.vector_norm(gradient, dim=-1, keepdim=True).clamp_min(1e-300)
            move = -length[:, None] * gradient / size
        there = (here + move.clamp(-LONGEST, LONGEST)).clamp(*box)
        there_scores, there_slopes = field.values_and_slopes(there)
        there_total = there_scores + price * _own_cost(atoms, there, order)
        lower = there_total < total
        here, slopes = torch.where(lower[:, None], there, here), torch.where(lower[:, None], there_slopes, slopes)
        scores, total = torch.where(lower, there_scores, scores), torch.where(lower, there_total, total)
        length = length * torch.where(lower, 1.5, 0.3)
    return here, scores


def _own_cost(atoms: Tensor, targets: Tensor, order: int) -> Tensor:
    """‖c_j − c'_j‖^order (m)."""
    square = (atoms - targets).square().sum(-1)
    return square if order == 2 else square.sqrt()
