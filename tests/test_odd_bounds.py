"""Bounds of which the contexts fill a sliver only: the model takes its scale from what is seen, and says so once."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from edrbo.errors import NarrowContextsWarning
from edrbo.optimizer.optimizer import Optimizer
from edrbo.space import Real, Space
from edrbo.space.context_scale import FEWEST_SEEN, robust_range, seen_of_bounds

LINEAR, LOG = Real(0.0, 10_000.0), Real(1.0, 1e8, log=True)


def reported(variable: Real, seed: int, n: int = 16) -> Optimizer:
    """−4 (x − 0.5)² + 3 k in contexts 1,000 to 1,100 of their bounds, k from 0 to 1 there."""
    rng = np.random.default_rng(seed)
    optimizer = Optimizer(Space({"x": (0, 1)}, {"c": variable}), seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NarrowContextsWarning)
        for x, k in rng.random((n, 2)):
            optimizer.tell({"x": float(x)}, {"c": 1000.0 + 100.0 * float(k)}, -4 * (x - 0.5) ** 2 + 3 * float(k))
    return optimizer


@pytest.mark.parametrize(("variable", "seed"), [(LINEAR, 0), (LINEAR, 1), (LOG, 2)])
def test_the_answer_is_right(variable: Real, seed: int) -> None:
    answer = reported(variable, seed).recommend()
    assert answer.design["x"] == pytest.approx(0.5, abs=0.05)
    assert answer.context_effect["c"] == pytest.approx(3 / np.sqrt(12), rel=0.3)


def test_resumed_it_is_the_same() -> None:
    optimizer = reported(LINEAR, 0, 11)
    optimizer.ask()
    optimizer.cancel(optimizer.pending[0])
    fresh = Optimizer.of(optimizer.state)  # fits everything anew, also what came before the tenth context
    assert optimizer.ask() == fresh.ask()
    assert optimizer.recommend().expected == fresh.recommend().expected


def test_one_warning_when_it_becomes_clear() -> None:
    optimizer = Optimizer(Space({"x": (0, 1)}, {"c": LINEAR, "d": (0, 1)}), seed=0)
    said = []
    for i in range(FEWEST_SEEN + 3):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            optimizer.tell({"x": 0.08 * i}, {"c": 1000.0 + 7 * i, "d": 0.07 * i}, 0.1 * i)
        said += [(i, str(warning.message)) for warning in caught]
    assert [i for i, _ in said] == [FEWEST_SEEN - 1]
    assert said[0][1].startswith(
        "c was 1000 to 1063 so far, a small part of 0 to 10000: the model takes its scale from"
    )


def test_the_range() -> None:
    values = np.linspace(1000.0, 1100.0, 40)
    low, high = robust_range(0.0, 10_000.0, values)
    assert 900 < low < 1000 < 1100 < high < 1200
    assert robust_range(0.0, 10_000.0, values[:9]) == (0.0, 10_000.0)  # too few
    assert robust_range(0.0, 10_000.0, np.full(40, 1000.0)) == (0.0, 10_000.0)  # a constant has no scale
    assert robust_range(0.0, 900.0, values) == (0.0, 900.0)  # more than a tenth
    assert robust_range(1000.0, 10_000.0, values)[0] == 1000.0  # no further than the bounds
    assert robust_range(0.0, 10_000.0, np.append(values, [1e9, 9000.0])) == pytest.approx((low, high), rel=0.01)
    beyond = robust_range(20_000.0, 30_000.0, values)  # outside of them altogether
    assert beyond == pytest.approx((low, high))
    logs = robust_range(1.0, 1e8, values, log=True)
    assert 900 < logs[0] < 1000 < 1100 < logs[1] < 1200
    assert seen_of_bounds(1.0, 1e8, np.append(values, 0.0), log=True) is None
    assert seen_of_bounds(-1.7e308, 1.7e308, values) is not None
