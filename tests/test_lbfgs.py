"""Batched bounded L-BFGS against SciPy's and BoTorch's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from botorch.optim.batched_lbfgs_b import fmin_l_bfgs_b_batched
from numpy.typing import NDArray
from scipy.optimize import fmin_l_bfgs_b, minimize, rosen, rosen_der

from edrbo.surrogate import quasi_newton
from edrbo.surrogate.quasi_newton import minimize_lbfgs

pytestmark = [pytest.mark.torch_numeric, pytest.mark.numpy_numeric]

Array = NDArray[np.float64]
Scalar = Callable[[Array], tuple[float, Array]]


def rosenbrock(x: Array) -> tuple[float, Array]:
    return float(rosen(x)), rosen_der(x)


def quartic(x: Array) -> tuple[float, Array]:
    """A minimum at 3, outside the bounds used here, in every coordinate."""
    return float(((x - 3.0) ** 4).sum()), 4.0 * (x - 3.0) ** 3


def waves(x: Array) -> tuple[float, Array]:
    value = float((np.sin(3.0 * x) + 0.1 * x**2).sum())
    return value, 3.0 * np.cos(3.0 * x) + 0.2 * x


def batched(function: Scalar) -> Callable[[Array, list[int]], tuple[Array, Array]]:
    def value_and_gradient(points: Array, rows: list[int]) -> tuple[Array, Array]:
        assert len(points) == len(rows)
        pairs = [function(point) for point in points]
        return np.array([value for value, _ in pairs]), np.stack([gradient for _, gradient in pairs])

    return value_and_gradient


@pytest.fixture(params=["side by side", "one by one"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With SciPy's compiled core, and as with a SciPy that has another one."""
    assert quasi_newton._core() is not None
    if request.param == "one by one":
        monkeypatch.setattr(quasi_newton, "_core", lambda: None)
    return str(request.param)


Path = list[list[float]]


def recorded(function: Scalar, paths: list[Path]) -> Callable[[Array, list[int]], tuple[Array, Array]]:
    """``function`` of a batch that writes down where each problem was evaluated."""

    def value_and_gradient(points: Array, batch_indices: list[int]) -> tuple[Array, Array]:
        for i, point in zip(batch_indices, points, strict=True):
            paths[i].append(point.tolist())
        return batched(function)(points, batch_indices)

    return value_and_gradient


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("function", [rosenbrock, quartic, waves])
@pytest.mark.parametrize("pinned", [False, True])
def test_searches_go_where_those_of_scipy_and_botorch_go(function: Scalar, pinned: bool) -> None:
    """Bit for bit: they are driven by the same core."""
    start = np.random.default_rng(2).uniform(-1.9, 1.9, size=(5, 4))
    lower, upper = np.full(4, -2.0), np.full(4, 2.0)
    if pinned:  # as a hyper-parameter that is not learnt
        lower[1] = upper[1] = start[:, 1] = 0.5
    ours, scipys, botorchs = ([[] for _ in start] for _ in range(3))
    minimize_lbfgs(
        recorded(function, ours), start, lower, upper, max_iterations=9, ftol=1e-9, gtol=1e-7, max_line_search=4
    )
    bounds = list(zip(lower, upper, strict=True))
    fmin_l_bfgs_b_batched(
        recorded(function, botorchs),
        *(start.copy(), bounds),
        **{"maxiter": 9, "factr": None, "ftol": 1e-9, "pgtol": 1e-7, "maxls": 4, "pass_batch_indices": True},
    )
    for i, row in enumerate(start):
        one = recorded(function, [scipys[i]])

        def scalar(x: Array, one: Callable[[Array, list[int]], tuple[Array, Array]] = one) -> tuple[float, Array]:
            value, gradient = one(x[None], [0])
            return float(value[0]), gradient[0]

        fmin_l_bfgs_b(scalar, row, bounds=bounds, maxiter=9, maxls=4, factr=1e-9 / np.finfo(np.float64).eps, pgtol=1e-7)
    assert ours == scipys == botorchs
    assert min(map(len, ours)) > 1  # the quartic is at its corner after one step


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("function", [rosenbrock, quartic, waves])
def test_every_row_ends_where_scipy_ends(function: Scalar) -> None:
    start = np.random.default_rng(0).uniform(-2.0, 2.0, size=(7, 3))
    lower, upper = np.full(3, -2.0), np.full(3, 2.0)
    ends, values = minimize_lbfgs(batched(function), start, lower, upper, max_iterations=500, ftol=1e-15, gtol=1e-9)
    assert ends.shape == (7, 3)
    for row in range(7):
        expected = minimize(
            function, start[row], jac=True, bounds=[(-2.0, 2.0)] * 3, options={"ftol": 1e-15, "gtol": 1e-9}
        )
        np.testing.assert_allclose(ends[row], expected.x, atol=1e-5)
        assert values[row] == pytest.approx(expected.fun, abs=1e-9)
        assert values[row] == function(ends[row])[0]


@pytest.mark.usefixtures("way")
def test_bounds_may_differ_and_may_pin_a_variable() -> None:
    lower, upper = np.array([-1.0, 0.5, 0.0]), np.array([1.0, 0.5, 4.0])
    start = np.array([[0.0, 7.0, 9.0], [-5.0, 0.0, 0.0]])  # outside: moved inside first
    ends, _ = minimize_lbfgs(batched(quartic), start, lower, upper, max_iterations=200, ftol=1e-16, gtol=1e-10)
    np.testing.assert_allclose(ends, [[1.0, 0.5, 3.0]] * 2, atol=1e-2)
    assert ((ends >= lower) & (ends <= upper)).all()


