"""The space: coding, reading of every form of input, and the errors."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edrbo.errors import InvalidDesignError, InvalidSpaceError
from edrbo.space import Categorical, Column, Integer, Real, Space

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


@st.composite
def reals(draw: st.DrawFn) -> Real:
    if draw(st.booleans()):
        exponents = sorted(draw(st.lists(st.integers(-300, 300), min_size=2, max_size=2, unique=True)))
        return Real(10.0 ** exponents[0], 10.0 ** exponents[1], log=True)
    magnitude = 10.0 ** draw(st.integers(-300, 300))
    lower = draw(st.floats(-1, 1)) * magnitude
    return Real(lower, lower + draw(st.floats(1e-3, 1)) * magnitude)


@st.composite
def integers(draw: st.DrawFn) -> Integer:
    log = draw(st.booleans())
    lower = draw(st.integers(1 if log else -(2**41), 2**41))
    return Integer(lower, lower + draw(st.one_of(st.integers(1, 20), st.integers(1, 2**41))), log=log)


scalars = st.one_of(st.text(max_size=5), st.integers(-3, 3), st.floats(allow_nan=False, allow_infinity=False))
categoricals = st.lists(scalars, min_size=2, max_size=5, unique=True).map(lambda choices: Categorical(tuple(choices)))
contexts_ = st.one_of(reals(), st.just(Real()), st.floats(-1e9, 1e9).map(lambda bound: Real(bound, None)))


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    names = draw(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=6, unique=True))
    split = draw(st.integers(1, len(names)))
    design = {name: draw(st.one_of(reals(), integers(), categoricals)) for name in names[:split]}
    return Space(design, {name: draw(contexts_) for name in names[split:]})


def random_design(space: Space, rng: np.random.Generator) -> dict[str, Any]:
    """A point of the space made without its coding, with bounds drawn often."""
    design: dict[str, Any] = {}
    for name, variable in space.design.items():
        if isinstance(variable, Categorical):
            design[name] = variable.choices[rng.integers(len(variable.choices))]
            continue
        lower, upper = variable.lower, variable.upper
        assert lower is not None
        assert upper is not None
        if rng.uniform() < 0.3:
            design[name] = [lower, upper][rng.integers(2)]
        elif isinstance(variable, Integer):
            design[name] = int(rng.integers(variable.lower, variable.upper + 1))
        else:
            design[name] = min(max(float(lower + rng.uniform() * (upper - lower)), lower), upper)
    return design


seeds = st.integers(0, 2**32 - 1)


@settings(deadline=None)
@given(spaces(), seeds)
def test_designs_come_back_from_their_code(space: Space, seed: int) -> None:
    rng = np.random.default_rng(seed)
    designs = [random_design(space, rng) for _ in range(5)]
    coded = space.encode_designs(designs)
    assert coded.shape == (5, space.d_x)
    assert coded.dtype == np.float64
    assert ((coded >= 0) & (coded <= 1)).all()
    for design, back in zip(designs, space.decode_designs(coded), strict=True):
        assert list(back) == list(space.design_names)
        for name, variable in space.design.items():
            if isinstance(variable, Real):
                lower, upper = variable.bounds()
                scale = design[name] if variable.log else max(abs(lower), abs(upper))
                assert abs(back[name] - design[name]) <= 1e-12 * scale
                assert lower <= back[name] <= upper
                if design[name] in (lower, upper):
                    assert back[name] == design[name]
            else:
                assert back[name] == design[name]
                assert type(back[name]) is type(design[name])


@settings(deadline=None)
@given(spaces(), seeds)
def test_snapping_is_feasible_and_idempotent(space: Space, seed: int) -> None:
    points = np.random.default_rng(seed).uniform(-0.5, 1.5, (2, 3, space.d_x))
    snapped = space.snap(points)
    assert snapped.shape == points.shape
    np.testing.assert_array_equal(space.snap(snapped), snapped)
    flat = snapped.reshape(-1, space.d_x)
    # What is feasible has names, and snapping agrees with decoding.
    assert space.decode_designs(points.reshape(-1, space.d_x)) == space.decode_designs(flat)
    np.testing.assert_allclose(space.encode_designs(space.decode_designs(flat)), flat, rtol=0, atol=1e-9)


@settings(deadline=None)
@given(spaces())
def test_json_round_trip_is_exact(space: Space) -> None:
    back = Space.from_dict(json.loads(json.dumps(space.to_dict(), sort_keys=True, allow_nan=False)))
    assert back == space
    assert back.design_names == space.design_names
    assert back.context_names == space.context_names
    assert repr(back) == repr(space)


@settings(deadline=None)
@given(spaces())
def test_repr_can_be_evaluated_and_pickle_keeps_a_space(space: Space) -> None:
    names = {"Space": Space, "Real": Real, "Integer": Integer, "Categorical": Categorical}
    assert eval(repr(space), names) == space
    assert pickle.loads(pickle.dumps(space)) == space
    assert hash(pickle.loads(pickle.dumps(space))) == hash(space)


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=0, max_size=8), contexts_)
def test_every_context_has_a_finite_code(values: list[float], variable: Real) -> None:
    space = Space({"x": (0, 1)}, {"c": variable})
    raw = np.array(values).reshape(-1, 1)
    scale = space.context_scale(raw)
    assert (np.isfinite(scale.lower) & np.isfinite(scale.upper) & (scale.upper > scale.lower)).all()
    assert np.isfinite(scale.upper - scale.lower).all()
    coded = space.encode_contexts(raw, scale)
    assert coded.shape == raw.shape
    assert np.isfinite(coded).all()
    order = np.argsort(raw[:, 0])
    assert (np.diff(coded[order, 0]) >= 0).all()


@settings(deadline=None)
@given(reals(), seeds)
def test_contexts_come_back_from_their_code(variable: Real, seed: int) -> None:
    space = Space({"x": (0, 1)}, {"c": variable})
    lower, upper = variable.bounds()
    position = np.random.default_rng(seed).uniform(-0.5, 1.0, (6, 1))
    position[:2] = [[0.0], [1.0]]
    raw = np.array([[context["c"]] for context in space.decode_contexts(position)])
    assert raw[:2, 0].tolist() == [lower, upper]
    coded = space.encode_contexts(raw)
    # Rounding of a value near the bounds moves its code by up to eps × magnitude / width.
    logs = (math.log(lower), math.log(upper)) if variable.log else (lower, upper)
    tolerance = 1e-14 * max(1.0, abs(logs[0]), abs(logs[1])) / (logs[1] - logs[0]) if variable.log else 1e-12
    np.testing.assert_allclose(coded, position, rtol=1e-12, atol=tolerance)


def test_code_of_a_mixed_design() -> None:
    expected = [[0.25, 0.5, 2.5 / 8, 0.0, 1.0, 0.0]]
    np.testing.assert_allclose(MIXED.encode_designs(POINT), expected, rtol=1e-14)
    assert MIXED.decode_designs(np.array(expected[0]))[0] == pytest.approx(POINT)
    assert (MIXED.d_x, MIXED.d_c) == (6, 2)
    assert MIXED.columns[2:] == (Column("layers", 2, 3, "integer", 8), Column("kind", 3, 6, "categorical", 3))
    assert MIXED.columns[0].size == 0
    assert not MIXED.continuous
    assert Space({"x": (0, 1)}).continuous


@pytest.mark.parametrize("variable", [Integer(-2, 5), Integer(1, 8, log=True), Integer(3, 30, log=True)])
def test_each_integer_owns_its_rounding_cell(variable: Integer) -> None:
    space = Space({"k": variable})
    grid = np.linspace(0, 1, 20_001)[:, None]
    decoded = np.array([row["k"] for row in space.decode_designs(grid)])
    if variable.log:
        raw = (variable.lower - 0.5) * ((variable.upper + 0.5) / (variable.lower - 0.5)) ** grid[:, 0]
        nearest = np.clip(np.round(raw), variable.lower, variable.upper)
        away_from_ties = np.abs(raw - np.floor(raw) - 0.5) > 1e-9
        np.testing.assert_array_equal(decoded[away_from_ties], nearest[away_from_ties])
    else:
        counts = np.bincount(decoded - variable.lower)
        assert counts.max() - counts.min() <= 1
    levels = space.levels("k")
    every = [{"k": value} for value in range(variable.lower, variable.upper + 1)]
    assert space.decode_designs(levels) == every
    np.testing.assert_array_equal(levels, space.encode_designs(every))


@pytest.mark.parametrize("log", [False, True])
def test_rounding_never_carries_a_real_out_of_its_bounds(log: bool) -> None:
    rng = np.random.default_rng(0)
    beside = np.array([[1e-300], [1e-16], [math.nextafter(1.0, 0.0)], [-3.0], [3.0]])
    pairs = [(1.0, 1.7976931348623157e308), *np.sort(rng.uniform(0.1, 3.0, (300, 2)), axis=1).tolist()]
    for lower, upper in pairs:
        decoded = [row["x"] for row in Space({"x": Real(lower, upper, log=log)}).decode_designs(beside)]
        assert lower <= min(decoded)
        assert max(decoded) <= upper
        assert decoded[3:] == [lower, upper]


def test_levels_of_a_categorical_are_one_hot_rows_in_order() -> None:
    np.testing.assert_array_equal(MIXED.levels("kind"), np.eye(3))
    np.testing.assert_array_equal(MIXED.snap([[0, 0, 0, 0.2, 0.3, 0.9]])[0, 3:], [0, 0, 1])


@pytest.mark.parametrize(("name", "hint"), [("knid", "kind"), ("rate", "integers")])
def test_levels_of_what_has_none(name: str, hint: str) -> None:
    with pytest.raises(InvalidDesignError, match=hint):
        MIXED.levels(name)


def test_shorthands() -> None:
    space = Space({"a": (1, 10), "b": ["u", "v"], "c": ("u", "v"), "d": [1, 2], "e": (True, False)}, {"z": (None, 3)})
    assert space.design == {
        "a": Real(1.0, 10.0),
        "b": Categorical(("u", "v")),
        "c": Categorical(("u", "v")),
        "d": Categorical((1, 2)),
        "e": Categorical((True, False)),
    }
    assert repr(space.design["a"]) == "Real(1.0, 10.0)"
    assert space.context == {"z": Real(None, 3.0)}
    assert Space({"x": (0, 1)}).context == {}


def test_a_space_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        MIXED.d_c = 3
    MIXED.design["more"] = Real(0, 1)
    assert "more" not in MIXED.design


@pytest.mark.parametrize(
    ("design", "context", "message"),
    [
        ({}, {}, "no design variable"),
        ([("x", (0, 1))], {}, "give a dict"),
        ({"": (0, 1)}, {}, "non-empty"),
        ({3: (0, 1)}, {}, "non-empty"),
        ({"x": (0, 1)}, {"x": (0, 1)}, "both"),
        ({"x": None}, {}, "'x' lacks a bound"),
        ({"x": (0, None)}, {}, "'x' lacks a bound"),
        ({"x": (1, 1)}, {}, "'x'"),
        ({"x": (2, 1)}, {}, "below the upper"),
        ({"x": (-1.5e308, 1.5e308)}, {}, "1.5e.308"),
        ({"x": (0, math.inf)}, {}, "finite"),
        ({"x": (0, math.nan)}, {}, "finite"),
        ({"x": (0, 10**400)}, {}, "finite"),
        ({"x": (1, 2, 3)}, {}, "Integer"),
        ({"x": 3}, {}, "not a variable"),
        ({"x": []}, {}, "no choice"),
        ({"x": ["a"]}, {}, "no choice"),
        ({"x": ["a", "a"]}, {}, "repeat"),
        ({"x": [1, True]}, {}, "repeat"),
        ({"x": ["a", None]}, {}, "cannot be a choice"),
        ({"x": [math.nan, 1.0]}, {}, "cannot be a choice"),
        ({"x": (0, 1)}, {"c": (1e301, None)}, "no room"),
    ],
)
def test_spaces_that_make_no_sense(design: Any, context: Any, message: str) -> None:
    with pytest.raises(InvalidSpaceError, match=message):
        Space(design, context)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (Real, ("0", 1)),
        (Real, (0, 1, True)),
        (Real, (1, None, True)),
        (Real, (1e300, math.nextafter(1e300, math.inf), True)),
        (Real, (0, 1, "yes")),
        (Integer, (0, 5, True)),
        (Integer, (0.5, 5)),
        (Integer, (False, 5)),
        (Integer, (4, 4)),
        (Integer, (0, 2**43)),
        (Categorical, ("abc",)),
        (Categorical, (3,)),
    ],
)
def test_variables_that_make_no_sense(kind: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidSpaceError, match="hint"):
        kind(*arguments)


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"design": 3, "context": []},
        {"design": [{"kind": "real"}], "context": []},
        {"design": [{"name": "x", "kind": "complex"}], "context": []},
        {"design": [{"name": "x", "kind": "real", "lower": 0, "upper": 1, "width": 3}], "context": []},
        {"design": [{"name": "x", "kind": "real", "lower": 1, "upper": 0}], "context": []},
        {"design": [{"name": "x", "kind": "real", "lower": 0, "upper": 1}] * 2, "context": []},
    ],
)
def test_records_that_are_no_space(record: Any) -> None:
    with pytest.raises(InvalidSpaceError):
        Space.from_dict(record)
