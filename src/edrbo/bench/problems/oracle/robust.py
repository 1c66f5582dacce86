"""Worst expectation of f over all context distributions within a Wasserstein-1 distance of P, by its dual.

min_{W₁(Q, P) ≤ ρ} E_Q f(x, ·) = max_{λ ≥ 0} −λρ + E_{c~P} min_{c'} [f(x, c') + λ‖c − c'‖], with the Euclidean
distance in the unit cube. With one context variable, here, P and the moves c' live on one fine grid: the quadrature
nodes and the ends. With several see :mod:`edrbo.bench.problems.oracle.transport`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from edrbo.bench.problems.oracle import transport
from edrbo.bench.problems.oracle.context_distributions import Product
from edrbo.bench.problems.oracle.distributions import Array
from edrbo.bench.problems.oracle.transport import OverGrid
from edrbo.errors import InvalidValueError

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
        return transport.expected_loss(over_grid, context_distribution, breaks, x, radius, rough)
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
