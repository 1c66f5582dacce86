"""Batched L-BFGS-B (Byrd et al., 1995): many small bounded problems side by side.

The compiled core of SciPy's L-BFGS-B does not call a function: it returns when it wants a value and a gradient. So many
searches can go on side by side, and one batch answers what all of them ask. Their iterates are those of
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
    """Ends a search that cannot be reported to."""


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
