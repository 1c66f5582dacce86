"""The last climbs, guided by an approximation's curvature."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from edrbo.acquisition.search.local_search import curvatures, trust_region_climbs

pytestmark = [pytest.mark.numpy_numeric]

Array = NDArray[np.float64]
BOTH = np.array([True, True])


class Counted:
    """½ (x − low)ᵀ H (x − low) + 0.1 Σ sin(5 x) with its gradient; counts the points asked for."""

    def __init__(self, low: list[float], hessian: list[list[float]], wavy: float = 0.1) -> None:
        self.low, self.hessian, self.wavy, self.points = np.array(low), np.array(hessian), wavy, 0

    def __call__(self, x: Array) -> tuple[Array, Array]:
        self.points += len(x)
        away = x - self.low
        value = 0.5 * np.einsum("bi,ij,bj->b", away, self.hessian, away) + self.wavy * np.sin(5.0 * x).sum(axis=1)
        return value, away @ self.hessian + 5.0 * self.wavy * np.cos(5.0 * x)


def test_curvatures_are_the_second_derivatives() -> None:
    plain = Counted([0.3, 0.4], [[8.0, 2.0], [2.0, 5.0]], wavy=0.0)
    x = np.array([[0.2, 0.9], [1.0, 0.995]])
    assert np.allclose(curvatures(plain, x, BOTH), plain.hessian)
    held = curvatures(plain, x, np.array([True, False]))
    assert np.allclose(held, np.array([[8.0, 0.0], [0.0, 0.0]]))


def test_a_quadratic_is_done_in_one_round() -> None:
    plain = Counted([0.3, 0.4], [[8.0, 2.0], [2.0, 5.0]], wavy=0.0)
    start = np.array([[0.35, 0.42]])
    ends, costs = trust_region_climbs(plain, plain, start, BOTH, 1e-8)
    assert np.allclose(ends, plain.low)
    assert costs == pytest.approx(0.0, abs=1e-12)
    assert plain.points == 1 + 3 + 1  # the start, the differences, the end


@pytest.mark.parametrize("low", [[0.6, 0.5], [1.4, 0.5], [1.4, -0.3]])
def test_a_guide_of_another_curvature_leads_to_the_objectives_own_minimum(low: list[float]) -> None:
    objective = Counted(low, [[30.0, 8.0], [8.0, 12.0]])
    guide = Counted([0.5, 0.5], [[15.0, 0.0], [0.0, 20.0]], wavy=0.0)
    start = np.array([[0.75, 0.45], [0.9, 0.1]])
    ends, costs = trust_region_climbs(objective, guide, start, BOTH, 1e-7)
    grid = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 401)] * 2), axis=-1).reshape(-1, 2)
    assert costs.min() <= objective(grid)[0].min() + 1e-4
    assert np.allclose(objective(ends)[0], costs)


def test_held_columns_stay_and_all_stay_in_the_cube() -> None:
    objective = Counted([1.4, 0.9], [[8.0, 2.0], [2.0, 5.0]])
    ends, _ = trust_region_climbs(objective, objective, np.array([[0.5, 0.25]]), np.array([True, False]), 1e-6)
    assert ends[0, 1] == 0.25
    assert ends[0, 0] == 1.0


def test_no_end_is_worse_than_its_start_even_with_a_misleading_guide() -> None:
    objective = Counted([0.2, 0.7], [[20.0, 0.0], [0.0, 20.0]])
    misleading = Counted([0.9, 0.1], [[-20.0, 5.0], [5.0, -3.0]])
    start = np.random.default_rng(0).random((6, 2))
    _, costs = trust_region_climbs(objective, misleading, start, BOTH, 1e-6)
    assert (costs <= objective(start)[0]).all()
    assert costs.min() == pytest.approx(trust_region_climbs(objective, objective, start, BOTH, 1e-8)[1].min(), abs=1e-3)


def test_a_climb_far_behind_ends_and_so_does_one_that_follows_another() -> None:
    def two_hills(x: Array) -> tuple[Array, Array]:
        near = np.array([[0.2, 0.2], [0.8, 0.8]])
        which = (np.abs(x[:, None] - near).max(axis=2)).argmin(axis=1)
        away = x - near[which]
        asked.append(len(x))
        return np.where(which == 0, 0.0, 1.0) + 4.0 * (away * away).sum(axis=1), 8.0 * away

    asked: list[int] = []
    ends, costs = trust_region_climbs(two_hills, two_hills, np.array([[0.24, 0.2], [0.84, 0.8]]), BOTH, 1e-6)
    assert np.allclose(ends, [[0.2, 0.2], [0.84, 0.8]])  # one behind, for ever
    asked.clear()
    ends, costs = trust_region_climbs(two_hills, two_hills, np.array([[0.201, 0.2], [0.28, 0.2]]), BOTH, 1e-6)
    assert costs.min() < 1e-5
    assert ends[1, 0] == 0.28  # it would have come where the first one is
    assert asked == [2, 6, 1]


def test_where_the_objective_overflows_there_is_a_wall() -> None:
    def broken(x: Array) -> tuple[Array, Array]:
        value = np.where(x[:, 0] > 0.5, np.nan, (x[:, 0] - 0.6) ** 2)
        return value, np.stack([2.0 * (x[:, 0] - 0.6), np.zeros(len(x))], axis=1)

    ends, costs = trust_region_climbs(broken, broken, np.array([[0.3, 0.3], [0.9, 0.9]]), BOTH, 1e-6)
    assert np.isfinite(costs).all()
    assert ends[0, 0] <= 0.5
