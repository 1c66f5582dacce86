"""Maximizers of E f by quasi-random search and L-BFGS-B, and of its worst case by Nelder–Mead."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from edrbo.bench.problems.oracle.distributions import Array

if TYPE_CHECKING:
    from edrbo.bench.problems.problem import Problem

SEARCH_SIZE_LOG2 = 12
STARTS = 8
ROBUST_STARTS = 2


@lru_cache(maxsize=16)
def quasi_random_designs(d_x: int, log2_size: int = SEARCH_SIZE_LOG2, seed: int = 0) -> Array:
    """2^log2_size scrambled Sobol points of the unit cube, shape (n, d_x)."""
    from scipy.stats import qmc

    designs = np.asarray(qmc.Sobol(d_x, rng=np.random.default_rng(seed)).random_base2(log2_size))
    designs.flags.writeable = False
    return designs


def maximize_expected(problem: Problem) -> Array:
    """argmax_x E f(x), shape (d_x,)."""
    from scipy.optimize import OptimizeResult, minimize

    designs = quasi_random_designs(problem.d_x)
    best = np.argsort(-problem.expected(designs), kind="stable")[:STARTS]
    starts = list(designs[best])
    if problem.landmark is not None:
        starts.insert(0, np.array(problem.landmark))

    def loss(x: Array) -> tuple[float, Array]:
        value, gradient = problem.expected_and_gradient(x)
        return -float(value), -gradient

    def climb(start: Array) -> OptimizeResult:
        return minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, 1.0)] * problem.d_x,
            options={"ftol": 0.0, "gtol": 1e-10, "maxiter": 500},
        )

    ends = [climb(start) for start in starts]
    winner = np.asarray(min(ends, key=lambda end: float(end.fun)).x)
    winner.flags.writeable = False
    return winner


@lru_cache(maxsize=64)
def maximize_worst_case(problem: Problem, radius: float) -> tuple[Array, float]:
    """argmax and max over x of ``problem.worst_case(x, radius)``: the reference of a robust regret.

    The worst case has kinks in x, so the best quasi-random points and x* are polished without gradients.
    """
    from scipy.optimize import OptimizeResult, minimize

    log2_size = 7 if problem.d_c > 1 else 10
    designs = np.vstack([quasi_random_designs(problem.d_x, log2_size), problem.x_star])
    values = problem.worst_case(designs, radius)
    starts = [problem.x_star, *designs[np.argsort(-values, kind="stable")[:ROBUST_STARTS]]]

    def loss(x: Array) -> float:
        return -float(problem.worst_case(x, radius))

    def polish(start: Array) -> OptimizeResult:
        return minimize(
            loss,
            start,
            method="Nelder-Mead",
            bounds=[(0.0, 1.0)] * problem.d_x,
            options={"xatol": 1e-6, "fatol": 1e-9, "maxfev": 120 * problem.d_x},
        )

    ends = [polish(start) for start in starts]
    best = min(ends, key=lambda end: float(end.fun))
    return np.asarray(best.x), -float(best.fun)
