"""Worst expectation of f over all context distributions within a Wasserstein-1 distance of P, by its dual.

min_{W₁(Q, P) ≤ ρ} E_Q f(x, ·) = max_{λ ≥ 0} −λρ + E_{c~P} min_{c'} [f(x, c') + λ‖c − c'‖], with the Euclidean
distance in the unit cube. With one context variable, here, P and the moves c' live on one fine grid: the quadrature
nodes and the ends. With several see ``transported_loss``.

The worst expectation within a Wasserstein-1 ball when there are several context variables.

For a price λ of moving mass, every bit of mass at c goes to the c' of the cube with the least f(x, c') + λ‖c − c'‖. The
best c' is found on a coarse part of a lattice, followed to the full lattice by halving steps, and a parabola along each
axis takes the place of the lattice's last digit. The value as a function of λ is concave; its slope is how far mass
moves on average less the radius.

Accuracy, as a share of the range of f(x, ·) over the cube: 3e-4 with two context variables and 3e-3 with three, the
worst of 36 cases with kinks and steep slopes (``tests/bench/test_robust.py`` has some of them).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from edrbo.bench.problems.oracle.distributions import Array, Product, tensor_rule
from edrbo.errors import InvalidValueError

Integers = NDArray[np.int64]
# f at every design (n, d_x) and every node of the tensor product of lines (m_k,): (n, m_1 ⋯ m_d_c).
OverGrid = Callable[[Array, Sequence[Array]], Array]
NEGLIGIBLE = 1e-10  # nodes with less mass than this, relative to the heaviest, are left out
TOLERANCE = 1e-6  # of the maximum over λ, as a share of the range of f


@dataclass(frozen=True)
class Effort:
    """``panels`` × ``order`` nodes of P a line, ``side`` points of the lattice a line, every ``stride``-th coarse."""

    panels: int
    order: int
    side: int
    stride: int


EXACT = {2: Effort(24, 2, 129, 4), 3: Effort(10, 2, 49, 6)}
# To look for designs worth a second look: some ten times faster.
ROUGH = {2: Effort(5, 3, 33, 4), 3: Effort(3, 2, 17, 4)}


def transported_loss(
    over_grid: OverGrid,
    context_distribution: Product,
    breaks: tuple[float, ...],
    x: Array,
    radius: float,
    rough: bool = False,
) -> Array:
    """What the worst distribution takes off the expectation: (n, d_x) → (n,)."""
    efforts = ROUGH if rough else EXACT
    if context_distribution.d_c not in efforts:
        raise InvalidValueError(
            f"the worst case over {context_distribution.d_c} context variables is not known",
            "problems of one to three have it",
        )
    plan = _plan(context_distribution, breaks, efforts[context_distribution.d_c])
    return np.array([_loss_of_one(over_grid, plan, row[None], radius) for row in x], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class TransportGrid:
    """What does not depend on the design. ``kept`` nodes of the tensor rule are the ``sources`` (m, d_c) of mass
    ``weights`` (m,); ``corners`` (k, d_c) are coarse points of the lattice, ``distance`` (m, k) away.
    """

    lines: tuple[Array, ...]
    kept: Integers
    sources: Array
    weights: Array
    effort: Effort
    corners: Integers
    distance: Array

    @property
    def lattice(self) -> Array:
        return np.linspace(0.0, 1.0, self.effort.side)


@lru_cache(maxsize=8)
def _plan(context_distribution: Product, breaks: tuple[float, ...], effort: Effort) -> TransportGrid:
    rules = [component.quadrature(breaks, effort.panels, effort.order) for component in context_distribution.components]
    nodes, weights = tensor_rule(rules)
    kept = np.flatnonzero(weights > NEGLIGIBLE * weights.max())
    steps = np.arange(0, effort.side, effort.stride)
    corners = _all_pairs([steps] * context_distribution.d_c)
    sources = nodes[kept]
    distance = np.sqrt(((sources[:, None, :] - corners / (effort.side - 1)) ** 2).sum(-1))
    mass = weights[kept] / weights[kept].sum()
    return TransportGrid(tuple(line for line, _ in rules), kept, sources, mass, effort, corners, distance)


def _all_pairs(lines: Sequence[Integers]) -> Integers:
    return np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, len(lines))


def _loss_of_one(over_grid: OverGrid, plan: TransportGrid, x: Array, radius: float) -> float:
    """The loss of one design (1, d_x)."""
    d_c = plan.sources.shape[1]
    staying = over_grid(x, plan.lines)[0, plan.kept]
    table = over_grid(x, [plan.lattice] * d_c).reshape((plan.effort.side,) * d_c)
    mean = float(staying @ plan.weights)
    scale = float(max(table.max(), staying.max()) - min(table.min(), staying.min()))
    if radius == 0 or scale == 0:
        return 0.0

    def dual(price: float) -> tuple[float, float]:
        value, moved = _best_moves(plan, table, staying, price)
        return float(value @ plan.weights) - price * radius, float(moved @ plan.weights) - radius

    return mean - min(mean, maximize_concave(dual, scale / radius, TOLERANCE * scale))


def _best_moves(plan: TransportGrid, table: Array, staying: Array, price: float) -> tuple[Array, Array]:
    """min over c' of f(x, c') + price·‖c − c'‖ for every source, and how far its mass moves: (m,), (m,)."""
    effort = plan.effort
    coarse = table[tuple(plan.corners.T)]
    place = plan.corners[(coarse + price * plan.distance).argmin(axis=1)]
    around = _all_pairs([np.arange(-1, 2)] * plan.corners.shape[1])
    step = effort.stride
    while step > 1:
        step = (step + 1) // 2
        near = np.clip(place[:, None, :] + step * around, 0, effort.side - 1)
        costs, _ = _cost(plan, table, near, price)
        place = near[np.arange(len(near)), costs.argmin(axis=1)]
    (cost,), (moved,) = (part.T for part in _cost(plan, table, place[:, None, :], price))
    cost = cost - _below_the_lattice(plan, table, place, cost, price)
    stays = staying <= cost
    return np.where(stays, staying, cost), np.where(stays, 0.0, moved)


