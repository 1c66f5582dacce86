"""Levels as people list them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edrbo.lab.entry import levels_text, read_levels, read_specification
from edrbo.space import Categorical


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("A, B or C", ("A", "B", "C")),
        ("A or B", ("A", "B")),
        ("plain,glossy", ("plain", "glossy")),
        ("a | b or c | d", ("a", "b or c", "d")),
        ('plain, "salt and pepper"', ("plain", "salt and pepper")),
        ('"a,b", c', ("a,b", "c")),
        ("sand, oregano", ("sand", "oregano")),
        ("", ()),
    ],
)
def test_a_list(text: str, levels: tuple[str, ...]) -> None:
    assert read_levels(text) == levels


def test_what_is_shown_can_be_typed_back() -> None:
    kind = Categorical(("A", "B", "C"))
    assert read_specification(kind.describe()) == kind


NAMES = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=8).map(
    lambda text: " ".join(text.split())
)


HARD = st.sampled_from(["a or b", "salt and pepper", 'the "best"', "a|b", "|"])


@given(st.lists(NAMES.filter(bool) | HARD, min_size=2, max_size=4))
def test_every_list_comes_back(names: list[str]) -> None:
    assert read_levels(levels_text(names)) == tuple(names)
