from __future__ import annotations

import math

import pytest

from edrbo.lab.web.views import shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (0.5, "0.5"),
        (12345.678, "12345.7"),
        (-0.001234, "-0.001234"),
        (1e-9, "1e-09"),
        (100.0, "100"),
        (0.0, "0"),
        (3, "3"),
        ("plain", "plain"),
        (math.nan, "not known"),
    ],
)
def test_numbers_as_people_read_them(value: object, text: str) -> None:
    assert shown(value) == text
