"""Observations: frozen, validated, and unchanged by a bad append."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edrbo.errors import EdrboError, InvalidContextError, InvalidDesignError, InvalidValueError
from edrbo.records.state import Observations


def three() -> Observations:
    return Observations(
        x=np.array([[0.0, 1.0], [0.5, 0.5], [0.2, 0.3]]),
        c=np.array([[10.0], [np.nan], [-3.0]]),
        y=np.array([1.0, 1e300, 1e-300]),
        noise_variance=np.array([np.nan, 0.0, 2.0]),
    )


def test_empty_and_length() -> None:
    empty = Observations.empty(3, 2)
    assert len(empty) == 0
    assert empty.x.shape == (0, 3)
    assert empty.c.shape == (0, 2)
    assert empty.complete.shape == (0,)
    assert len(three()) == 3


def test_complete_marks_known_contexts() -> None:
    assert three().complete.tolist() == [True, False, True]
    assert Observations.empty(1, 0).append([[0.1], [0.2]], None, [1.0, 2.0]).complete.tolist() == [True, True]
    assert repr(three()) == "Observations(3 of 2 + 1 inputs, 1 without a context)"


def test_arrays_are_read_only_float64_copies() -> None:
    x = np.array([[0, 1]])
    observations = Observations(
        x=x, c=np.zeros((1, 1)), y=np.array([1], dtype=np.int8), noise_variance=np.array([np.nan])
    )
    x[0, 0] = 1
    assert observations.x[0, 0] == 0.0
    for array in (observations.x, observations.c, observations.y, observations.noise_variance):
        assert array.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
    with pytest.raises(AttributeError):
        observations.y = np.zeros(1)


def test_append_one_and_many() -> None:
    start = Observations.empty(2, 1)
    one = start.append([0.1, 0.2], [5.0], 3.0)
    more = one.append([[0.3, 0.4], [0.5, 0.6]], None, [4.0, 5.0], noise_variance=0.1)
    last = more.append([[0.7, 0.8]], [[6.0]], [6.0], noise_variance=[0.2])
    assert [len(o) for o in (start, one, more, last)] == [0, 1, 3, 4]
    np.testing.assert_array_equal(last.x, [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.7, 0.8]])
    np.testing.assert_array_equal(last.c, [[5.0], [np.nan], [np.nan], [6.0]])
    np.testing.assert_array_equal(last.y, [3.0, 4.0, 5.0, 6.0])
    np.testing.assert_array_equal(last.noise_variance, [np.nan, 0.1, 0.1, 0.2])


def test_pickle_keeps_the_values() -> None:
    back = pickle.loads(pickle.dumps(three()))
    for name in ("x", "c", "y", "noise_variance"):
        np.testing.assert_array_equal(getattr(back, name), getattr(three(), name))


BAD: list[tuple[dict[str, Any], type[EdrboError]]] = [
    ({"x": [0.1]}, InvalidDesignError),
    ({"x": [0.1, 1.5]}, InvalidDesignError),
    ({"x": [0.1, math.nan]}, InvalidDesignError),
    ({"x": ["a", "b"]}, InvalidDesignError),
    ({"x": [[0.1, 0.2], [0.3, 0.4]]}, InvalidValueError),
    ({"x": np.zeros((1, 1, 2))}, InvalidDesignError),
    ({"c": [1.0, 2.0, 3.0]}, InvalidContextError),
    ({"c": [1.0, math.inf]}, InvalidContextError),
    ({"c": [[1.0, 2.0], [3.0]]}, InvalidContextError),
    ({"y": math.nan}, InvalidValueError),
    ({"y": -math.inf}, InvalidValueError),
    ({"y": None}, InvalidValueError),
    ({"y": "3"}, InvalidValueError),
    ({"y": [[1.0]]}, InvalidValueError),
    ({"y": [1.0, 2.0]}, InvalidValueError),
    ({"noise_variance": -1.0}, InvalidValueError),
    ({"noise_variance": math.inf}, InvalidValueError),
    ({"noise_variance": [1.0, 2.0]}, InvalidValueError),
    ({"noise_variance": "loud"}, InvalidValueError),
]


@pytest.mark.parametrize(("change", "error"), BAD)
def test_bad_observations_are_refused_and_change_nothing(change: dict[str, Any], error: type[EdrboError]) -> None:
    before = Observations.empty(2, 2).append([0.1, 0.2], [1.0, 2.0], 3.0)
    arguments: dict[str, Any] = {"x": [0.3, 0.4], "c": [1.0, 2.0], "y": 1.0, **change}
    with pytest.raises(error) as caught:
        before.append(**arguments)
    assert caught.value.hint
    np.testing.assert_array_equal(before.x, [[0.1, 0.2]])
    np.testing.assert_array_equal(before.c, [[1.0, 2.0]])
    assert before.y.tolist() == [3.0]


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans(), st.floats(-1e308, 1e308)), max_size=6))
def test_one_by_one_equals_all_at_once(rows: list[tuple[float, bool, float]]) -> None:
    stepwise = Observations.empty(1, 1)
    for x, known, y in rows:
        stepwise = stepwise.append([x], [y] if known else None, y)
    xs = np.array([[x] for x, _, _ in rows]).reshape(-1, 1)
    cs = np.array([[y if known else np.nan] for _, known, y in rows]).reshape(-1, 1)
    together = Observations.empty(1, 1).append(xs, cs, [y for _, _, y in rows])
    for name in ("x", "c", "y", "noise_variance", "complete"):
        np.testing.assert_array_equal(getattr(stepwise, name), getattr(together, name))
