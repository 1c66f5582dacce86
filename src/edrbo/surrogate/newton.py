"""Batched bounded quasi-Newton search with a given initial Hessian.

A fit that is warm-started begins near its end, and there the curvature is all there is to know: with it a search
takes three or four steps where L-BFGS, which learns it on the way, takes seven. So each search begins with a curvature
that the problem gives, corrects it by what the gradients say (BFGS, damped as by Powell), and asks for it again after a
long step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edrbo.cancellation import checkpoint

Array = NDArray[np.float64]
# (points b' × p, their rows, whether curvature is wanted) → values b', gradients b' × p, curvatures b' × p × p or None
Evaluate = Callable[[Array, list[int], bool], tuple[Array, Array, Array | None]]

MAX_STEP = 2.0  # longest step in any variable
LONG_STEP = 0.5  # a step after which the curvature is asked for again
ENOUGH = 1e-3  # of what the slope predicts, that a step must gain
MIN_STEP = 1e-3  # fraction of a step at which a search gives up


def minimize_newton(
    evaluate: Evaluate, start: Array, lower: Array, upper: Array, *, max_evaluations: int, tolerance: float
) -> tuple[Array, Array]:
    """Minimize b independent problems of p variables from ``start`` (b × p) inside [lower, upper] (p, finite).

    A search ends where its next step is predicted to gain less than ``tolerance``. Curvatures must be positive
    definite. Returns the ends (b × p) and their values (b), which are no larger than at the start.
    """
    points, rows = np.clip(start, lower, upper), list(range(len(start)))
    values, gradients, curvatures = evaluate(points, rows, True)
    assert curvatures is not None
    searches = [
        _Search(points[i], float(values[i]), gradients[i], curvatures[i], (lower, upper), tolerance) for i in rows
    ]
    for _ in range(max_evaluations - 1):
        checkpoint()
        rows = [i for i, search in enumerate(searches) if not search.ended]
        if not rows:
            break
        steps = [searches[i].step for i in rows]
        curved = [bool(np.abs(step).max() >= LONG_STEP) for step in steps]
        points = np.stack([searches[i].x + step for i, step in zip(rows, steps, strict=True)])
        values, gradients, curvatures = evaluate(points, rows, any(curved))
        for k, i in enumerate(rows):
            fresh = curvatures[k] if curvatures is not None and curved[k] else None  # whatever the others do
            searches[i].go_on(float(values[k]), gradients[k], fresh)
    return np.stack([search.x for search in searches]), np.array([search.value for search in searches])


@dataclass
class _Search:
    """One search: where it is (``x``), and the ``step`` from there to where it wants to look next."""

    x: Array
    value: float
    gradient: Array
    curvature: Array
    bounds: tuple[Array, Array]
    tolerance: float

    def __post_init__(self) -> None:
        self.ended = not (np.isfinite(self.value) and np.isfinite(self.gradient).all())
        if not self.ended:
            self._turn()

    def go_on(self, value: float, gradient: Array, curvature: Array | None) -> None:
        """Take what was found at ``x + step``, and the curvature there if the step was long."""
        slope = float(self.gradient @ self.step)
        finite = np.isfinite(value) and np.isfinite(gradient).all()
        if not finite or value > self.value + ENOUGH * slope:
            self._shorten(value - self.value if finite else np.inf, slope)
            return
        if curvature is None:
            self._correct(gradient - self.gradient)
        else:
            self.curvature = curvature
        self.x, self.value, self.gradient = self.x + self.step, value, gradient
        self._turn()

    def _turn(self) -> None:
        """Choose the next step: Newton's in the variables that no bound holds, cut off at the bounds."""
        lower, upper = self.bounds
        free = ~(((self.x <= lower) & (self.gradient >= 0)) | ((self.x >= upper) & (self.gradient <= 0)))
        step = np.zeros_like(self.x)
        if free.any():
            step[free] = -np.linalg.solve(self.curvature[np.ix_(free, free)], self.gradient[free])
        step *= min(1.0, MAX_STEP / max(float(np.abs(step).max()), 1e-300))
        self.step, self._left = np.clip(self.x + step, lower, upper) - self.x, 1.0
        # the cut may leave nothing of the slope, or turn it: then the bounds' corner is as far as this goes
        self.ended = -0.5 * float(self.gradient @ self.step) <= self.tolerance

    def _shorten(self, rise: float, slope: float) -> None:
        """To where a parabola through what is known has its minimum, within reason."""
        curvature = rise - slope
        factor = min(max(-0.5 * slope / curvature, 0.1), 0.5)
        self._left *= factor
        self.step = self.step * factor
        self.ended = self._left < MIN_STEP

    def _correct(self, change: Array) -> None:
        """BFGS: after ``step`` the gradient has changed by ``change``."""
        along = self.curvature @ self.step
        expected, found = float(self.step @ along), float(self.step @ change)
        if found < 0.2 * expected:  # less curved than a positive definite matrix can say: go a part of the way
            share = 0.8 * expected / (expected - found)
            change = share * change + (1.0 - share) * along
            found = float(self.step @ change)
        self.curvature = self.curvature - np.outer(along, along) / expected + np.outer(change, change) / found
