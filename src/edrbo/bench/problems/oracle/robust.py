"""Worst expectation of f over all context laws within a Wasserstein-1 distance of P, by its dual.

min_{W₁(Q, P) ≤ ρ} E_Q f(x, ·) = max_{λ ≥ 0} −λρ + E_{c~P} min_{c'} [f(x, c') + λ‖c − c'‖], with the Euclidean
distance in the unit cube. P and the moves c' live on one fine grid: the quadrature nodes and the ends.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from edrbo.bench.problems.oracle.distributions import AnyArray, Array
from edrbo.bench.problems.oracle.laws import Product, tensor_rule
from edrbo.errors import InvalidValueError

Objective = Callable[[AnyArray, AnyArray], AnyArray]
# Several context variables: a tensor rule of 18 nodes each, because every pair of nodes is a possible move.
COARSE_PANELS = 4
COARSE_ORDER = 4
GOLDEN = (np.sqrt(5) - 1) / 2
# The bracket of λ shrinks to 4e-9 of the steepest slope.
ITERATIONS = 40


def expected_loss(objective: Objective, law: Product, breaks: tuple[float, ...], x: Array, radius: float) -> Array:
    """What the worst law takes off the expectation: (n, d_x) → (n,), exactly 0 at radius 0.

    Both are taken on one grid, so that its errors cancel when the loss is taken off an exact expectation.
    """
    if not (np.isfinite(radius) and radius >= 0):
        raise InvalidValueError(f"radius must be a non-negative number, got {radius}.")
    grid, weights = _grid(law, breaks)
    rows = max(1, (1 << 18) // len(grid)) if law.d_c == 1 else 4
    losses = [
        _expected_loss(objective(x[i : i + rows, None, :], grid), grid, weights, radius) for i in range(0, len(x), rows)
    ]
    return np.concatenate([np.zeros(0), *losses])


def _grid(law: Product, breaks: tuple[float, ...]) -> tuple[Array, Array]:
    """Grid (m, d_c) and the masses (m,) P gives to it."""
    if law.d_c == 1:
        return tensor_rule([_with_ends(*law.components[0].quadrature(breaks))])
    rules = [component.quadrature(breaks, COARSE_PANELS, COARSE_ORDER) for component in law.components]
    return tensor_rule([_with_ends(*rule) for rule in rules])


def _with_ends(nodes: Array, weights: Array) -> tuple[Array, Array]:
    """A rule with 0 and 1 among its nodes, with no mass where P has none: mass may still move there."""
    ends = np.array([end for end in (0.0, 1.0) if end not in nodes])
    nodes, weights = np.append(nodes, ends), np.append(weights, 0 * ends)
    increasing = np.argsort(nodes)
    return nodes[increasing], weights[increasing]


def _expected_loss(values: Array, grid: Array, weights: Array, radius: float) -> Array:
    """E_P f − worst case on the grid, for values (n, m)."""
    if grid.shape[1] == 1:
        line = grid[:, 0]
        steepest = (np.abs(np.diff(values, axis=1)) / np.diff(line)).max(axis=1)

        def lowest(slope: Array) -> Array:
            return _lowest_on_line(values, line, slope)
    else:
        distance = np.sqrt(((grid[:, None, :] - grid) ** 2).sum(-1))
        apart = np.where(distance > 0, distance, np.inf)
        steepest = np.array([(np.abs(row[:, None] - row) / apart).max() for row in values])

        def lowest(slope: Array) -> Array:
            pairs = zip(values, slope, strict=True)
            return np.stack([(row + rate * distance).min(axis=1) for row, rate in pairs])

    def dual(slope: Array) -> Array:
        return np.asarray(lowest(slope) @ weights - slope * radius)

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
