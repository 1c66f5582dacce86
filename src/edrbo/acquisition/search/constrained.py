"""Local search among the designs of a region: sequential quadratic programming with exact gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.cancellation import checkpoint
from edrbo.space import Region

Array = NDArray[np.float64]
Cost = Callable[[Array], tuple[Array, Array]]  # N × d_x → N and N × d_x


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
