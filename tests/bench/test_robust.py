"""Worst case in a Wasserstein-1 ball against the transport linear program."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from edrbo.bench import problems
from edrbo.bench.problems.oracle.robust import _expected_loss
from edrbo.bench.problems.oracle.shift import shift_law
from edrbo.errors import InvalidValueError

pytestmark = pytest.mark.numpy_numeric


def transport_worst_case(values: np.ndarray, grid: np.ndarray, weights: np.ndarray, radius: float) -> float:
    """min Σ π_jk f_k over plans π with first marginal ``weights`` and cost at most ``radius``."""
    m = len(grid)
    distance = np.sqrt(((grid[:, None] - grid) ** 2).sum(-1))
    marginal = np.kron(np.eye(m), np.ones(m))
    result = linprog(np.tile(values, m), A_ub=distance.reshape(1, -1), b_ub=[radius], A_eq=marginal, b_eq=weights)
    return float(result.fun)


@pytest.mark.parametrize("d_c", [1, 2])
@pytest.mark.parametrize("radius", [0.0, 0.01, 0.1, 0.4, 2.0])
def test_dual_matches_the_transport_program(d_c: int, radius: float) -> None:
    rng = np.random.default_rng(d_c)
    grid = rng.random((12, d_c))
    grid = grid[np.argsort(grid[:, 0])]
    weights = rng.dirichlet(np.ones(12))
    values = rng.standard_normal((3, 12))
    loss = _expected_loss(values, grid, weights, radius)
    for row, one in zip(values, loss, strict=True):
        assert row @ weights - one == pytest.approx(transport_worst_case(row, grid, weights, radius), abs=1e-7)


@pytest.mark.parametrize("name", ["six-hump-camel", "newsvendor", "modified-branin"])
def test_no_shift_within_the_radius_is_worse(name: str) -> None:
    """Moving every context by s moves the law by at most s·√d_c."""
    problem = problems.get(name)
    x = np.random.default_rng(3).random((10, problem.d_x))
    worst = problem.worst_case(x, 0.1)
    for sign in (-1, 1):
        moved = shift_law(problem.law, mean_shift=sign * 0.1 / np.sqrt(problem.d_c))
        assert (worst <= problem.expected(x, law=moved) + 1e-6).all()


@pytest.mark.parametrize("radius", [-0.1, float("nan"), float("inf")])
def test_impossible_radius_is_refused(radius: float) -> None:
    with pytest.raises(InvalidValueError):
        problems.get("newsvendor").worst_case(np.array([0.2]), radius)


def test_robust_maximizer_beats_a_fine_grid() -> None:
    problem = problems.get("six-hump-camel")
    x, value = problem.robust_optimum(0.1)
    assert value == pytest.approx(float(problem.worst_case(x, 0.1)), abs=1e-12)
    assert value >= problem.worst_case(np.linspace(0, 1, 301)[:, None], 0.1).max() - 1e-9
    assert value >= float(problem.worst_case(problem.x_star, 0.1))
