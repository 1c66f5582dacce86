"""Steps, digits and units of variables: what is suggested, what may be reported, how it is shown and stored."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edrbo.errors import InvalidSpaceError
from edrbo.optimizer.optimizer import Optimizer
from edrbo.space import Categorical, Integer, Real, Space


def test_suggestions_lie_on_the_steps() -> None:
    optimizer = Optimizer(Space({"speed": Real(10, 60, unit="m/min", step=0.5)}), "ucb", initial=3)
    for _ in range(5):
        suggestion = optimizer.ask()
        speed = suggestion["speed"]
        assert (2 * speed).is_integer()
        assert 10 <= speed <= 60
        optimizer.tell(suggestion, value=-((speed - 33.2) ** 2))
    assert (2 * optimizer.recommend().design["speed"]).is_integer()


def test_what_was_really_set_may_lie_between_steps() -> None:
    optimizer = Optimizer(Space({"speed": Real(10, 60, step=0.5)}))
    suggestion = optimizer.ask()
    optimizer.tell(suggestion, value=1.0, design={"speed": 38.3})
    assert optimizer.space.decode_designs(optimizer.observations.x)[0]["speed"] == pytest.approx(38.3, abs=1e-9)


@given(
    st.decimals(-1000, 1000, places=2),
    st.sampled_from(["0.01", "0.1", "0.25", "0.5", "1", "3", "12.5"]),
    st.integers(1, 400),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6),
)
def test_steps_are_the_decimals_people_write(low: object, step: str, count: int, coded: list[float]) -> None:
    from decimal import Decimal

    lower = Decimal(str(low))
    variable = Real(float(lower), float(lower + count * Decimal(step)), step=float(step))
    space = Space({"x": variable})
    exact = {float(lower + k * Decimal(step)) for k in range(count + 1)}
    snapped = space.snap(np.array(coded)[:, None])
    assert {row["x"] for row in space.decode_designs(snapped)} <= exact
    np.testing.assert_array_equal(space.snap(snapped), snapped)
    farthest = np.abs(snapped[:, 0] - np.array(coded)).max()
    assert farthest <= 0.5 / count + 1e-9  # the nearest step, not just any


def test_a_last_step_short_of_the_bound() -> None:
    space = Space({"x": Real(0, 1, step=0.3)})
    assert [row["x"] for row in space.decode_designs(space.snap(np.array([[0.0], [0.44], [1.0]])))] == [0.0, 0.3, 0.9]


@pytest.mark.parametrize(
    "variable",
    [
        Real(10, 60, unit="m/min", digits=1, step=0.5),
        Real(None, None, unit="%"),
        Integer(1, 8, unit="layers"),
        Categorical((10, 20), unit="µm"),
    ],
)
def test_stored_and_read_back(variable: Real | Integer | Categorical) -> None:
    from edrbo.space.variables import variable_from_dict

    assert variable_from_dict(variable.to_dict()) == variable


def test_records_without_them_are_as_they_were() -> None:
    assert Real(1, 9).to_dict() == {"kind": "real", "lower": 1.0, "upper": 9.0, "log": False}
    assert Integer(1, 9).to_dict() == {"kind": "integer", "lower": 1, "upper": 9, "log": False}
    assert Categorical(("a", "b")).to_dict() == {"kind": "categorical", "choices": ["a", "b"]}


@pytest.mark.parametrize(
    "wrong",
    [{"step": 0}, {"step": -1}, {"step": 51}, {"step": float("nan")}, {"unit": "a\nb"}, {"unit": 3}, {"digits": -1}],
)
def test_nonsense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidSpaceError):
        Real(10, 60, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidSpaceError):
        Real(None, None, step=1.0)


def test_words_for_people() -> None:
    assert Real(10, 60, unit="m/min", step=0.5).describe() == "10 to 60 m/min in steps of 0.5"
    assert Real(1e-4, 1, log=True).describe() == "0.0001 to 1, on a logarithmic scale"
    assert Real(0, None, unit="€").describe() == "from 0 €"
    assert Real().describe() == "any number"
    assert Integer(1, 8).describe() == "1 to 8, whole numbers"
    assert Categorical(("a", "b", "c")).describe() == "a, b or c"
    assert Real(0, 1, digits=2).text(0.5) == "0.50"
