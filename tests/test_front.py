"""The front of several main outcomes: what it holds, what it dominates, and what is asked for to extend it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import edrbo
from edrbo.acquisition.hypervolume import HypervolumeImprovement, cells_of, hypervolume, not_dominated
from edrbo.errors import EdrboError, InvalidValueError, NothingReportedError, SeveralOutcomesError, UnknownNameError
from edrbo.optimizer.optimizer import Optimizer
from edrbo.optimizer.pareto import ParetoFront

SPACE = edrbo.Space(design={"x": (0.0, 1.0)}, context={"c": (0.0, 1.0)})
# a is best at 0.2 and b at 0.8: the front is in between; g = x + (c − ½)/5 ≤ 0.6 in 80 % of contexts up to 0.54
OUTCOMES = {"a": edrbo.Maximize(), "b": edrbo.Minimize()}
LIMIT = edrbo.Limit(upper=0.6, probability=0.8)


def reported(*, limit: bool, n: int = 16) -> Optimizer:
    outcomes = {**OUTCOMES, **({"g": LIMIT} if limit else {})}
    optimizer = Optimizer(SPACE, "erbo", outcomes=outcomes, seed=1)
    for x, c in np.random.default_rng(0).random((n, 2)):
        values = {"a": 5 - 10 * (x - 0.2) ** 2 + c, "b": (x - 0.8) ** 2, "g": x + 0.2 * (c - 0.5)}
        optimizer.tell({"x": x}, {"c": c}, {name: values[name] for name in outcomes})
    return optimizer


@pytest.fixture(scope="module")
def free() -> tuple[Optimizer, ParetoFront]:
    optimizer = reported(limit=False)
    return optimizer, optimizer.front()


def volume_of(points: np.ndarray, reference: np.ndarray) -> float:
    """Of two outcomes to be large: the staircase, column by column."""
    total, height = 0.0, float(reference[1])
    for first, second in sorted(points.tolist(), reverse=True):
        if second > height:
            total += (first - reference[0]) * (second - height)
            height = second
    return total


def test_the_front_lies_between_the_two_best(free: tuple[Optimizer, ParetoFront]) -> None:
    _, front = free
    places = [point.design["x"] for point in front.points]
    assert len(places) >= 6
    assert places == sorted(places)  # from the best in a on
    assert places[0] == pytest.approx(0.2, abs=0.03)
    assert places[-1] == pytest.approx(0.8, abs=0.03)
    for point in front.points:
        assert point.values["a"] == pytest.approx(5.5 - 10 * (point.design["x"] - 0.2) ** 2, abs=0.3)
        assert point.intervals["b"][0] < point.values["b"] < point.intervals["b"][1]
        assert point.holds == {}
    values = np.array([[point.values["a"], -point.values["b"]] for point in front.points])
    assert (np.diff(values[:, 0]) < 0).all()
    assert (np.diff(values[:, 1]) > 0).all()
    reference = np.array([front.reference["a"], -front.reference["b"]])
    assert (values > reference).all()
    assert front.hypervolume == pytest.approx(volume_of(values, reference))


def test_a_reference_of_ones_own(free: tuple[Optimizer, ParetoFront]) -> None:
    optimizer, front = free
    wide = optimizer.front(reference={"a": 0.0, "b": 1.0})
    assert wide.reference == {"a": 0.0, "b": 1.0}
    assert wide.hypervolume > front.hypervolume
    for wrong in ({"a": 0.0}, {"a": 0.0, "b": float("nan")}, [0.0, 1.0]):
        with pytest.raises(InvalidValueError):
            optimizer.front(reference=wrong)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError):
        optimizer.front(reference={"c": 0.0})


def test_limits_cut_the_front() -> None:
    front = reported(limit=True).front()
    places = [point.design["x"] for point in front.points]
    assert front.sure
    assert places[0] == pytest.approx(0.2, abs=0.03)
    assert 0.4 < max(places) <= 0.54
    assert all(point.holds["g"] >= LIMIT.confidence for point in front.points)


def test_what_is_asked_for_extends_the_front() -> None:
    optimizer = Optimizer(SPACE, "erbo", outcomes=OUTCOMES, seed=1, initial=2)
    for x, c in ((0.15, 0.3), (0.25, 0.6), (0.2, 0.8), (0.3, 0.5)):  # one end of it only
        optimizer.tell({"x": x}, {"c": c}, {"a": 5 - 10 * (x - 0.2) ** 2, "b": (x - 0.8) ** 2})
    asked = [one["x"] for one in optimizer.ask(2)]
    assert max(asked) > 0.45
    assert abs(asked[0] - asked[1]) > 0.03


def test_where_there_is_no_front(free: tuple[Optimizer, ParetoFront]) -> None:
    with pytest.raises(EdrboError):
        Optimizer(SPACE).front()
    with pytest.raises(NothingReportedError):
        Optimizer(SPACE, outcomes=OUTCOMES).front()
    with pytest.raises(SeveralOutcomesError):
        free[0].recommend()


# -------------------------------------------------------------------- the parts


@pytest.mark.parametrize("count", [2, 3])
def test_the_gain_is_what_a_point_adds_to_the_hypervolume(count: int) -> None:
    rng = np.random.default_rng(count)
    values = torch.from_numpy(rng.random((12, count)))
    front, lower, upper = cells_of(values, torch.ones(12, dtype=torch.bool))
    gain = HypervolumeImprovement((), torch.ones(count, dtype=torch.float64), front, lower, upper)
    reference = lower.amin(0)
    places = torch.from_numpy(rng.uniform(-0.1, 1.4, (40, count)))
    for place, found in zip(places, gain._gain(places).tolist(), strict=True):
        more = torch.cat([front, place[None]])
        above = more[(more > reference).all(-1)]
        added = hypervolume(above, reference) - hypervolume(front, reference)
        assert max(found, 0.0) == pytest.approx(added, abs=1e-9)
        if found < 0:
            assert added == pytest.approx(0.0, abs=1e-9)


def test_the_gradient_of_the_gain(free: tuple[Optimizer, ParetoFront]) -> None:
    optimizer, _ = free
    joint = optimizer._posterior(optimizer._main.data(), (None, None), [])
    top = joint.acquisition().approximations()[-1]
    x = torch.linspace(0.02, 0.98, 13, dtype=torch.float64)[:, None]
    value, gradient = top.value_and_gradient(x)
    assert value.numpy() == pytest.approx(top(x).numpy())
    step = 1e-6
    numeric = (top(x + step) - top(x - step)) / (2 * step)
    assert gradient[:, 0].numpy() == pytest.approx(numeric.numpy(), rel=1e-3, abs=1e-5)
    assert (value < 0).any()


def test_not_dominated() -> None:
    values = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [0.4, 0.5], [0.0, 0.9]])
    assert not_dominated(values).tolist() == [True, True, False, True, False, False]


def test_the_front_does_not_depend_on_units() -> None:
    """In units a million times as large the default reference was 0.1 behind outcomes of 1e-6."""
    fronts = []
    for unit in (1.0, 1e-6):
        optimizer = Optimizer(SPACE, "erbo", outcomes=OUTCOMES, seed=1)
        for x, c in np.random.default_rng(0).random((12, 2)):
            optimizer.tell({"x": x}, {"c": c}, {"a": unit * (5 - 10 * (x - 0.2) ** 2 + c), "b": unit * (x - 0.8) ** 2})
        fronts.append(optimizer.front())
    large, small = fronts
    for name in OUTCOMES:
        assert small.reference[name] == pytest.approx(1e-6 * large.reference[name], rel=0.01)
    assert small.hypervolume == pytest.approx(1e-12 * large.hypervolume, rel=0.02)
