"""Local searches: among the designs of a region by sequential quadratic programming with exact gradients, and the final
one on an expensive objective, preconditioned with the curvature of a cheap approximation.

A quasi-Newton search spends most of its evaluations on learning the Hessian. Here it starts from finite differences of
the approximation's gradients, evaluated in one batch, and is corrected by the symmetric rank-one update (SR1; Nocedal
and Wright, Numerical Optimization, 2006, algorithm 6.2). Each round goes to the minimum of the quadratic model within a
trust region, and evaluates the objective once. A search that cannot catch up with the best one ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.cancellation import checkpoint
from edrbo.space import Region
from edrbo.surrogate.quasi_newton import minimize_lbfgs

Array = NDArray[np.float64]
Cost = Callable[[Array], tuple[Array, Array]]  # points (b × p) → what is to be made small (b), and its gradient (b × p)

ROUNDS = 12  # a limit that is rarely met
FIRST_RADIUS = 0.1  # of the first round, from where it starts, in the unit cube
TRUSTED, CLOSER = 0.25, 0.3  # share of the foreseen gain below which the next round stays closer: so many steps
MISSES = 2  # rounds in a row without any gain after which a climb ends: there is a kink
CATCHING_UP = 3.0  # times what a climb foresees for itself it may be behind the best
MERGE_DISTANCE = 0.02  # the distance (largest coordinate) at which two searches have one local optimum
INFEASIBLE_COST = 1e10
DIFFERENCE_STEP = 0.01  # of the differences: about as far as there is still to go


def trust_region_climbs(
    objective: Cost, guide: Cost, start: Array, free: NDArray[np.bool_], tolerance: float
) -> tuple[Array, Array]:
    """From each row of ``start`` (b × p) in the unit cube, in the ``free`` columns (p); ends (b × p) and the objective
    there (b). A climb ends when it foresees or brings no more than ``tolerance``."""
    x = np.clip(start, 0.0, 1.0)
    cost, slope = _asked(objective, x)
    hessian = curvatures(guide, x, free)
    reach, live, missed = np.full(len(x), FIRST_RADIUS), np.arange(len(x)), np.zeros(len(x), dtype=int)
    for _ in range(ROUNDS):
        ends, gain = _lowest(x[live], slope[live], hessian[live], free * reach[live, None])
        goes_on = (gain > tolerance) & (cost[live] - CATCHING_UP * gain <= cost.min())
        goes_on &= ~_follows(ends, cost[live], x, cost)
        live, ends, gain = live[goes_on], ends[goes_on], gain[goes_on]
        if len(live) == 0:
            break
        found, found_slope = _asked(objective, ends)
        step, brought = ends - x[live], cost[live] - found
        _learn(hessian, live, step, found_slope - slope[live])
        length = np.abs(step).max(axis=1)
        # a gain as foreseen at the edge of what was trusted: go farther
        reach[live] = np.where(brought < TRUSTED * gain, CLOSER * length, np.maximum(reach[live], 2.0 * length))
        better = brought > 0
        moved = live[better]
        x[moved], cost[moved], slope[moved] = ends[better], found[better], found_slope[better]
        missed[live] = np.where(better, 0, missed[live] + 1)
        live = live[np.where(better, brought > tolerance, missed[live] < MISSES)]
        if len(live) == 0:
            break
    return x, cost


def _follows(ends: Array, cost: Array, x: Array, reached: Array) -> NDArray[np.bool_]:
    """Whether climbs would go (r × p) from ``cost`` (r) to where another one is (b × p) that is better (b)."""
    near = np.abs(ends[:, None] - x).max(axis=2) < MERGE_DISTANCE
    follows: NDArray[np.bool_] = (near & (reached < cost[:, None])).any(axis=1)
    return follows


def _asked(cost: Cost, points: Array) -> tuple[Array, Array]:
    """Values (b) and gradients (b × p); where they overflow there is a wall, flat, and no crash."""
    value, gradient = cost(points)
    broken = ~(np.isfinite(value) & np.isfinite(gradient).all(axis=1))
    return np.where(broken, INFEASIBLE_COST, value), np.where(broken[:, None], 0.0, gradient)


def curvatures(guide: Cost, x: Array, free: NDArray[np.bool_]) -> Array:
    """Second derivatives (b × p × p) at ``x`` (b × p) by differences into the unit cube, zero where not ``free``."""
    columns = np.flatnonzero(free)
    steps = np.where(x[:, columns] + DIFFERENCE_STEP <= 1.0, DIFFERENCE_STEP, -DIFFERENCE_STEP)  # b × f
    points = np.repeat(x[:, None], 1 + len(columns), axis=1)
    points[:, np.arange(1, 1 + len(columns)), columns] += steps
    slopes = _asked(guide, points.reshape(-1, x.shape[1]))[1].reshape(points.shape)
    hessian = np.zeros((*x.shape, x.shape[1]))
    hessian[:, columns] = (slopes[:, 1:] - slopes[:, :1]) / steps[:, :, None]
    return 0.5 * (hessian + hessian.transpose(0, 2, 1)) * (free[:, None] & free)


def _lowest(x: Array, slope: Array, hessian: Array, reach: Array) -> tuple[Array, Array]:
    """Where quadratic models are low within ``reach`` (b × p) of ``x``: points (b × p), and by how much (b)."""
    box = np.maximum(x - reach, 0.0), np.minimum(x + reach, 1.0)
    ends, solved = _newton(x, slope, hessian, *box)
    rest = np.flatnonzero(~solved)
    if len(rest):
        some = _models(x[rest], slope[rest], hessian[rest])
        bounds = (bound[rest] for bound in box)
        ends[rest], _ = minimize_lbfgs(some, x[rest], *bounds, max_iterations=30, ftol=1e-7, gtol=1e-7)
    lows, _ = _models(x, slope, hessian)(ends, range(len(x)))
    return ends, -lows


def _newton(x: Array, slope: Array, hessian: Array, lower: Array, upper: Array) -> tuple[Array, NDArray[np.bool_]]:
    """The lowest points (b × p) of quadratic models with what is pressed against its bound held there, and whether
    each is that of the model within the bounds (b)."""
    held = ((x <= lower) & (slope >= 0.0)) | ((x >= upper) & (slope <= 0.0))
    either = held[:, :, None] | held[:, None]
    system = np.where(either, np.eye(x.shape[1]), hessian)
    values, vectors = np.linalg.eigh(system)
    convex = values[:, 0] > 0.0
    right = np.where(held, 0.0, slope)[:, None] @ vectors
    step = -(vectors @ (right[:, 0] / np.where(convex[:, None], values, 1.0))[:, :, None])[:, :, 0]
    ends = np.where(held, x, x + step)
    inside = ((ends >= lower) & (ends <= upper)).all(axis=1)
    after = slope + (hessian @ (ends - x)[:, :, None])[:, :, 0]
    pressed = ~held | np.where(x <= lower, after >= 0.0, True) & np.where(x >= upper, after <= 0.0, True)
    return ends, convex & inside & pressed.all(axis=1)


def _models(x: Array, slope: Array, hessian: Array) -> Callable[[Array, Sequence[int]], tuple[Array, Array]]:
    """slopeᵀs + ½ sᵀ hessian s of s = point − x, for some rows, and its gradient."""

    def model(points: Array, rows: Sequence[int]) -> tuple[Array, Array]:
        away = points - x[rows]
        pull = (hessian[rows] @ away[:, :, None])[:, :, 0]
        return ((slope[rows] + 0.5 * pull) * away).sum(axis=1), slope[rows] + pull

    return model


def _learn(hessian: Array, rows: NDArray[np.intp], step: Array, change: Array) -> None:
    """Make the curvatures of ``rows`` explain the ``change`` of the gradient (r × p) over ``step``, where they can."""
    missed = change - (hessian[rows] @ step[:, :, None])[:, :, 0]
    along = (missed * step).sum(axis=1)
    safe = np.abs(along) > 1e-3 * np.sqrt((missed * missed).sum(axis=1) * (step * step).sum(axis=1))
    scale = np.where(safe, 1.0 / np.where(safe, along, 1.0), 0.0)
    hessian[rows] += scale[:, None, None] * missed[:, :, None] * missed[:, None]


def climb_inside(
    cost: Cost, starts: Array, free: NDArray[np.bool_], region: Region, iterations: int, tolerance: float
) -> Array:
    """From each row of ``starts`` (S × d_x), which are inside, to a better design inside: by SLSQP in the ``free``
    columns, and then back onto the constraints it has left by a little. Where that fails the start stays.

    A climb ends where it gains less than ``tolerance``, in units of the cost.
    """
    ends = np.stack([_climb(cost, start, free, region, iterations, tolerance) for start in starts])
    ends = region.onto(ends, free)
    return np.where(region.inside(ends)[:, None], ends, starts)


def _climb(
    cost: Cost, start: Array, free: NDArray[np.bool_], region: Region, iterations: int, tolerance: float
) -> Array:
    from scipy.optimize import minimize

    def whole(part: Array) -> Array:
        point = start.copy()
        point[free] = np.clip(part, 0.0, 1.0)
        return point[None]

    def value_and_slope(part: Array) -> tuple[float, Array]:
        checkpoint()
        value, slope = cost(whole(part))
        return float(value[0]), slope[0, free]

    margins = _Once(lambda part: region.margins(whole(part)))
    kinds = [("eq", region.equal, 1.0), ("ineq", ~region.equal, -1.0)]
    constraints: list[Any] = [
        {
            "type": kind,
            "fun": lambda part, rows=rows, sign=sign: sign * margins(part)[0][0, rows],
            "jac": lambda part, rows=rows, sign=sign: sign * margins(part)[1][0][rows][:, free],
        }
        for kind, rows, sign in kinds
        if rows.any()
    ]
    with np.errstate(all="ignore"):
        found = minimize(
            value_and_slope,
            start[free],
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * int(free.sum()),
            constraints=constraints,
            options={"maxiter": iterations, "ftol": tolerance},
        )
    end: Array = whole(found.x)[0]
    return end if np.isfinite(end).all() else start


class _Once:
    """A function that SLSQP asks for value and gradient of the same point one after the other."""

    def __init__(self, function: Callable[[Array], tuple[Array, Array]]) -> None:
        self._function = function
        self._point: Array | None = None
        self._answer: tuple[Array, Array]

    def __call__(self, point: Array) -> tuple[Array, Array]:
        if self._point is None or not np.array_equal(self._point, point):
            self._point, self._answer = point.copy(), self._function(point)
        return self._answer