def _cost(plan: TransportGrid, table: Array, places: Integers, price: float) -> tuple[Array, Array]:
    """f + price·distance and the distance at lattice points (m, k, d_c) for the m sources: (m, k) each."""
    distance = np.sqrt(((places / (plan.effort.side - 1) - plan.sources[:, None, :]) ** 2).sum(-1))
    return table[tuple(np.moveaxis(places, -1, 0))] + price * distance, distance


def _below_the_lattice(plan: TransportGrid, table: Array, place: Integers, cost: Array, price: float) -> Array:
    """How far the cost falls between lattice points, by the parabola through three of them along each axis."""
    fall = np.zeros_like(cost)
    for axis in np.eye(place.shape[1], dtype=np.int64):
        both = np.stack([place - axis, place + axis], axis=1)
        inside = ((both >= 0) & (both < plan.effort.side)).all(axis=(1, 2))
        costs, _ = _cost(plan, table, np.clip(both, 0, plan.effort.side - 1), price)
        left, right = costs.T
        curvature = left - 2 * cost + right
        valley = inside & (left >= cost) & (right >= cost) & (curvature > 0)
        fall += np.where(valley, (right - left) ** 2 / np.where(valley, 8 * curvature, 1.0), 0.0)
    return fall


def maximize_concave(function: Callable[[float], tuple[float, float]], guess: float, tolerance: float) -> float:
    """Maximum over λ ≥ 0 of a concave function given with its slope: between two tangents until they meet it."""
    low, (at_low, slope_low) = 0.0, function(0.0)
    if slope_low <= 0:
        return at_low
    high, (at_high, slope_high) = guess, function(guess)
    while slope_high > 0:
        low, at_low, slope_low = high, at_high, slope_high
        high = 2 * high
        at_high, slope_high = function(high)
    best = max(at_low, at_high)
    for _ in range(100):
        meet = (at_high - at_low + slope_low * low - slope_high * high) / (slope_low - slope_high)
        bound = at_low + slope_low * (meet - low)
        if bound - best <= tolerance or not low < meet < high:
            break
        value, slope = function(meet)
        best = max(best, value)
        if slope > 0:
            low, at_low, slope_low = meet, value, slope
        else:
            high, at_high, slope_high = meet, value, slope
    return best


