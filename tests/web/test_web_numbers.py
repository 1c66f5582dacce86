from __future__ import annotations

import math

import pytest

from edrbo.errors import EdrboError
from edrbo.web.answer import facts_of
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


def test_the_probability_of_success_is_shown_once_something_failed() -> None:
    answer = {"expected": 1.0, "goal": "expected", "interval": [0.5, 1.5]}
    assert not any(what == "succeeds with" for what, *_ in facts_of({**answer, "success": None}))
    (line,) = (line for line in facts_of({**answer, "success": 0.834}) if line[0] == "succeeds with")
    assert line[1] == "83%"
