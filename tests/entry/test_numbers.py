"""Numbers as people write them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edrbo.lab.entry import NotANumberError, is_percent_format, percent_text, read_number, read_variable_value
from edrbo.space import Categorical, Integer, Real


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("1.5", 1.5), ("1,5", 1.5), ("-0,25", -0.25), ("1e-3", 1e-3), ("+3", 3.0), ("−3", -3.0), (".5", 0.5)),
        *(("1.234,5", 1234.5), ("1,234.5", 1234.5), ("1 234,5", 1234.5), ("1,234,567", 1234567.0), ("0,123", 0.123)),
        *(("1'234.5", 1234.5), (" −3 ", -3.0), ("1 000,5", 1000.5), (2, 2.0), (0.25, 0.25), ("12 %", 12.0)),
    ],
)
def test_numbers_as_people_write_them(text: object, number: float) -> None:
    assert read_number(text) == number


@pytest.mark.parametrize(
    "text",
    [
        *("", "half", "1,234", "1.2.3", "1 2", "0x10", "1_000", "--1", "1,2,3", "5 kg", "true", "nan", "inf", "1e999"),
        *("٣", True, None, 10**400, "12 % %"),
    ],
)
def test_what_is_no_number(text: object) -> None:
    with pytest.raises(NotANumberError):
        read_number(text)


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        *(("71 GU", "GU", 71.0), ("71gu", "GU", 71.0), ("45 m / min", "m/min", 45.0), ("48 %", "%", 48.0)),
        *(("3 1/min", "1/min", 3.0), ("5 e", "e", 5.0), ("5e3", "e3", 5000.0), ("3 eV", "eV", 3.0)),
        *(("20 °C", "°C", 20.0), ("10", "0", 10.0), ("1.234,5 GU", "GU", 1234.5)),
    ],
)
def test_a_unit_may_stand_behind(text: str, unit: str, number: float) -> None:
    assert read_number(text, unit) == number


@pytest.mark.parametrize(
    ("text", "unit", "hint"),
    [("45 mm/s", "m/min", "m/min"), ("12 %", "GU", "GU"), ("1,234 GU", "GU", "1.234 or 1234"), ("5 kg", "", "alone")],
)
def test_another_unit_is_refused_with_what_to_write(text: str, unit: str, hint: str) -> None:
    with pytest.raises(NotANumberError) as found:
        read_number(text, unit)
    assert hint in found.value.hint


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        (Real(0, 1), "55%", 0.55),
        (Real(0, 1), "0,3 %", 0.003),
        (Real(0, 0.5, unit="%"), "0.3 %", 0.3),  # the sign is the unit
        (Real(0, 100), "55%", 55.0),
        (Integer(1, 9), "3", 3),
        (Integer(1, 9), "3,0", 3),
        (Integer(1, 9), 3.0, 3),
        (Categorical(("Plain", "glossy")), " plain", "Plain"),
        (Categorical((1, 2)), "2", 2),
        (Categorical((True, False)), "true", True),
        (Categorical((True, False)), True, True),
    ],
)
def test_values_of_variables(variable: Real | Integer | Categorical, text: object, value: object) -> None:
    found = read_variable_value(text, variable)
    assert (found, type(found)) == (value, type(value))


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["", "GU", "m/min", "°C"]))
def test_every_number_comes_back(number: float, unit: str) -> None:
    assert read_number(f"{number!r} {unit}", unit) == number
    assert read_number(repr(number).replace(".", ","), unit, point=",") == number


@given(st.integers(-(10**9), 10**9), st.integers(0, 99))
def test_groups_of_three_digits(whole: int, cents: int) -> None:
    expected = float(f"{whole}.{cents:02}")
    english = f"{whole:,}.{cents:02}"
    for text in (english, english.translate(str.maketrans(",.", ".,")), english.translate(str.maketrans(",.", " ,"))):
        assert read_number(text) == expected


@given(st.text(max_size=12), st.text(max_size=5))
def test_any_text_is_a_finite_number_or_is_refused(text: str, unit: str) -> None:
    try:
        number = read_number(text, unit)
    except NotANumberError:
        return
    assert math.isfinite(number)


@pytest.mark.parametrize(
    ("code", "percent"),
    [("0%", True), ("0.00 %", True), ("General", False), ('0 "%"', False), (r"0\%", False), ("0%;[Red]-0%", True)],
)
def test_formats_of_cells_that_show_percent(code: str, percent: bool) -> None:
    assert is_percent_format(code) == percent


@given(st.floats(-1e6, 1e6))
def test_what_a_percent_cell_shows_is_read_back(share: float) -> None:
    assert read_number(percent_text(share), "%") == pytest.approx(100 * share, rel=1e-15)
    assert read_number(percent_text(share), share=True) == pytest.approx(share, rel=1e-14)
