"""The Newton search of fits: ends that are minima, inside the bounds, and each search as if it were alone."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from edrbo.surrogate.quasi_newton import minimize_newton

Array = NDArray[np.float64]

pytestmark = pytest.mark.numpy_numeric

LOWER, UPPER = np.full(3, -2.0), np.array([2.0, 2.0, 0.3])
CENTERS = np.array([[0.5, -0.7, 0.1], [1.5, 0.2, 1.4], [-3.0, 0.0, 0.0], [0.1, 0.1, -0.5]])


def bowl(x: Array, center: Array) -> tuple[float, Array]:
    """Convex, with its curvature far from constant."""
    away = x - center
    mixed = away.sum()
    return float(np.cosh(away).sum() + 0.5 * mixed**2), np.sinh(away) + mixed


def problems(calls: list[list[int]], *, rough: bool = False):
    def evaluate(points: Array, rows: list[int], curved: bool) -> tuple[Array, Array, Array | None]:
        calls.append(list(rows))
        found = [bowl(x, CENTERS[i]) for x, i in zip(points, rows, strict=True)]
        exact = [np.diag(np.cosh(x - CENTERS[i])) + 1.0 for x, i in zip(points, rows, strict=True)]
        curvature = np.stack([np.eye(3) if rough else matrix for matrix in exact])
        return np.array([f for f, _ in found]), np.stack([g for _, g in found]), curvature if curved else None

    return evaluate


@pytest.mark.parametrize("rough", [False, True])
def test_ends_are_the_minima_in_the_box(rough: bool) -> None:
    calls: list[list[int]] = []
    start = np.zeros((4, 3))
    ends, values = minimize_newton(
        problems(calls, rough=rough), start, LOWER, UPPER, max_evaluations=100, tolerance=1e-13
    )
    for end, value, center in zip(ends, values, CENTERS, strict=True):
        bounds = list(zip(LOWER, UPPER, strict=True))
        best = minimize(bowl, np.zeros(3), args=(center,), jac=True, bounds=bounds, options={"ftol": 1e-15})
        assert value == pytest.approx(best.fun, abs=1e-9)
        np.testing.assert_allclose(end, best.x, atol=1e-4)
        assert (end >= LOWER).all()
        assert (end <= UPPER).all()


def test_a_search_is_the_same_alone_as_among_others() -> None:
    together, values = minimize_newton(problems([]), np.zeros((4, 3)), LOWER, UPPER, max_evaluations=50, tolerance=1e-6)
    for i in range(4):

        def alone(points: Array, rows: list[int], curved: bool, i: int = i) -> tuple[Array, Array, Array | None]:
            return problems([])(points, [i] * len(rows), curved)

        end, value = minimize_newton(alone, np.zeros((1, 3)), LOWER, UPPER, max_evaluations=50, tolerance=1e-6)
        assert end[0].tolist() == together[i].tolist()
        assert value[0] == values[i]


def test_known_curvature_needs_few_evaluations() -> None:
    calls: list[list[int]] = []
    minimize_newton(problems(calls), CENTERS[3:] * 0 + 0.3, LOWER, UPPER, max_evaluations=50, tolerance=1e-6)
    assert len(calls) <= 5


def test_a_wall_is_walked_around() -> None:
    def walled(points: Array, rows: list[int], curved: bool) -> tuple[Array, Array, Array | None]:
        value, gradient, _ = problems([])(points, rows, True)
        beyond = points[:, 0] > 0.4
        return np.where(beyond, np.nan, value), gradient, np.stack([0.1 * np.eye(3)] * len(rows)) if curved else None

    start = np.full((1, 3), -0.5)
    (end,), (value,) = minimize_newton(walled, start, LOWER, UPPER, max_evaluations=60, tolerance=1e-9)
    assert end[0] <= 0.4
    assert value < bowl(start[0], CENTERS[0])[0]


def test_a_start_without_a_value_stays() -> None:
    def nothing(points: Array, rows: list[int], curved: bool) -> tuple[Array, Array, Array | None]:
        return np.full(len(rows), np.inf), np.zeros_like(points), np.stack([np.eye(3)] * len(rows))

    ends, values = minimize_newton(nothing, np.zeros((2, 3)), LOWER, UPPER, max_evaluations=9, tolerance=1e-6)
    assert not ends.any()
    assert np.isinf(values).all()