GOLDEN = (np.sqrt(5) - 1) / 2
# The bracket of λ shrinks to 4e-9 of the steepest slope.
ITERATIONS = 40
CHUNK_ELEMENTS = 1 << 18
ROUGH_RULE = (16, 4)  # panels and nodes a panel


def expected_loss(
    over_grid: OverGrid,
    context_distribution: Product,
    breaks: tuple[float, ...],
    x: Array,
    radius: float,
    rough: bool = False,
) -> Array:
    """What the worst distribution takes off the expectation: (n, d_x) → (n,), exactly 0 at radius 0.

    Both are taken on one grid, so that its errors cancel when the loss is taken off an exact expectation. ``rough`` is
    faster and good enough to look for designs worth a second look.
    """
    if not (np.isfinite(radius) and radius >= 0):
        raise InvalidValueError(f"radius must be a non-negative number, got {radius}.")
    if context_distribution.d_c > 1:
        return transported_loss(over_grid, context_distribution, breaks, x, radius, rough)
    rule = ROUGH_RULE if rough else ()
    line, weights = _with_ends(*context_distribution.components[0].quadrature(breaks, *rule))
    rows = max(1, CHUNK_ELEMENTS // len(line))
    parts = [loss_on_line(over_grid(x[i : i + rows], [line]), line, weights, radius) for i in range(0, len(x), rows)]
    return np.concatenate([np.zeros(0), *parts])


def _with_ends(nodes: Array, weights: Array) -> tuple[Array, Array]:
    """A rule with 0 and 1 among its nodes, with no mass where P has none: mass may still move there."""
    ends = np.array([end for end in (0.0, 1.0) if end not in nodes])
    nodes, weights = np.append(nodes, ends), np.append(weights, 0 * ends)
    increasing = np.argsort(nodes)
    return nodes[increasing], weights[increasing]


def loss_on_line(values: Array, line: Array, weights: Array, radius: float) -> Array:
    """E_P f − worst case when all mass lives on the points ``line`` (m,), for values (n, m)."""
    steepest = (np.abs(np.diff(values, axis=1)) / np.diff(line)).max(axis=1)

    def dual(slope: Array) -> Array:
        return np.asarray(_lowest_on_line(values, line, slope) @ weights - slope * radius)

    best = _golden_maximum(dual, np.zeros_like(steepest), steepest)
    return values @ weights - np.minimum(best, values @ weights)


def _lowest_on_line(values: Array, line: Array, slope: Array) -> Array:
    """min_k values_k + slope·|line_j − line_k| for every j: one sweep from the left, one from the right."""
    ramp = slope[:, None] * line
    from_left = np.minimum.accumulate(values - ramp, axis=1) + ramp
    from_right = np.minimum.accumulate((values + ramp)[:, ::-1], axis=1)[:, ::-1] - ramp
    return np.minimum(from_left, from_right)


def _golden_maximum(function: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Maximum of a concave function of one variable on [low, high], a row each, by golden section."""
    best = np.maximum(function(low), function(high))
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(ITERATIONS):
        best = np.maximum(best, np.maximum(at_left, at_right))
        keep_left = at_left >= at_right
        high, low = np.where(keep_left, right, high), np.where(keep_left, low, left)
        new = np.where(keep_left, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        at_new = function(new)
        left, right = np.where(keep_left, new, right), np.where(keep_left, left, new)
        at_left, at_right = np.where(keep_left, at_new, at_right), np.where(keep_left, at_left, at_new)
    return best
