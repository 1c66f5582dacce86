"""Outcomes that cannot all be exact, and how little one or two of them tell."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from edrbo.errors import ImplausibleWarning
from edrbo.optimizer.optimizer import Optimizer
from edrbo.optimizer.training_data import reconciled
from edrbo.space import Space

SPACE = Space({"x": (0, 1)}, {"c": (0, 1)})


def test_a_conflict_is_said_and_taken_for_noise() -> None:
    optimizer = Optimizer(SPACE, seed=0)
    for x in np.linspace(0, 1, 6):
        optimizer.tell({"x": float(x)}, {"c": 0.5}, float(np.sin(4 * x)), noise_variance=0.0)
    sure = optimizer.predict({"x": 0.4}, context={"c": 0.5})
    optimizer.tell({"x": 0.4}, {"c": 0.5}, math.sin(1.6), noise_variance=0.0)  # the same again is no conflict
    with pytest.warns(
        ImplausibleWarning, match=r"run 2 gave 0\.999574 .* noise=0; their difference is taken for noise"
    ):
        optimizer.tell({"x": 0.4}, {"c": 0.5}, math.sin(1.6) + 1.0, noise_variance=0.0)
    found = optimizer.predict({"x": 0.4}, context={"c": 0.5})
    assert math.sin(1.6) - 0.1 < found.expected[0] < math.sin(1.6) + 0.5
    assert found.upper[0] - found.lower[0] > 5 * (sure.upper[0] - sure.lower[0])
    again = Optimizer.of(optimizer.state).predict({"x": 0.4}, context={"c": 0.5})  # everything fitted anew
    assert (again.expected[0], again.lower[0]) == (found.expected[0], found.lower[0])


def test_only_exact_outcomes_at_one_input_are_reconciled() -> None:
    inputs = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 2.0], [0.0, 1.0], [0.0, 1.0]])
    y, noise_variance = np.array([1.0, 3.0, 9.0, 5.0, 7.0]), np.array([0.0, 0.0, 0.0, 4.0, np.nan])
    np.testing.assert_array_equal(reconciled(inputs, y, noise_variance), [2.0, 2.0, 0.0, 4.0, np.nan])
    np.testing.assert_array_equal(reconciled(inputs, y, np.full(5, np.nan)), np.full(5, np.nan))


def test_other_contexts_and_known_noise_are_no_conflict() -> None:
    optimizer = Optimizer(SPACE, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.tell({"x": 0.4}, {"c": 0.5}, 1.0, noise_variance=0.0)
        optimizer.tell({"x": 0.4}, {"c": 0.6}, 2.0, noise_variance=0.0)
        optimizer.tell({"x": 0.4}, {"c": 0.5}, 3.0, noise_variance=0.1)
        optimizer.tell({"x": 0.4}, {"c": 0.5}, 3.0)
        optimizer.tell({"x": 0.4}, None, 4.0, noise_variance=0.0)


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e-6])
def test_one_or_two_outcomes_tell_little(scale: float) -> None:
    """One has no scale; two differ by d, and what comes next may be many d away, whatever the unit and the level."""
    optimizer = Optimizer(SPACE, seed=0)
    optimizer.tell({"x": 0.2}, {"c": 0.3}, 100.0 * scale)
    alone = optimizer.recommend()
    assert alone.interval == alone.outcome_interval == (-math.inf, math.inf)
    assert optimizer.predict({"x": 0.9}).upper[0] == math.inf
    optimizer.tell({"x": 0.8}, {"c": 0.6}, 101.0 * scale)
    two = optimizer.recommend()
    for low, high in (two.interval, two.outcome_interval):
        assert low < 98.0 * scale
        assert high > 103.0 * scale
