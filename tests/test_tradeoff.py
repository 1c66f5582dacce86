"""The frontier between mean and robust goal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import edrbo
from edrbo.errors import EdrboError
from edrbo.optimizer.tradeoff import frontier

SPACE = edrbo.Space(design={"x": (0, 1)}, context={"c": (0, 1)})


@pytest.fixture(scope="module", params=["maximize", "minimize"])
def lever(request: pytest.FixtureRequest) -> edrbo.Optimizer:
    sign = 1.0 if request.param == "maximize" else -1.0
    optimizer = edrbo.Optimizer(SPACE, "erbo", seed=0, direction=request.param, outcome="gain", unit="kg")
    draw = np.random.default_rng(0)
    for x in np.linspace(0, 1, 14):
        c = float(draw.uniform())
        optimizer.tell({"x": float(x)}, {"c": c}, sign * (6 * x * (c - 0.35) - 0.3 * (x - 0.5) ** 2))
    return optimizer


def test_from_the_best_on_average_to_the_best_under_the_goal(lever: edrbo.Optimizer, tmp_path: Path) -> None:
    found = lever.tradeoff("cvar:0.2")
    sign = 1.0 if lever.direction == "maximize" else -1.0
    assert found.designs[0]["x"] > 0.95
    assert found.designs[-1]["x"] < 0.1
    assert (np.diff(sign * found.mean) < 0).all()
    assert (np.diff(sign * found.value) > 0).all()
    assert found.goal == "cvar:0.2"
    assert found.value_axis == "gain, mean of the worst 20 % of conditions (kg)"
    found.save(tmp_path / "frontier.png")
    assert (tmp_path / "frontier.png").read_bytes()[:4] == b"\x89PNG"
    again = lever.predict(found.designs, goal="cvar:0.2")
    np.testing.assert_allclose(again.expected, found.mean, rtol=1e-9)


def test_without_a_goal_it_is_the_tail(lever: edrbo.Optimizer) -> None:
    assert lever.tradeoff().goal == "cvar:0.1"
    assert lever.tradeoff("robust:0.1").goal == "robust:0.1"


def test_nothing_reported_nothing_traded() -> None:
    with pytest.raises(EdrboError, match="nothing"):
        edrbo.Optimizer(SPACE).tradeoff()


def test_a_frontier_by_hand() -> None:
    mean, value = np.array([3.0, 1.0, 2.0, 3.0, 0.0]), np.array([0.0, 2.0, 0.5, 0.2, 1.0])
    assert frontier(mean, value).tolist() == [3, 2, 1]
    many = np.arange(100.0)
    assert frontier(np.array([1.0, 0.9999, 0.0]), np.array([0.9999, 1.0, 0.0])).tolist() == [1]
    few = frontier(many, -many)
    assert len(few) == 12
    assert (few[0], few[-1]) == (99, 0)
