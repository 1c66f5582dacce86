"""Worst case in a Wasserstein-1 ball against the transport linear program."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import linprog

from edrbo.bench import problems
from edrbo.bench.problems.oracle import robust
from edrbo.bench.problems.oracle.distributions import Product, clipped_burr, clipped_normal, tensor_nodes
from edrbo.bench.problems.oracle.robust import expected_loss, loss_on_line, maximize_concave
from edrbo.bench.problems.oracle.shift import shift_distribution
from edrbo.errors import InvalidValueError

pytestmark = pytest.mark.numpy_numeric


def transport_worst_case(values: np.ndarray, grid: np.ndarray, weights: np.ndarray, radius: float) -> float:
    """min Σ π_jk f_k over plans π with first marginal ``weights`` and cost at most ``radius``."""
    m = len(grid)
    distance = np.sqrt(((grid[:, None] - grid) ** 2).sum(-1))
    marginal = np.kron(np.eye(m), np.ones(m))
    result = linprog(np.tile(values, m), A_ub=distance.reshape(1, -1), b_ub=[radius], A_eq=marginal, b_eq=weights)
    return float(result.fun)


@pytest.mark.parametrize("radius", [0.0, 0.01, 0.1, 0.4, 2.0])
def test_dual_on_a_line_matches_the_transport_program(radius: float) -> None:
    rng = np.random.default_rng(1)
    line = np.sort(rng.random(12))
    weights = rng.dirichlet(np.ones(12))
    values = rng.standard_normal((3, 12))
    for row, one in zip(values, loss_on_line(values, line, weights, radius), strict=True):
        by_program = transport_worst_case(row, line[:, None], weights, radius)
        assert row @ weights - one == pytest.approx(by_program, abs=1e-7)


@pytest.mark.parametrize("radius", [0.01, 0.1, 0.4, 2.0])
@pytest.mark.parametrize("d_c", [2, 3])
def test_tangents_find_what_the_transport_program_finds(d_c: int, radius: float) -> None:
    rng = np.random.default_rng(d_c)
    grid, weights, values = rng.random((12, d_c)), rng.dirichlet(np.ones(12)), rng.standard_normal(12)
    distance = np.sqrt(((grid[:, None] - grid) ** 2).sum(-1))

    def dual(price: float) -> tuple[float, float]:
        cost = values + price * distance
        best = cost.argmin(axis=1)
        moved = distance[np.arange(12), best]
        return float(weights @ cost.min(axis=1)) - price * radius, float(weights @ moved) - radius

    by_program = transport_worst_case(values, grid, weights, radius)
    assert maximize_concave(dual, 1.0, 1e-12) == pytest.approx(by_program, abs=1e-9)


FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "bumps": lambda t: 2 * np.exp(-(((t - 0.7) / 0.15) ** 2) / 2) - np.exp(-(((t - 0.25) / 0.1) ** 2) / 2),
    "waves with a kink": lambda t: 0.3 * np.sin(12 * t) - 3 * np.abs(t - 0.37),
    "a step": lambda t: 1 / (1 + np.exp(-40 * (t - 0.4))),
}


@pytest.mark.parametrize("d_c", [2, 3])
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_a_function_of_one_context_is_a_problem_of_one_context(name: str, d_c: int) -> None:
    """Moving mass along contexts that do not matter is a waste, so the answer is that of the line."""
    function, first = FUNCTIONS[name], clipped_burr(2, 5)
    context_distribution = Product((first, *(clipped_normal(0.4, 0.3),) * (d_c - 1)))
    line, weights = first.quadrature()
    line, weights = np.append(line, 0.0), np.append(weights, 0.0)
    order = np.argsort(line)
    line, weights = line[order], weights[order]
    accuracy = {2: 3e-4, 3: 3e-3}[d_c] * np.ptp(function(line))
    for radius in (0.02, 0.1, 0.3) if d_c == 2 else (0.1,):
        found = expected_loss(
            lambda x, lines: function(tensor_nodes(lines)[:, 0])[None],
            context_distribution,
            (),
            np.zeros((1, 1)),
            radius,
        )
        by_line = loss_on_line(function(line)[None], line, weights, radius)
        assert found == pytest.approx(by_line, abs=accuracy)


@pytest.mark.parametrize("name", ["modified-branin", "dose-response", "beacons", "coating", "portfolio-normal"])
def test_two_contexts_are_as_exact_as_stated(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problems.get(name)
    x = np.random.default_rng(4).random((2, problem.d_x))
    lattice = [np.linspace(0, 1, 65)] * 2
    scale = np.ptp(problem.over_grid(x, lattice), axis=1)
    found, quick = problem.worst_case(x, 0.1), problem.worst_case(x, 0.1, rough=True)
    monkeypatch.setitem(robust.EXACT, 2, robust.Effort(24, 3, 193, 6))
    fine = problem.worst_case(x, 0.1)
    assert (np.abs(found - fine) < 3e-4 * scale).all()
    assert (np.abs(quick - fine) < 1e-2 * scale).all()


def test_over_a_grid_is_point_by_point() -> None:
    for name in ("portfolio-uniform", "modified-branin"):
        problem = problems.get(name)
        x = np.random.default_rng(5).random((3, problem.d_x))
        lines = [np.linspace(0, 1, 5), np.array([0.1, 0.7])]
        one_by_one = problem.evaluate(x[:, None, :], tensor_nodes(lines))
        np.testing.assert_allclose(problem.over_grid(x, lines), one_by_one, atol=1e-8)


def test_more_than_three_contexts_are_refused() -> None:
    context_distribution = Product((clipped_normal(0.5, 0.2),) * 4)
    with pytest.raises(InvalidValueError, match="4"):
        expected_loss(lambda x, lines: np.zeros((1, 1)), context_distribution, (), np.zeros((1, 1)), 0.1)


@pytest.mark.parametrize("name", ["six-hump-camel", "newsvendor", "modified-branin"])
def test_no_shift_within_the_radius_is_worse(name: str) -> None:
    """Moving every context by s moves the distribution by at most s·√d_c."""
    problem = problems.get(name)
    x = np.random.default_rng(3).random((10, problem.d_x))
    worst = problem.worst_case(x, 0.1)
    for sign in (-1, 1):
        moved = shift_distribution(problem.context_distribution, mean_shift=sign * 0.1 / np.sqrt(problem.d_c))
        assert (worst <= problem.expected(x, context_distribution=moved) + 1e-6).all()


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
