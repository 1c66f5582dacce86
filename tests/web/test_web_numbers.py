from __future__ import annotations

import math

import pytest

from edrbo.errors import EdrboError
from edrbo.web.answer import doubts_of, facts_of, parts_of
from edrbo.web.numbers import read_number, shown


@pytest.mark.parametrize(
    ("text", "number"),
    [("1,7", 1.7), ("1.7", 1.7), (" −3 ", -3.0), ("1 000,5", 1000.5), ("1e-3", 0.001), (2, 2.0), (".5", 0.5)],
)
def test_numbers_as_people_type_them(text: object, number: float) -> None:
    assert read_number(text) == number


@pytest.mark.parametrize("text", ["", "1,2,3", "1.234,5", "nan", "inf", "1e999", "1_000", "٣", True, None, "0x10"])
def test_what_is_no_number(text: object) -> None:
    with pytest.raises(EdrboError, match="the value is"):
        read_number(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (0.5, "0.5"),
        (12345.678, "12346"),
        (-0.001234, "−0.001234"),
        (1e-9, "1.000e−09"),
        (100.0, "100"),
        (0.0, "0"),
        (3, "3"),
        ("plain", "plain"),
        (math.nan, "not known"),
    ],
)
def test_numbers_as_people_read_them(value: object, text: str) -> None:
    assert shown(value) == text


ANSWER = {
    "goal": "expected",
    "title": "mean",
    "expected": 94.1348,
    "interval": [88.962, 99.287],
    "outcome": [83.09, 103.04],
    "left_to_gain": 23.64,
    "ten_more_runs": 3.21,
    "robust": 93.24,
    "worst_case": 83.47,
    "ball": 0.1,
    "context_effect": {"humidity": 0.5896},
    "interval_parts": {"model": 4.867, "contexts": 1.611, "experts": None},
    "success": None,
    "untried": False,
    "unseen": False,
}


def facts(unit: str = "GU", goal_unit: str = "GU", **changes: object) -> dict[str, tuple[str, str]]:
    return {what: (number, meaning) for what, number, meaning in facts_of({**ANSWER, **changes}, unit, goal_unit)}


def test_an_answer_has_no_more_digits_than_its_interval_is_worth() -> None:
    assert facts()["expected on average"] == ("94.1 GU", "95 % sure: between 89 and 99.3 GU")
    assert facts()["the next single run"][0] == "83.1 to 103 GU"
    wide = facts(interval=[-1234.5, 4321.0], expected=1543.21)
    assert wide["expected on average"] == ("1500 GU", "95 % sure: between −1200 and 4300 GU")
    early = facts(interval=[None, None], outcome=[None, None], left_to_gain=None, ten_more_runs=None)
    assert early["expected on average"] == ("94.13 GU", "too early to say how sure this is")
    assert early["the next single run"][0] == "not known yet"
    assert "left to gain" not in early


def test_the_goal_has_a_unit_of_its_own() -> None:
    found = facts(
        goal_unit="",
        goal="reach:90",
        title="share of contexts with gloss ≥ 90",
        value=0.871,
        value_interval=[0.6, 0.99],
    )
    assert found["share of contexts with gloss ≥ 90"] == ("0.87", "95 % sure: between 0.6 and 0.99")
    assert found["left to gain"][0] == "at most 24"
    assert found["expected on average"][0] == "94.1 GU"


def test_the_probability_of_success_is_shown_once_something_failed() -> None:
    assert "succeeds with" not in facts()
    assert facts(success=0.834)["succeeds with"][0] == "83 %"


def test_what_an_uncertainty_is_made_of() -> None:
    lines = [(what, number) for what, number, _ in parts_of(ANSWER, "GU")]
    assert lines == [
        ("not known of the process", "± 4.9 GU"),
        ("not known of the conditions", "± 1.6 GU"),
        ("moves with humidity", "± 0.59 GU"),
    ]


def test_doubts_are_said_before_anybody_relies_on_the_answer() -> None:
    assert doubts_of(ANSWER, 0.5) == []
    assert len(doubts_of({**ANSWER, "untried": True, "unseen": True, "success": 0.3}, 0.5)) == 3
    assert doubts_of({**ANSWER, "success": 0.496}, 0.5) == []  # 50 % when shown
