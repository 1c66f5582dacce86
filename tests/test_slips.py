"""One absurd outcome among sound ones: kept on record, named as doubtful, and the answer stays right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from edrbo.optimizer.optimizer import Optimizer
from edrbo.optimizer.training_data import TrainingData
from edrbo.records import events as e
from edrbo.records.sanity import outliers
from edrbo.records.settings import Settings
from edrbo.records.state import State
from edrbo.space import Space

pytestmark = pytest.mark.filterwarnings("ignore::edrbo.errors.ImplausibleWarning")

SPACE = Space({"x": (0, 1)}, {"c": (0, 1)})
Function = Callable[[float, float], float]


def valley(x: float, c: float) -> float:
    return -((x - 0.3 - 0.4 * c) ** 2)


def newsvendor(x: float, c: float) -> float:
    return 9 * min(x, c) + max(0.0, x - c) - 5 * x


def ridge(x: float, c: float) -> float:
    return 1e-3 * np.cos(3 * (x - 0.6)) + 2e-4 * c


def data(f: Function, seed: int, n: int = 11) -> tuple[np.ndarray, np.ndarray]:
    inputs = np.random.default_rng(seed).random((n, 2))
    return inputs, np.array([f(x, c) for x, c in inputs])


def reported(inputs: np.ndarray, y: np.ndarray, **choices: object) -> Optimizer:
    optimizer = Optimizer(SPACE, seed=0, **choices)  # type: ignore[arg-type]
    for (x, c), value in zip(inputs, y, strict=True):
        optimizer.tell({"x": float(x)}, {"c": float(c)}, float(value))
    return optimizer


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("f", [valley, newsvendor, ridge])
def test_the_model_sees_what_it_would_without_the_slip(f: Function, seed: int) -> None:
    """Bit for bit: neither scale nor fit can change. Its context still belongs to the distribution."""
    inputs, y = data(f, seed)
    place = int(np.random.default_rng(seed).integers(len(y) + 1))
    slipped = reported(np.insert(inputs, place, [0.5, 0.5], axis=0), np.insert(y, place, -10_000.0))
    assert [one.run for one in slipped.implausible()] == [place]
    assert "not learned from" in slipped.implausible()[0].reasons[-1]
    spoiled, clean = TrainingData(slipped.state, True), TrainingData(reported(inputs, y).state, True)
    assert spoiled.digest(len(y)) == clean.digest(len(y))
    assert torch.equal(spoiled.inputs(len(y)), clean.inputs(len(y)))
    assert spoiled.units == clean.units
    assert spoiled.extras([]).outcome_range == clean.extras([]).outcome_range
    assert len(spoiled.extras([]).missing_x) == 0
    assert len(slipped.context_log) == len(y) + 1


def test_the_answer_is_right() -> None:
    inputs, y = data(valley, 0)
    clean = reported(inputs, y)
    clean.observe_context([[0.5]])
    slipped = reported(np.vstack([inputs, [0.5, 0.5]]), np.append(y, -10_000.0))
    one, two = slipped.recommend(), clean.recommend()
    assert one.design["x"] == pytest.approx(0.5, abs=0.05)
    assert one.expected == pytest.approx(two.expected, abs=0.02 * np.ptp(y))
    assert one.interval == pytest.approx(two.interval, abs=0.1 * np.ptp(y))
    kept = Optimizer.of(slipped.state.apply(e.Amended(ref="better", settings={"outliers": "keep"})))
    assert np.ptp(kept.recommend().interval) > 100 * np.ptp(one.interval)  # for those who know better


def test_resumed_it_is_the_same_whenever_the_slip_came() -> None:
    """At first there are too few others to judge it by: it is learned, then not any more."""
    inputs, y = data(valley, 1, 11)
    y[2] = -10_000.0
    optimizer = reported(inputs[:8], y[:8])
    assert TrainingData(optimizer.state, True).kept.all()
    optimizer.ask()
    for (x, c), value in zip(inputs[8:], y[8:], strict=True):
        optimizer.tell({"x": float(x)}, {"c": float(c)}, float(value))
    assert TrainingData(optimizer.state, True).kept.tolist() == [i != 2 for i in range(11)]
    resumed = Optimizer.from_json(optimizer.to_json())
    fresh = Optimizer.of(optimizer.state)  # without any fit of before
    assert optimizer.ask() == resumed.ask() == fresh.ask()


# -------------------------------------------------------------------- what is judged


def rows_of(y: list[float], x: list[float] | None = None, c: list[float] | None = None, **choices: object) -> list[int]:
    state = State.start(Settings(SPACE, **choices))  # type: ignore[arg-type]
    designs = np.linspace(0, 1, len(y)) if x is None else x
    contexts = np.linspace(0, 1, len(y)) if c is None else c
    for i, value in enumerate(y):
        here = {"x": np.array([designs[i]]), "context": np.array([contexts[i]])}
        state = state.apply(e.Reported(id=i, ref=str(i), value=float(value), **here))
    return np.flatnonzero(outliers(state)).tolist()


SOUND = np.sin(np.arange(20.0)).tolist()


@pytest.mark.parametrize("value", [-60.0, -1e4, -1e200, -1.7e308])
def test_one_far_below_all_others(value: float) -> None:
    assert rows_of([*SOUND, value]) == [20]
    assert rows_of([-y for y in [*SOUND, value]], direction="minimize") == [20]
    assert rows_of([1e6 + 1e3 * y for y in [*SOUND, max(value, -1e290)]]) == [20]
    assert rows_of([*SOUND, value], outliers="keep") == []


@pytest.mark.parametrize(
    "y",
    [
        [*SOUND, -15.0],  # far, but of the same world
        [*SOUND[:8], -1e4],  # too few to tell
        [*SOUND, -1e4, -1e4],  # twice the same is meant: a penalty for failures
        [*SOUND, -1e4, -2e4],  # two in twenty are no slips
        [0.0] * 20 + [-1e4],  # a constant has no scale
        [],
        [1.0],
    ],
)
def test_what_may_be_meant_is_learned_from(y: list[float]) -> None:
    assert rows_of(y) == []


def test_two_slips_in_forty() -> None:
    assert rows_of([*SOUND, -1e4, *SOUND, 3e4], x=[0.5] * 42) == [20, 41]


def test_what_is_very_good_is_a_slip_only_if_runs_beside_it_say_so() -> None:
    assert rows_of([*SOUND, 1e4], x=[*np.linspace(0, 0.8, 20), 1.0]) == []
    assert rows_of([*SOUND, 1e4], x=[*np.linspace(0, 0.9, 18), 0.95, 0.99, 1.0]) == [20]


def test_what_a_rare_context_did_is_learned_from() -> None:
    assert rows_of([*SOUND, -1e4], c=[*np.linspace(0.3, 0.5, 20), 9.0]) == []


def test_heavy_tails_are_hardly_ever_cut() -> None:
    """Log-normal costs, where one in a thousand is a hundred times the median."""
    rng = np.random.default_rng(0)
    cut = sum(bool(rows_of(rng.lognormal(0.0, 1.0, 40).tolist(), direction="minimize")) for _ in range(100))
    assert cut <= 1
