"""Ranges that are narrowed and levels that are retired, while the runs of before stay what they were."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edrbo import Categorical, Integer, Optimizer, Real, Space
from edrbo.errors import InvalidSpaceError
from edrbo.records.descriptions import changes, constraint_texts
from edrbo.records.state import State
from edrbo.records.suggested_ranges import SuggestedRanges, describe_range, keeping_runs
from edrbo.space import Variable

SPACE = Space(
    {"speed": Real(10, 60, unit="m/min", step=0.5), "layers": Integer(1, 8), "line up": Categorical(("A", "B", "C"))},
    {"humidity": (0, 100)},
)
RUNS = [(20.0, 2, "A"), (55.0, 6, "C"), (40.0, 4, "B")]


def state_of(space: Space = SPACE, runs: list[tuple[float, int, str]] = RUNS) -> State:
    optimizer = Optimizer(space, initial=50)
    for k, values in enumerate(runs):
        optimizer.tell(dict(zip(space.design_names, values, strict=True)), {"humidity": 50.0}, float(k))
    return optimizer.state


cached_state = cache(state_of)


def narrowed(state: State, **ranges: Variable) -> Space:
    given = SuggestedRanges.of(state.space, ranges)
    return keeping_runs(state, {**given.design, **ranges}, state.space.context, given.constraints)


def test_what_is_not_suggested_any_more_stays_known() -> None:
    state = state_of()
    level = {"line up": Categorical(("A", "B"))}
    space = narrowed(state, speed=Real(30, 50, unit="m/min", step=0.5), layers=Integer(1, 5), **level)
    assert space.design["speed"] == SPACE.design["speed"]  # runs lie on both sides
    assert space.design["layers"] == Integer(1, 8)
    assert space.design["line up"] == SPACE.design["line up"]
    assert describe_range(space, "speed") == "30 to 50 m/min in steps of 0.5; runs may lie from 10 to 60"
    assert describe_range(space, "line up") == "A or B; C no longer suggested"
    assert constraint_texts(space) == []
    assert SuggestedRanges.of(space).design["layers"] == Integer(1, 5)


def test_a_range_without_runs_outside_is_simply_narrower() -> None:
    space = narrowed(state_of(), speed=Real(15, 58, unit="m/min"))
    assert space.design["speed"] == Real(15, 58, unit="m/min")
    assert not space.constraints
    assert describe_range(space, "speed") == "15 to 58 m/min"


@pytest.mark.filterwarnings("ignore::edrbo.errors.ConstraintWarning")
def test_a_narrowed_study_suggests_from_what_is_left_and_keeps_its_runs() -> None:
    state = state_of()
    levels = {"line up": Categorical(("B", "C"))}
    space = narrowed(state, speed=Real(30, 50, unit="m/min", step=0.5), **levels)
    optimizer = Optimizer(space, initial=50, seed=4)
    for k, values in enumerate(RUNS):  # what lies outside can still be told, and is kept
        optimizer.tell(dict(zip(space.design_names, values, strict=True)), {"humidity": 50.0}, float(k))
    assert [run.design["line up"] for run in optimizer.runs] == ["A", "C", "B"]
    for suggestion in optimizer.ask(12):
        assert 30 <= suggestion.design["speed"] <= 50
        assert suggestion.design["line up"] in ("B", "C")


@pytest.mark.filterwarnings("ignore::edrbo.errors.ConstraintWarning")
def test_a_range_may_be_widened_again() -> None:
    state = state_of()
    first = narrowed(state, speed=Real(30, 50), **{"line up": Categorical(("A", "B"))})
    again = state_of(first)
    space = narrowed(again, speed=Real(10, 60), **{"line up": Categorical(("A", "B", "C"))})
    assert not space.constraints
    assert space.design == {**SPACE.design, "speed": Real(10, 60)}


def test_other_constraints_stay() -> None:
    space = Space(SPACE.design, SPACE.context, ["speed * layers <= 250", "layers >= 2"])
    state = state_of(space, [(20.0, 2, "A"), (40.0, 4, "B")])
    found = narrowed(state, speed=Real(30, 60))
    assert [one.text for one in found.constraints] == ["speed * layers <= 250", "layers >= 2", "speed >= 30"]
    assert constraint_texts(found) == ["speed * layers <= 250"]


def test_a_change_of_ranges_is_said_in_one_line_each() -> None:
    state = state_of()
    space = narrowed(state, speed=Real(30, 50, unit="m/min", step=0.5))
    before = "10 to 60 m/min in steps of 0.5"
    after = "30 to 50 m/min in steps of 0.5; runs may lie from 10 to 60"
    assert changes(state.settings, replace(state.settings, space=space)) == [f"speed: {before} → {after}"]


@settings(max_examples=40, deadline=None)
@given(
    ends=st.tuples(st.integers(10, 60), st.integers(10, 60)).filter(lambda pair: pair[0] < pair[1]),
    left=st.sets(st.sampled_from("ABC"), min_size=2),
)
def test_what_is_suggested_is_what_was_said(ends: tuple[int, int], left: set[str]) -> None:
    """Whatever is asked for is read back, and every run is a point of the space."""
    state = cached_state()
    wanted: dict[str, Any] = {"speed": Real(*map(float, ends)), "line up": Categorical(tuple(sorted(left)))}
    space = narrowed(state, **wanted)
    assert SuggestedRanges.of(space).design == {**SPACE.design, **wanted}
    for speed, layers, line in RUNS:
        space.encode_designs({"speed": speed, "layers": layers, "line up": line})
    allowed = np.array([ends[0] <= speed <= ends[1] and line in left for speed, _, line in RUNS])
    designs = [dict(zip(SPACE.design_names, values, strict=True)) for values in RUNS]
    inside = [space.region is None or bool(space.region.inside(space.encode_designs(one))[0]) for one in designs]
    assert inside == allowed.tolist() or space.region is None


def test_a_level_is_left_out_by_its_name() -> None:
    space = Space({"kind": ["plain", "glossy", "matt"]}, {}, ["kind ≠ glossy"])
    assert [one.text for one in space.constraints] == ["kind != glossy"]
    assert Space.from_dict(space.to_dict()) == space
    with pytest.raises(InvalidSpaceError, match="no level"):
        Space({"kind": ["plain", "glossy", "matt"]}, {}, ["kind != shiny"])
    with pytest.raises(InvalidSpaceError, match="is categorical"):
        Space({"kind": ["plain", "glossy", "matt"], "x": (0, 1)}, {}, ["kind + x <= 1"])
