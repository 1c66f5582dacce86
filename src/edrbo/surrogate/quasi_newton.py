"""Batched bounded quasi-Newton searches: many small problems side by side, one batch answers what all of them ask.

``minimize_newton`` is given the curvature to begin with. A fit that is warm-started begins near its end, and there the
curvature is all there is to know: with it a search takes three or four steps where L-BFGS, which learns it on the way,
takes seven. It corrects the curvature by what the gradients say (BFGS, damped as by Powell), and asks for it again
after a long step.

``minimize_lbfgs`` is L-BFGS-B (Byrd et al., 1995). The compiled core of SciPy's does not call a function: it returns
when it wants a value and a gradient, so many searches can go on side by side. Their iterates are those of
``scipy.optimize.fmin_l_bfgs_b``, bit for bit. The core is not part of SciPy's public interface; with a SciPy that has
another one, that function runs the searches one after the other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.cancellation import checkpoint

Array = NDArray[np.float64]
Evaluate = Callable[[Array, list[int]], tuple[Array, Array]]

CORRECTIONS = 10  # pairs of steps and gradient changes a search remembers
EPSILON = float(np.finfo(np.float64).eps)
SIGNATURE = "setulb(m,x,l,u,nbd,f,g,factr,pgtol,wa,iwa,task,lsave,isave,dsave,maxls,ln_task)"
NEW_ITERATE, EVALUATE, STOP = 1, 3, 5  # what the core says it has done or wants, and what it is reported
ITERATION_LIMIT = 504
BOTH_BOUNDS = 2


def minimize_lbfgs(
    value_and_gradient: Evaluate,
    start: Array,
    lower: Array,
    upper: Array,
    *,
    max_iterations: int,
    ftol: float,
    gtol: float = 1e-6,
    max_line_search: int = 20,
    patience: int | None = None,
    apart: float = 0.0,
) -> tuple[Array, Array]:
    """Minimize b independent problems of p variables from ``start`` (b × p) inside [lower, upper], finite and p, or
    b × p where each problem has its own.

    A search also ends when ``patience`` evaluations in a row have made its best value no better than by ``ftol``:
    bounded L-BFGS halves its way to a kink for long. So does one whose best point is less than ``apart`` (largest
    coordinate) from the better one of another search: both would end at one place.

    ``value_and_gradient(points, rows)`` gets the rows still at work and returns values (b') and gradients
    (b' × p). Returns the best points (b × p) and their values (b).
    """
    lower, upper = (np.array(np.broadcast_to(bound, start.shape), order="C") for bound in (lower, upper))
    best = np.clip(start, lower, upper)
    best_value, level, waited = np.full(len(best), np.inf), np.full(len(best), np.inf), np.zeros(len(best), dtype=int)

    def evaluate(points: Array, rows: list[int]) -> tuple[Array, Array]:
        checkpoint()
        value, gradient = value_and_gradient(points, rows)
        # A line search may pass through points where the objective overflows: a wall, not a crash.
        broken = ~np.isfinite(value) | ~np.isfinite(gradient).all(axis=-1)
        value = np.where(broken, 1e10, value)
        gradient = np.where(broken[:, None], 0.0, gradient)
        for row, i in enumerate(rows):
            if value[row] < best_value[i]:  # what was seen counts, even if the search ends elsewhere
                best_value[i], best[i] = value[row], points[row]
        progress = best_value[rows] < level[rows] - ftol
        waited[rows] = np.where(progress, 0, waited[rows] + 1)
        level[rows] = np.where(progress, best_value[rows], level[rows])
        return value, gradient

    def enough(i: int) -> bool:
        if patience is not None and waited[i] >= patience:
            return True
        return apart > 0.0 and bool(((best_value < best_value[i]) & (np.abs(best - best[i]).max(axis=1) < apart)).any())

    core = _core()
    problems = [
        _Problem(*bounds, max_iterations, ftol / EPSILON, gtol, max_line_search)
        for bounds in zip(lower, upper, strict=True)
    ]
    if core is None:
        _one_by_one(evaluate, best.copy(), problems, enough)
    else:
        _side_by_side(evaluate, [_Search(core, *each) for each in zip(best, problems, strict=True)], enough)
    return best, best_value


@dataclass(frozen=True, eq=False)
class _Problem:
    """Bounds (p each), and when to stop."""

    lower: Array
    upper: Array
    max_iterations: int
    factr: float
    pgtol: float
    max_line_search: int


class _Search:
    """One search: where it is (``x``), and the core's memory of it."""

    def __init__(self, core: Callable[..., None], start: Array, problem: _Problem) -> None:
        m, n = CORRECTIONS, len(start)
        self.x = start.copy()
        self._core = core
        self._left = problem.max_iterations
        self._task = np.zeros(2, dtype=np.int32)
        self._bounds = (problem.lower, problem.upper, np.full(n, BOTH_BOUNDS, dtype=np.int32))
        floats, integers = np.zeros(2 * m * n + 5 * n + 11 * m * m + 8 * m), np.zeros(3 * n, dtype=np.int32)
        saved = (np.zeros(4, dtype=np.int32), np.zeros(44, dtype=np.int32), np.zeros(29))
        line_search = np.zeros(2, dtype=np.int32)
        self._memory = (
            *(problem.factr, problem.pgtol, floats, integers, self._task),
            *(*saved, problem.max_line_search, line_search),
        )

    def go_on(self, value: float, gradient: Array) -> bool:
        """Take the value and the gradient (p) at ``x``, which moves; whether those at the new ``x`` are wanted."""
        gradient = gradient.copy()
        while True:
            self._core(CORRECTIONS, self.x, *self._bounds, value, gradient, *self._memory)
            if self._task[0] == EVALUATE:
                return True
            if self._task[0] != NEW_ITERATE:
                return False
            self._left -= 1
            if self._left <= 0:
                self._task[:] = STOP, ITERATION_LIMIT


def _side_by_side(evaluate: Evaluate, searches: list[_Search], enough: Callable[[int], bool]) -> None:
    asking = [i for i, search in enumerate(searches) if search.go_on(0.0, np.zeros_like(search.x))]
    while asking:
        values, gradients = evaluate(np.stack([searches[i].x for i in asking]), asking)
        answers = zip(asking, values.tolist(), gradients, strict=True)
        asking = [i for i, value, gradient in answers if not enough(i) and searches[i].go_on(value, gradient)]


class _Enough(Exception):
    """Ends a search that cannot be asked to end."""


def _one_by_one(evaluate: Evaluate, start: Array, problems: list[_Problem], enough: Callable[[int], bool]) -> None:
    from scipy.optimize import fmin_l_bfgs_b

    for i, (x, problem) in enumerate(zip(start, problems, strict=True)):

        def one(point: Array, i: int = i) -> tuple[float, Array]:
            value, gradient = evaluate(point[None].copy(), [i])
            if enough(i):
                raise _Enough
            return float(value[0]), gradient[0]

        with suppress(_Enough):
            fmin_l_bfgs_b(
                one,
                x,
                bounds=list(zip(problem.lower, problem.upper, strict=True)),
                m=CORRECTIONS,
                factr=problem.factr,
                pgtol=problem.pgtol,
                maxls=problem.max_line_search,
                maxiter=problem.max_iterations,
                maxfun=sys.maxsize,
            )


@cache
def _core() -> Callable[..., None] | None:
    """SciPy's core, without the rest of ``scipy.optimize``, which takes a third of a second to import; None if it is
    not the one known here."""
    package = find_spec("scipy.optimize")
    found = package and PathFinder.find_spec("scipy.optimize._lbfgsb", package.submodule_search_locations)
    if not found or found.loader is None:
        return None
    try:
        module: Any = module_from_spec(found)
        found.loader.exec_module(module)
    except ImportError:
        return None
    setulb: Callable[..., None] | None = getattr(module, "setulb", None)
    return setulb if SIGNATURE in str(getattr(setulb, "__doc__", "")) else None


# (points b' × p, their rows, whether curvature is wanted) → values b', gradients b' × p, curvatures b' × p × p or None
EvaluateCurved = Callable[[Array, list[int], bool], tuple[Array, Array, Array | None]]

MAX_STEP = 2.0  # longest step in any variable
LONG_STEP = 0.5  # a step after which the curvature is asked for again
SUFFICIENT_DECREASE = 1e-3  # of what the slope predicts, that a step must gain
MIN_STEP = 1e-3  # fraction of a step at which a search gives up


def minimize_newton(
    evaluate: EvaluateCurved, start: Array, lower: Array, upper: Array, *, max_evaluations: int, tolerance: float
) -> tuple[Array, Array]:
    """Minimize b independent problems of p variables from ``start`` (b × p) inside [lower, upper] (p, finite).

    A search ends where its next step is predicted to gain less than ``tolerance``. Curvatures must be positive
    definite. Returns the ends (b × p) and their values (b), which are no larger than at the start.
    """
    points, rows = np.clip(start, lower, upper), list(range(len(start)))
    values, gradients, curvatures = evaluate(points, rows, True)
    assert curvatures is not None
    searches = [
        _NewtonSearch(points[i], float(values[i]), gradients[i], curvatures[i], (lower, upper), tolerance) for i in rows
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
class _NewtonSearch:
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
        if not finite or value > self.value + SUFFICIENT_DECREASE * slope:
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
