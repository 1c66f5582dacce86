"""What is said of an answer: numbers rounded to their interval, facts and doubts."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edrbo import Limit, Maximize, Space
from edrbo.optimizer.answers import LikelyDesign, OutcomeAnswer, TriedRun
from edrbo.records.outcomes import Outcomes
from edrbo.records.settings import Settings
from edrbo.text import answer_text, range_text, rounded

SETTINGS = Settings(Space({"speed": (1, 99)}, {"humidity": (0, 100)}), outcome="gloss", unit="GU")
ANSWER: Any = SimpleNamespace(  # what is read of a Recommendation
    design={"speed": 38.0},
    goal="expected",
    title="mean over the conditions",
    value=94.1348,
    value_interval=(88.962, 99.287),
    value_parts={},
    price={"recommended": {"mean": 94.1}, "on average": {"mean": 95.0}},
    expected=94.1348,
    interval=(88.962, 99.287),
    interval_parts={"model": 4.867, "contexts": 1.611, "experts": 0.0},
    outcome_interval=(83.09, 103.04),
    outcome_spread=60.0,
    optimality_gap=23.64,
    expected_improvement_10=3.21,
    gain_quantiles=(),
    is_extrapolation=False,
    beats_observations=False,
    nearest=(TriedRun(3, {"speed": 37.0}, {"humidity": 55.0}, 93.25, 0.1),),
    robust=93.24,
    worst_case=83.47,
    radius=0.1,
    disagreement=0.3,
    context_effect={"humidity": 0.5896},
    distribution_error=0.0,
    approximation=None,
    observations=12,
    success=None,
    outcomes={},
    limits_hold=None,
    likely=None,
    earlier={},
    noise_sd=None,
    drift_half_life=None,
    process_change=None,
)


def other(**changes: Any) -> Any:
    """The answer with something else."""
    return SimpleNamespace(**{**vars(ANSWER), **changes})


def facts(**changes: object) -> dict[str, tuple[str, str]]:
    text = answer_text(other(**changes), SETTINGS)
    return {fact.label: (fact.value, fact.explanation) for fact in (*text.facts, *text.sources)}


@pytest.mark.parametrize(
    ("value", "ends", "text"),
    [
        (94.1348, (88.962, 99.287), "94"),  # ± 5
        (94.1348, (92.9, 95.4), "94.1"),  # ± 1.3
        (1543.21, (-1234.5, 4321.0), "1500"),  # ± 2800
        (0.0123456, (0.0121, 0.0126), "0.01235"),
        (90.0, (89.95, 90.05), "90.00"),
        (-0.2, (-5.0, 5.0), "0"),
        (3.25, (-math.inf, math.inf), "3.25"),
        (3.25, (3.25, 3.25), "3.25"),
        (1e300, (0.0, 1.0), "1e+300"),
    ],
)
def test_a_number_has_as_many_digits_as_its_interval_is_worth(
    value: float, ends: tuple[float, float], text: str
) -> None:
    assert rounded(value, ends) == text


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_rounding_moves_a_number_by_less_than_its_uncertainty(value: float, half: float) -> None:
    shown = rounded(value, (value - half, value + half))
    assert abs(float(shown) - value) <= 0.51 * half + 1e-9 * abs(value)
    assert len(shown.strip("-").replace(".", "").strip("0")) <= 13


def test_the_facts() -> None:
    found = facts()
    assert found["expected on average"] == ("94 GU", "95 % sure: 89 to 99 GU")
    assert found["the next single run"][0] == "83 to 103 GU"
    assert found["ten more runs would bring"][0] == "about 3.2 GU"
    assert found["left to gain"][0] == "at most 24 GU"
    assert found["on the safe side"][0] == "93 GU"
    assert found["if conditions turn against us"] == (
        "83 GU",
        "the average if conditions move by 10 % of their range in the worst way; 95 % sure",
    )
    assert found["not known of the process"][0] == "± 4.9 GU"
    assert found["moves with humidity"][0] == "± 0.59 GU"
    assert "succeeds with" not in found
    assert facts(success=0.834)["succeeds with"][0] == "83 %"
    assert facts(expected_improvement_10=0.0)["ten more runs would bring"][0] == "next to nothing"
    assert "if conditions turn against us" not in facts(radius=0.0)


@pytest.mark.parametrize(
    ("gap", "more", "goal", "value", "explanation"),
    [
        (23.64, 3.21, "expected", "go on", "ten more runs would likely bring 3.2 GU"),
        (75.0, 0.4, "expected", "go on", "too little is known yet to say how much better other settings may be"),
        (23.64, 0.4, "expected", "stop, or look elsewhere", "ten more runs would bring little; at most 24 GU is left"),
        (2.0, 0.4, "cvar:0.1", "stop", "at most 2.0 GU is left to gain, and ten more runs would bring little of it"),
        (0.3, 0.05, "reach:90", "go on", "ten more runs would likely bring 0.050"),
    ],
)
def test_what_is_still_to_gain_is_said_as_a_decision(
    gap: float, more: float, goal: str, value: str, explanation: str
) -> None:
    found = facts(optimality_gap=gap, expected_improvement_10=more, goal=goal)
    assert found["next step"] == (value, explanation)
    assert ("says next to nothing" in found["left to gain"][1]) == (gap > 60)


def test_a_bound_that_says_nothing_says_so() -> None:
    wide = facts(goal="cvar:0.1", title="worst tenth", value=10.0, value_interval=(-50.0, 60.0), worst_case=20.0)
    assert wide["worst tenth"][1].endswith("wider than all results lie apart, so that it says next to nothing")
    assert "says next to nothing" in wide["if conditions turn against us"][1]
    assert "says next to nothing" not in facts()["if conditions turn against us"][1]


def test_the_goal_has_a_unit_of_its_own() -> None:
    found = facts(goal="reach:90", title="share of conditions", value=0.871, value_interval=(0.6, 0.99))
    assert found["share of conditions"] == ("0.87", "95 % sure: 0.60 to 0.99")
    assert found["left to gain"][0] == "at most 24"
    assert found["expected on average"][0] == "94 GU"
    assert answer_text(other(goal="reach:90"), SETTINGS).price == (("mean", "94 GU", "95 GU"),)
    assert answer_text(ANSWER, SETTINGS).price == ()


def test_of_several_outcomes_each_is_reported() -> None:
    limit = OutcomeAnswer("≤ 2 um", "um", 1.783, (1.5, 2.06), (1.0, 2.5), 0.953, (0.9, 1.0), 0.87)
    main = replace(limit, holds=None)
    found = facts(outcomes={"gloss": main, "roughness": limit}, limits_hold=False)
    assert found["roughness"] == ("1.78 um", "≤ 2 um: holds in 95.3 % of conditions; 87 % sure that this is enough")
    assert "gloss" not in found
    doubts = answer_text(other(outcomes={"roughness": limit}, limits_hold=False), SETTINGS).doubts
    assert "keep the limit on roughness" in doubts[0]


def test_an_approximation_is_said() -> None:
    assert "approximated" not in facts()
    said = facts(approximation={"inducing_points": 384, "leave_out": 0.0123})["approximated"]
    assert said == ("384 runs stand for all", "so that many runs take little time; what they leave out is ± 0.012 GU")


def test_what_is_missing_for_a_limit_is_said_with_the_arithmetic() -> None:
    wanted = Outcomes((("gloss", Maximize()), ("roughness", Limit(upper=2.0))))
    settings = replace(SETTINGS, outcomes=wanted)
    limit = OutcomeAnswer("≤ 2 um", "um", 1.8, (1.5, 2.1), (1.0, 2.5), 0.95, (0.9, 1.0), 0.5, contexts_known=19.0)
    other_best = LikelyDesign({"speed": 44.0}, 97.31, (92.0, 102.0))
    answer = other(outcomes={"roughness": limit}, limits_hold=False, likely=other_best)
    _, needs, likely = answer_text(answer, settings).doubts
    assert "45 conditions must be known" in needs
    assert "there are 19" in needs
    assert "ask for 85 % (probability=0.85)" in needs
    assert likely.endswith("speed 44: gloss 97 GU on average (95 % sure: 92 to 102).")
    assert 0.95**45 <= 0.1 < 0.95**44  # so many, all of which keep the limit: what breaks it is Beta(1, n)
    assert 0.85**19 <= 0.1 < 0.9**19
    enough = replace(limit, contexts_known=45.0)
    assert len(answer_text(other(outcomes={"roughness": enough}, limits_hold=False), settings).doubts) == 1


@pytest.mark.parametrize(
    ("changes", "step"),
    [
        ({"is_extrapolation": True}, "try these settings"),
        ({"limits_hold": False}, "go on"),
        ({"success": 0.3}, "go on"),
        ({"optimality_gap": 2.0, "expected_improvement_10": 0.4}, "stop"),
    ],
)
def test_the_next_step_is_said_once(changes: dict[str, object], step: str) -> None:
    text = answer_text(other(**changes), SETTINGS)
    (fact,) = [fact for fact in text.facts if fact.label == "next step"]
    assert fact.value == step
    assert text.next.startswith(f"Next: {step}. ")


def test_doubts_are_said_before_anybody_relies_on_the_answer() -> None:
    assert answer_text(ANSWER, SETTINGS).doubts == ()
    assert len(answer_text(other(is_extrapolation=True, beats_observations=True, success=0.3), SETTINGS).doubts) == 3
    assert answer_text(other(success=0.796), SETTINGS).doubts == ()  # 80 % when shown
    assert answer_text(ANSWER, SETTINGS).nearest == ("The nearest runs: run 3 (speed 37) gave 93.25 GU at humidity 55.")


def test_a_range_that_nobody_knows() -> None:
    assert range_text((-math.inf, math.inf), "GU") == "not known yet"
