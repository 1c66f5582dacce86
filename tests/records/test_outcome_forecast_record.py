"""What a suggestion expects: stored, read again, between points, and from nonsense."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from edrbo.records.sanity import Interval, OutcomeForecast, read_outcome_forecast


def bilinear() -> OutcomeForecast:
    """v = 2 a − b + a b on a grid that is not even; ± 1 around it."""
    axes = (("a", np.array([0.0, 1.0, 4.0])), ("b", np.array([-10.0, 10.0])))
    a, b = np.meshgrid(axes[0][1], axes[1][1], indexing="ij")
    value = 2 * a - b + a * b
    return OutcomeForecast(Interval(0.0, -50.0, 50.0), axes, np.stack([value, value - 1.0, value + 1.0], axis=-1))


@pytest.mark.parametrize(("a", "b"), [(0.0, -10.0), (0.3, 4.0), (2.5, -7.0), (4.0, 10.0)])
def test_it_is_linear_in_every_variable_between_the_points(a: float, b: float) -> None:
    found = bilinear().at({"b": b, "a": a})
    assert found.value == pytest.approx(2 * a - b + a * b)
    assert (found.low, found.high) == pytest.approx((found.value - 1, found.value + 1))


def test_many_values_at_once_are_those_of_each() -> None:
    rng = np.random.default_rng(0)
    axes = ("a", np.array([0.0, 1.0, 4.0])), ("b", np.array([2.0])), ("c", np.array([-1.0, 3.0]))
    outcome_forecast = OutcomeForecast(Interval(0.0, -1.0, 1.0), axes, rng.random((3, 1, 2, 3)))
    contexts = np.vstack([rng.uniform(-2.0, 6.0, (20, 3)), [[0.0, 2.0, -1.0], [4.0, 2.0, 3.0], [1.0, 9.0, 0.0]]])
    each = [outcome_forecast.at(dict(zip("abc", row, strict=True))).value for row in contexts.tolist()]
    np.testing.assert_allclose(outcome_forecast.values(contexts), each, rtol=1e-13)


def test_beyond_the_ends_it_stays_and_without_a_context_it_is_that_of_all() -> None:
    outcome_forecast = bilinear()
    assert outcome_forecast.at({"a": 9.0, "b": 99.0}) == outcome_forecast.at({"a": 4.0, "b": 10.0})
    for context in (None, {}, {"a": 1.0}):
        assert outcome_forecast.at(context) == outcome_forecast.overall
    assert outcome_forecast.reach() == Interval(0.0, -50.0, 50.0)  # in no context more than 39


@pytest.mark.parametrize("shift", [0.0, 1e6, -1e-6])
@pytest.mark.parametrize("unit", [1.0, 1e-5, 1e9])
def test_what_is_stored_is_short_and_as_exact_as_the_interval_is_long(shift: float, unit: float) -> None:
    value = shift + unit * np.array([0.123456789, 0.7654321])
    table = np.stack([value, value - unit / 3, value + unit / 7], axis=-1)
    exact = OutcomeForecast(
        Interval(*table[0].tolist()), (("c", np.array([shift + unit / 3, shift + unit / 2])),), table
    )
    read = read_outcome_forecast(json.loads(json.dumps(exact.to_dict())))
    assert read is not None
    assert read.table is not None
    rounding = 4e-16 * abs(shift)
    np.testing.assert_allclose(read.table, table, rtol=0, atol=2e-3 * unit + rounding)
    np.testing.assert_allclose(read.axes[0][1], exact.axes[0][1], rtol=0, atol=2e-3 * unit + rounding)


GOOD = {"value": 1.0, "low": 0.0, "high": 2.0}
ROW = [1.0, 0.0, 2.0]


@pytest.mark.parametrize(
    "record",
    [
        None,
        {},
        {"value": 1.0},
        {**GOOD, "low": "x"},
        {**GOOD, "high": 0.5},
        {**GOOD, "value": None},
        {**GOOD, "low": 1e300},
    ],
)
def test_what_is_not_understood_is_passed_over(record: Any) -> None:
    assert read_outcome_forecast(record) is None


@pytest.mark.parametrize(
    "more",
    [
        {"axes": [["c", [0, 1]]]},
        {"axes": [["c", [1, 0]]], "table": [ROW, ROW]},
        {"axes": [["c", [0, 1]]], "table": [ROW]},
        {"axes": [["c", [0, 1]]], "table": [ROW, [1.0, 2.0, 3.0]]},
        {"axes": [["c", [0, 1]]], "table": [ROW, "row"]},
        {"axes": [["c", list(range(1000))]], "table": [ROW] * 1000},
        {"axes": [[str(k), [0, 1]] for k in range(60)], "table": [ROW]},
        {"axes": "c", "table": 7},
        {"axes": 3.0},
        {"axes": [[3, [0, 1]]], "table": [ROW, ROW]},
    ],
)
def test_a_table_that_is_not_understood_leaves_the_overall_interval(more: Any) -> None:
    found = read_outcome_forecast({**GOOD, **more})
    assert found is not None
    assert found.at({"c": 0.5}) == Interval(1.0, 0.0, 2.0)