def test_rows_know_which_problem_they_are() -> None:
    centers = np.array([[0.1, 0.9], [0.5, 0.5], [0.8, 0.2]])

    def bowls(points: Array, rows: list[int]) -> tuple[Array, Array]:
        away = points - centers[rows]
        return (away**2).sum(1), 2.0 * away

    ends, values = minimize_lbfgs(
        bowls, np.zeros((3, 2)), np.zeros(2), np.ones(2), max_iterations=50, ftol=1e-14, gtol=1e-10
    )
    np.testing.assert_allclose(ends, centers, atol=1e-7)
    assert float(values.max()) < 1e-12


@pytest.mark.usefixtures("way")
def test_the_best_point_seen_is_returned() -> None:
    """With values known up to noise only, the last point tried need not be the best."""
    rng = np.random.default_rng(0)
    seen: list[tuple[float, Array]] = []

    def noisy(points: Array, rows: list[int]) -> tuple[Array, Array]:
        values, gradients = batched(rosenbrock)(points, rows)
        values = values + rng.normal(0.0, 0.1, size=len(values))
        seen.append((float(values[0]), points[0].copy()))
        return values, gradients

    start = np.array([[-1.2, 1.0]])
    ends, values = minimize_lbfgs(noisy, start, np.full(2, -2.0), np.full(2, 2.0), max_iterations=100, ftol=1e-12)
    best_value, best = min(seen, key=lambda pair: pair[0])
    assert seen[-1][0] > best_value == values[0]
    np.testing.assert_array_equal(ends[0], best)


@pytest.mark.usefixtures("way")
def test_overflow_is_a_wall() -> None:
    """−log(1 − x) has no value beyond 1; the search must stay this side of it."""

    def barrier(points: Array, rows: list[int]) -> tuple[Array, Array]:
        x = points[:, 0]
        with np.errstate(invalid="ignore", divide="ignore"):
            value = -np.log(1.0 - x) - 2.0 * x
            gradient = 1.0 / (1.0 - x) - 2.0
        return value, np.where(np.isfinite(value), gradient, np.nan)[:, None]

    ends, values = minimize_lbfgs(
        barrier, np.array([[0.0], [0.9]]), np.array([-5.0]), np.array([50.0]), max_iterations=100, ftol=1e-14
    )
    np.testing.assert_allclose(ends, 0.5, atol=1e-4)
    np.testing.assert_allclose(values, np.log(2.0) - 1.0, atol=1e-8)


def test_it_is_deterministic() -> None:
    start = np.random.default_rng(1).uniform(-2.0, 2.0, size=(4, 3))
    results = [
        minimize_lbfgs(batched(waves), start, np.full(3, -2.0), np.full(3, 2.0), max_iterations=30, ftol=1e-9)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


@pytest.mark.usefixtures("way")
def test_each_problem_may_have_bounds_of_its_own() -> None:
    lower, upper = np.array([[0.0, 0.0], [1.5, -1.0]]), np.array([[1.0, 2.0], [2.0, 0.5]])
    start = np.array([[0.5, 0.5], [1.6, 0.0]])
    ends, values = minimize_lbfgs(batched(quartic), start, lower, upper, max_iterations=50, ftol=1e-12)
    assert np.allclose(ends, upper)
    each = [
        minimize_lbfgs(batched(quartic), start[i : i + 1], lower[i], upper[i], max_iterations=50, ftol=1e-12)
        for i in (0, 1)
    ]
    assert np.array_equal(ends, np.concatenate([end for end, _ in each]))
    assert np.array_equal(values, np.concatenate([value for _, value in each]))


@pytest.mark.usefixtures("way")
def test_a_search_at_a_kink_ends_when_patience_does() -> None:
    def kinked(x: Array) -> tuple[float, Array]:
        return float(np.abs(x - 0.31).sum()), np.sign(x - 0.31)

    paths: list[list[Path]] = [[[]], [[]]]
    start, box = np.array([[0.9]]), (np.zeros(1), np.ones(1))
    ends = [
        minimize_lbfgs(recorded(kinked, path), start, *box, max_iterations=50, ftol=1e-3, patience=wait)
        for path, wait in zip(paths, (None, 2), strict=True)
    ]
    assert len(paths[1][0]) < len(paths[0][0])
    assert paths[1][0] == paths[0][0][: len(paths[1][0])]  # the same way, not as far
    assert ends[1][1][0] < 0.05


@pytest.mark.usefixtures("way")
def test_a_search_ends_where_a_better_one_has_been() -> None:
    paths: list[Path] = [[], []]
    start = np.array([[1.0, 1.0], [0.99, 0.99]])  # the first begins at the minimum
    box = np.full(2, -2.0), np.full(2, 2.0)
    ends, values = minimize_lbfgs(recorded(rosenbrock, paths), start, *box, max_iterations=50, ftol=1e-9, apart=0.02)
    assert len(paths[1]) == 1
    assert np.array_equal(ends, start)
    assert values[0] == 0.0
