"""Worst cases by a generic convex solver: slow, independent, and only for tests."""

from __future__ import annotations

from collections.abc import Callable

import cvxpy as cp
import numpy as np
import torch
from torch import Tensor

from edrbo.contexts.distributions import ContextPoints

Constraints = Callable[[cp.Variable, np.ndarray, np.ndarray], list[cp.Constraint]]


def solve(values: Tensor, points: ContextPoints, constraints: Constraints) -> np.ndarray:
    """min pᵀs over distributions p on points.all under ``constraints(p, w, contexts)``, row by row."""
    w, contexts = points.mass.numpy(), points.all.numpy()
    out = []
    for row in values.numpy():
        p = cp.Variable(len(row), nonneg=True)
        scale = np.ptp(row) or 1.0
        objective = cp.Minimize(((row - row.min()) / scale) @ p)
        problem = cp.Problem(objective, [cp.sum(p) == 1, *constraints(p, w, contexts)])
        problem.solve(cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
        assert problem.status == "optimal"
        out.append(row.min() + scale * problem.value)
    return np.array(out)


def total_variation(radius: float) -> Constraints:
    return lambda p, w, c: [cp.norm1(p - w) <= radius]


def kullback_leibler(radius: float) -> Constraints:
    def constraints(p: cp.Variable, w: np.ndarray, c: np.ndarray) -> list[cp.Constraint]:
        some = w > 0
        return [cp.sum(cp.rel_entr(p[some], w[some])) <= radius, *_nothing_on(p, ~some)]

    return constraints


def chi_square(radius: float) -> Constraints:
    def constraints(p: cp.Variable, w: np.ndarray, c: np.ndarray) -> list[cp.Constraint]:
        some = w > 0
        scaled = cp.multiply(p[some] - w[some], 1 / np.sqrt(w[some]))
        return [cp.norm(scaled) <= np.sqrt(radius), *_nothing_on(p, ~some)]

    return constraints


def conditional_tail(alpha: float) -> Constraints:
    return lambda p, w, c: [alpha * p <= w]


def discrepancy(radius: float, lengthscale: float) -> Constraints:
    def constraints(p: cp.Variable, w: np.ndarray, c: np.ndarray) -> list[cp.Constraint]:
        square = ((c[:, None] - c[None]) ** 2).sum(-1)
        kernel = np.exp(-0.5 * square / lengthscale**2) + 1e-8 * np.eye(len(c))
        return [cp.norm(np.linalg.cholesky(kernel).T @ (p - w)) <= radius]

    return constraints


def transport(radius: float, order: int) -> Constraints:
    def constraints(p: cp.Variable, w: np.ndarray, c: np.ndarray) -> list[cp.Constraint]:
        distance = np.sqrt(((c[:, None] - c[None]) ** 2).sum(-1))
        plan = cp.Variable((len(w), len(w)), nonneg=True)
        cost = cp.sum(cp.multiply(plan, distance**order))
        return [cp.sum(plan, axis=1) == w, cp.sum(plan, axis=0) == p, cost <= radius**order]

    return constraints


def _nothing_on(p: cp.Variable, where: np.ndarray) -> list[cp.Constraint]:
    return [p[where] == 0] if where.any() else []


def random_points(seed: int, atoms: int, support: int, dim: int = 1, zeros: int = 0) -> ContextPoints:
    """A random distribution on ``atoms`` points of the unit cube, the first ``zeros`` of them without mass."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(atoms, generator=generator, dtype=torch.float64).square()
    weights[:zeros] = 0.0
    return ContextPoints(
        torch.rand(atoms, dim, generator=generator, dtype=torch.float64),
        weights / weights.sum(),
        torch.rand(support, dim, generator=generator, dtype=torch.float64),
    )


def random_rows(seed: int, rows: int, columns: int) -> Tensor:
    return 3.0 * torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
