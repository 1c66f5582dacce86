"""Every form in which designs and contexts come in, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from edrbo.errors import InvalidContextError, InvalidDesignError
from edrbo.space import ContextScale, Integer, Real, Space

MIXED = Space(
    design={
        "x": (0, 10),
        "rate": Real(1e-4, 1.0, log=True),
        "layers": Integer(1, 8),
        "kind": ["relu", "tanh", "elu"],
    },
    context={"load": (0, 100), "price": None},
)
POINT = {"x": 2.5, "rate": 0.01, "layers": 3, "kind": "tanh"}


DESIGN_FORMS = {
    "dict": POINT,
    "dict in another order": dict(reversed(POINT.items())),
    "dicts": [POINT],
    "tuple of dicts": (POINT,),
    "row": [2.5, 0.01, 3, "tanh"],
    "rows": [[2.5, 0.01, 3, "tanh"]],
    "object array": np.array([[2.5, 0.01, 3, "tanh"]], dtype=object),
    "frame": pd.DataFrame([POINT])[["kind", "x", "rate", "layers"]],
    "series": pd.DataFrame([POINT])[["kind", "x", "rate", "layers"]].iloc[0],
    "columns": {name: [value] for name, value in POINT.items()},
    "numpy scalars": {
        "x": np.float32(2.5),
        "rate": np.float64(0.01),
        "layers": np.int8(3),
        "kind": np.str_("tanh"),
    },
}


@pytest.mark.parametrize("form", DESIGN_FORMS)
def test_every_form_of_design(form: str) -> None:
    expected = [[0.25, 0.5, 2.5 / 8, 0.0, 1.0, 0.0]]
    np.testing.assert_allclose(MIXED.encode_designs(DESIGN_FORMS[form]), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({**POINT, "x": 11.0}, ["x is 11,", "0 to 10"]),
        ({**POINT, "x": math.nextafter(10.0, 11.0)}, ["x is 10.000000000000002,", "outside"]),
        ({**POINT, "layers": 2.5}, ["'layers'", "2.5", "not an integer"]),
        ({**POINT, "layers": 9}, ["layers is 9,", "1 to 8"]),
        ({**POINT, "kind": "tahn"}, ["'kind'", "'tahn'", "did you mean 'tanh'"]),
        ({**POINT, "kind": 3}, ["'kind'", "3", "relu"]),
        ({**POINT, "kind": None}, ["'kind'", "None"]),
        ({**POINT, "x": math.nan}, ["'x'", "nan", "finite"]),
        ({**POINT, "x": math.inf}, ["'x'", "inf", "finite"]),
        ({**POINT, "x": "2.5"}, ["'x'", "'2.5'", "finite number"]),
        ({**POINT, "x": None}, ["'x'", "None"]),
        ({**POINT, "x": 1 + 2j}, ["'x'", "(1+2j)"]),
        ({**POINT, "x": 10**400}, ["'x'", "finite number"]),
        ({**POINT, "lyers": 3}, ["'lyers'", "did you mean 'layers'"]),
        ({**POINT, "foo": 3}, ["'foo'", "['x', 'rate', 'layers', 'kind']"]),
        ({"x": 1.0}, ["lacks 'rate', 'layers', 'kind'"]),
        ([POINT, {"x": 1.0}], ["lacks 'rate', 'layers', 'kind'"]),
        ([POINT, {**{n: POINT[n] for n in ("x", "rate", "kind")}, "layrs": 1}], ["did you mean 'layers'"]),
        ([POINT, [1, 2, 3, "tanh"]], ["row 1", "not a mixture"]),
        ([1.0, 2.0], ["4 values", "(1, 2)"]),
        ([[1.0, 0.1, 2, "tanh"], [1.0]], ["design"]),
        (np.zeros((2, 3)), ["4 values", "(2, 3)"]),
        (np.zeros((2, 3, 4)), ["(2, 3, 4)"]),
        (3.0, ["a single value"]),
        ({name: [value] * (2 if name == "x" else 1) for name, value in POINT.items()}, ["differ in shape"]),
        (pd.DataFrame([POINT]).rename(columns={"x": "X"}), ["'X'"]),
        (pd.DataFrame([[1, 1, 1, "tanh", 1]], columns=["x", "rate", "layers", "kind", "x"]), ["twice"]),
    ],
)
def test_designs_that_are_not_points_of_the_space(given_: Any, words: list[str]) -> None:
    with pytest.raises(InvalidDesignError) as caught:
        MIXED.encode_designs(given_)
    assert caught.value.hint
    for word in words:
        assert word in str(caught.value)


def test_true_is_not_the_choice_one() -> None:
    with pytest.raises(InvalidDesignError):
        Space({"k": [1, 2]}).encode_designs({"k": True})
    assert Space({"k": [1, 2]}).decode_designs(Space({"k": [1, 2]}).encode_designs({"k": 2.0})) == [{"k": 2}]


def test_an_empty_list_is_no_design() -> None:
    assert MIXED.encode_designs([]).shape == (0, 6)
    assert MIXED.decode_designs(np.empty((0, 6))) == []
    assert MIXED.read_contexts([]).shape == (0, 2)


@pytest.mark.parametrize("coded", [np.zeros(5), np.zeros((2, 7)), 0.5, np.full(6, np.nan), np.zeros((1, 1, 6))])
def test_codes_of_a_wrong_shape(coded: Any) -> None:
    with pytest.raises(InvalidDesignError):
        MIXED.decode_designs(coded)


CONTEXT_FORMS = {
    "dicts": [{"load": 1, "price": 2.0}, {"price": 4.0, "load": 3}],
    "columns": {"price": np.array([2.0, 4.0]), "load": (1, 3)},
    "rows": [[1, 2], [3, 4]],
    "integers": np.array([[1, 2], [3, 4]], dtype=np.uint8),
    "frame": pd.DataFrame({"price": [2.0, 4.0], "load": [1, 3]}),
    "objects": np.array([[1, 2.0], [3, 4.0]], dtype=object),
}


@pytest.mark.parametrize("form", CONTEXT_FORMS)
def test_every_form_of_context(form: str) -> None:
    raw = MIXED.read_contexts(CONTEXT_FORMS[form])
    assert raw.dtype == np.float64
    np.testing.assert_array_equal(raw, [[1.0, 2.0], [3.0, 4.0]])
    assert MIXED.name_contexts(raw) == [{"load": 1.0, "price": 2.0}, {"load": 3.0, "price": 4.0}]


def test_one_context_variable_may_come_flat() -> None:
    space = Space({"x": (0, 1)}, {"c": (0, 10)})
    for contexts in ([1, 2, 3], np.arange(1.0, 4.0), pd.Series([1, 2, 3]), [[1], [2], [3]], {"c": [1, 2, 3]}):
        np.testing.assert_array_equal(space.read_contexts(contexts), [[1.0], [2.0], [3.0]])
    for context in (2, {"c": 2.0}, [2], pd.Series({"c": 2})):
        np.testing.assert_array_equal(space.read_contexts(context), [[2.0]])


def test_a_single_row_of_two_contexts() -> None:
    np.testing.assert_array_equal(MIXED.read_contexts([1.0, 2.0]), [[1.0, 2.0]])
    np.testing.assert_array_equal(MIXED.read_contexts(pd.Series({"price": 2.0, "load": 1.0})), [[1.0, 2.0]])


def test_no_context_variable() -> None:
    space = Space({"x": (0, 1)})
    assert space.read_contexts({}).shape == (1, 0)
    assert space.read_contexts([{}, {}]).shape == (2, 0)
    assert space.encode_contexts(np.empty((3, 0))).shape == (3, 0)
    assert space.decode_contexts(np.empty((2, 0))) == [{}, {}]
    assert space.context_scale(np.empty((3, 0))) == ContextScale(np.empty(0), np.empty(0), ())


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"load": 1.0, "prise": 2.0}, ["'prise'", "did you mean 'price'"]),
        ({"load": 1.0}, ["lacks 'price'"]),
        ([1.0, 2.0, 3.0], ["2 values", "(1, 3)"]),
        ([[1.0, 2.0], [3.0]], ["context"]),
        ({"load": 1.0, "price": math.nan}, ["'price'", "nan"]),
        ([[1.0, math.inf]], ["'price'", "inf"]),
        ({"load": "high", "price": 1.0}, ["'load'", "'high'"]),
        ({"load": None, "price": 1.0}, ["'load'", "None"]),
        (np.array([["1", "2"]]), ["'load'", "'1'"]),
        ({"load": np.datetime64("2020-01-01"), "price": 1.0}, ["'load'", "2020"]),
        ({"load": [1.0, 2.0], "price": 1.0}, ["differ in shape"]),
        (None, ["a single value"]),
    ],
)
def test_contexts_that_cannot_be_read(given_: Any, words: list[str]) -> None:
    for read in (MIXED.read_contexts, MIXED.encode_contexts):
        with pytest.raises(InvalidContextError) as caught:
            read(given_)
        assert caught.value.hint
        for word in words:
            assert word in str(caught.value)


@pytest.mark.parametrize("form", ["dicts", "columns", "rows"])
def test_a_million_contexts(form: str) -> None:
    column = np.random.default_rng(0).uniform(0, 100, 1_000_000)
    rows = np.column_stack([column, -column])
    given_: Any = {"columns": {"load": column, "price": -column}, "rows": rows}.get(form)
    if given_ is None:
        given_ = [{"load": value, "price": -value} for value in column.tolist()]
    np.testing.assert_array_equal(MIXED.read_contexts(given_), rows)
