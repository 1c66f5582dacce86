"""Contexts outside their bounds, and the ranges learned for absent bounds."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

from edrbo.errors import ContextBoundsWarning, InvalidContextError
from edrbo.space import Real, Space

pytestmark = pytest.mark.numpy_numeric

MIXED = Space(design={"x": (0, 1)}, context={"load": (0, 100), "price": None})


def test_a_context_outside_its_bounds_is_kept_with_one_warning() -> None:
    space = Space({"x": (0, 1)}, {"a": (0, 1), "b": (None, 5), "c": None})
    rows = np.array([[0.5, 5.0, 1e300], [-2.0, 7.0, 0.0], [1.5, -1e300, 0.0]])
    with pytest.warns(ContextBoundsWarning) as caught:
        raw = space.read_contexts(rows)
    np.testing.assert_array_equal(raw, rows)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "'a' leaves [0.0, 1.0] 2 times, worst -2.0" in message
    assert "'b' leaves [-inf, 5.0] once, worst 7.0" in message
    assert "'c'" not in message
    assert caught[0].filename == __file__


def test_coding_what_has_been_read_does_not_warn_again() -> None:
    space = Space({"x": (0, 1)}, {"a": (0, 2)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(space.encode_contexts([3.0, 1.0, -1.0]), [[1.5], [0.5], [-0.5]])


def test_a_log_context_goes_on_smoothly_below_its_bound() -> None:
    space = Space({"x": (0, 1)}, {"c": Real(1.0, 100.0, log=True)})
    step = 1e-6
    coded = space.encode_contexts([10.0, 1000.0, 0.0, -5.0, 1 - step, 1.0, 1 + step])[:, 0]
    np.testing.assert_allclose(coded[:4], [0.5, 1.5, -1 / math.log(100), -6 / math.log(100)], rtol=1e-14)
    np.testing.assert_allclose(coded[5] - coded[4], coded[6] - coded[5], rtol=2e-6)
    ten, zero = space.decode_contexts([[0.5], [-1 / math.log(100)]])
    assert ten["c"] == pytest.approx(10.0, rel=1e-14)
    assert zero["c"] == pytest.approx(0.0, abs=1e-15)


def test_bounds_need_no_data_and_absent_bounds_need_a_scale() -> None:
    np.testing.assert_array_equal(Space({"x": (0, 1)}, {"c": (0, 4)}).encode_contexts([1.0]), [[0.25]])
    with pytest.raises(InvalidContextError, match="'price'"):
        MIXED.encode_contexts({"load": 1, "price": 1})
    with pytest.raises(InvalidContextError, match="'price'"):
        MIXED.decode_contexts([0.5, 0.5])
    with pytest.raises(InvalidContextError, match="finite"):
        MIXED.decode_contexts([0.5, math.nan], MIXED.context_scale(np.zeros((1, 2))))


def test_the_robust_range_of_normal_data_and_its_outliers() -> None:
    space = Space({"x": (0, 1)}, {"c": None})
    values = np.random.default_rng(3).normal(50.0, 2.0, (20_001, 1))
    clean = space.context_scale(values)
    np.testing.assert_allclose([clean.lower[0], clean.upper[0]], [45.0, 55.0], atol=0.15)
    values[:100] = 1e9
    spoiled = space.context_scale(values)
    np.testing.assert_allclose([spoiled.lower, spoiled.upper], [clean.lower, clean.upper], atol=0.15)
    values[5] = np.nan  # a row whose context is not known
    assert np.isfinite(space.context_scale(values).lower).all()


@pytest.mark.parametrize("where", [1e3, 1e9, 1e37, -1e300])
@pytest.mark.parametrize("bounds", [None, (None, 60.0), (40.0, None)])
def test_slips_of_a_sensor_do_not_move_the_range(bounds: Any, where: float) -> None:
    """A fifth of the contexts is nonsense; a range of twenty is known as well as twenty contexts know it."""
    space = Space({"x": (0, 1)}, {"c": bounds})
    values = np.random.default_rng(4).normal(50.0, 2.0, (20, 1))
    clean = space.context_scale(values)
    spoiled = space.context_scale(np.concatenate([values[:7], np.full((4, 1), where), values[7:]]))
    assert spoiled == clean


def test_what_is_rare_but_not_absurd_belongs_to_the_range() -> None:
    space = Space({"x": (0, 1)}, {"rain": None})
    mostly_dry = np.array([0.0] * 80 + [5.0] * 20)[:, None]  # no spread in the middle: the tail is all there is
    assert space.context_scale(mostly_dry).upper[0] > 2.5
    heavy = np.random.default_rng(5).lognormal(0.0, 1.5, (400, 1))
    quantiles = np.quantile(heavy, (0.05, 0.5, 0.95))
    expected = quantiles[1] + 2.5 * (quantiles[2] - quantiles[0]) / 3.29
    assert space.context_scale(heavy).upper[0] == pytest.approx(expected, rel=0.02)


def test_contexts_far_outside_are_drawn_in_and_stay_in_order() -> None:
    space = Space({"x": (0, 1)}, {"c": (0, 10)})
    scale = space.context_scale(np.empty((0, 1)))
    far = np.array([-1e308, -1e37, -1e9, -1e3, -20.0, -19.0, 0.0, 5.0, 29.0, 30.0, 31.0, 1e3, 1e9, 1e37, 1e308])[
        :, None
    ]
    coded = space.encode_contexts(far, scale)
    np.testing.assert_array_equal(coded[4:10, 0], [-2.0, -1.9, 0.0, 0.5, 2.9, 3.0])
    assert (np.diff(coded[:, 0]) > 0).all()
    assert coded.min() > -9
    assert coded.max() < 10
    back = np.array([row["c"] for row in space.decode_contexts(coded, scale)])
    np.testing.assert_allclose(back, far[:, 0], rtol=1e-10, atol=1e-12)
    step = 1e-6  # no kink where the coding has another slope
    ends = space.encode_contexts([30.0 - step, 30.0, 30.0 + step, 30.0 + 2 * step], scale)[:, 0]
    np.testing.assert_allclose(np.diff(ends), step / 10, rtol=1e-5)


@pytest.mark.parametrize(
    ("bounds", "values", "expected"),
    [
        (None, [7.0, 7.0, 7.0], (0.0, 14.0)),  # constant: median ± max(1, |median|)
        (None, [0.0], (-1.0, 1.0)),
        (None, [], (-1.0, 1.0)),
        (
            None,
            [0.0] * 99 + [10.0],
            (-2.5 * 0.99498743710662, 2.5 * 0.99498743710662),
        ),  # quantiles equal: std
        ((3.0, None), [], (3.0, 6.0)),
        ((None, -3.0), [], (-6.0, -3.0)),
        ((0.0, None), [2.0, 2.0], (0.0, 4.0)),
        ((10.0, None), [2.0, 2.0], (10.0, 12.0)),  # data outside the bound: the range still has a width
        ((None, 10.0), [20.0, 20.0], (-10.0, 10.0)),
        ((0.0, 1.0), [50.0, 60.0], (0.0, 1.0)),
    ],
)
def test_ranges_of_special_data(bounds: Any, values: list[float], expected: tuple[float, float]) -> None:
    scale = Space({"x": (0, 1)}, {"c": bounds}).context_scale(np.array(values).reshape(-1, 1))
    np.testing.assert_allclose([scale.lower[0], scale.upper[0]], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "values", [[1.7e308] * 3, [-1.7e308, 1.7e308], [1.7e308, 1.6e308], [0.0, 5e-324], [1e300, 1.0]]
)
@pytest.mark.parametrize("bounds", [None, (0.0, None), (-1e300, None), (1e300, None), (None, 1e300), (None, -1e300)])
def test_ranges_of_extreme_data(values: list[float], bounds: Any) -> None:
    space = Space({"x": (0, 1)}, {"c": bounds})
    raw = np.array(values)[:, None]
    scale = space.context_scale(raw)
    width = scale.upper - scale.lower
    assert np.isfinite(width).all()
    assert (width > 0).all()
    assert np.isfinite(space.encode_contexts(raw, scale)).all()


def test_scales_are_frozen_and_compare_by_value() -> None:
    scale = MIXED.context_scale(np.array([[1.0, 2.0], [3.0, 5.0]]))
    assert scale == MIXED.context_scale(np.array([[1.0, 2.0], [3.0, 5.0]]))
    assert scale != MIXED.context_scale(np.array([[1.0, 2.0], [3.0, 6.0]]))
    assert scale != "scale"
    with pytest.raises(ValueError, match="read-only"):
        scale.lower[0] = 3.0
