"""What is questioned before it is stored, and what is not."""

from __future__ import annotations

import numpy as np
import pytest

from edrbo.records import events as e
from edrbo.records.sanity import doubts
from edrbo.records.settings import Settings
from edrbo.records.state import State
from edrbo.space import Real, Space


def experienced(values: list[float], outcome_forecast: dict[str, float] | None) -> State:
    """Values reported one after the other, and a suggestion that waits."""
    state = State.start(Settings(Space({"x": (0, 1)})))
    for k, value in enumerate(values):
        state = state.apply(e.Reported(id=k, ref=str(k), x=np.array([0.5]), value=value))
    return state.apply(e.Asked(id=len(values), ref="asked", x=np.array([0.25]), outcome_forecast=outcome_forecast))


EXPECTS = {"value": 10.0, "low": 9.0, "high": 11.0}
REPORTED = [9.0, 10.0, 11.0, 9.5, 10.5, 10.0, 9.8, 10.2]


@pytest.mark.parametrize(("value", "asked"), [(10.5, False), (12.5, False), (105.0, True), (-40.0, True)])
def test_beside_what_a_suggestion_expects(value: float, asked: bool) -> None:
    state = experienced(REPORTED, EXPECTS)
    found = doubts(state, state.runs[len(REPORTED)], value, None)
    assert bool(found) == asked
    if asked:
        assert "expected was 9 to 11" in found[0]
    assert ("did you mean 10.5?" in "".join(found)) == (value == 105.0)


def test_an_expectation_that_is_not_understood_is_passed_over() -> None:
    state = experienced(REPORTED, {"mean": 3.0})
    assert doubts(state, state.runs[len(REPORTED)], 10.5, None) == []
    assert "reported so far" in doubts(state, state.runs[len(REPORTED)], 1050.0, None)[0]


def test_few_outcomes_question_nothing() -> None:
    state = experienced(REPORTED[:3], None)
    assert doubts(state, state.runs[3], 1e9, None) == []


def test_ordinary_outcomes_are_hardly_ever_questioned() -> None:
    rng = np.random.default_rng(0)
    asked = 0
    for _ in range(200):
        values = rng.normal(size=12).tolist()
        state = experienced(values[:-1], None)
        asked += bool(doubts(state, None, values[-1], None))
    assert asked == 0


@pytest.mark.parametrize("humidity", [Real(0, 100), Real(0, 80, unit="%")])
def test_a_share_of_one_where_percent_are_meant_is_asked_about_from_the_first(humidity: Real) -> None:
    state = State.start(Settings(Space({"x": (0, 1)}, {"humidity": humidity, "part": (0, 1)})))
    found = doubts(state, None, None, {"humidity": 0.55, "part": 0.55})
    assert found == [f"humidity is 0.55{humidity.unit and ' %'}, as a share of one would be; did you mean 55?"]
    assert doubts(state, None, None, {"humidity": 55.0}) == []
    dry = state.apply(e.Seen(rows=np.array([[0.4, 0.5]]), weights=np.ones(1), count=1, ref="dry"))
    assert doubts(dry, None, None, {"humidity": 0.55}) == []


def questioned(contexts: list[float], variable: object) -> list[int]:
    """Which of contexts, reported one after the other, are asked about."""
    space = Space({"x": (0, 1)}, {"dose": variable})
    state, found = State.start(Settings(space)), list[int]()
    for k, dose in enumerate(contexts):
        if doubts(state, None, None, {"dose": dose}):
            found.append(k)
        state = state.apply(
            e.Reported(id=k, ref=str(k), x=np.array([0.5]), context=np.array([dose]), value=float(np.sin(k)))
        )
    return found


def test_log_normal_contexts_are_hardly_ever_questioned() -> None:
    """Of 30 series of 30 contexts; without logarithms in 13 of them."""
    asked = [bool(questioned(np.random.default_rng(s).lognormal(3.0, 1.0, 30).tolist(), None)) for s in range(30)]
    assert sum(asked) <= 3


def test_a_slip_of_the_point_is_still_questioned() -> None:
    rng = np.random.default_rng(0)
    normal = [*rng.normal(50.0, 5.0, 29).tolist(), 500.0]
    assert questioned(normal, None) == [29]
    skewed = [*rng.lognormal(3.0, 0.3, 29).tolist(), 2000.0]
    assert questioned(skewed, None) == [29]


def test_a_variable_that_is_logarithmic_is_compared_so() -> None:
    rng = np.random.default_rng(1)
    doses = 10.0 ** rng.uniform(-2.0, 2.0, 40)
    assert questioned(doses.tolist(), Real(1e-9, 1e9, log=True)) == []
    assert questioned([*doses.tolist(), 1e-8], Real(1e-9, 1e9, log=True)) == [40]  # no share of the range otherwise
    assert questioned([*doses.tolist(), 1e-8], Real(1e-9, 1e9)) == []
