"""The report of several main outcomes, of what runs cost, and of outcomes reported once."""

from __future__ import annotations

from pathlib import Path

import pytest

import edrbo
from edrbo import Space, Study
from edrbo.lab.report import report_page

SPACE = Space({"speed": (1, 9)}, {"humidity": (0, 100)})


def test_a_front_has_a_picture_and_a_table(tmp_path: Path) -> None:
    outcomes = {"gloss": edrbo.Maximize(unit="GU"), "<price>": edrbo.Minimize(), "haze": edrbo.Limit(upper=0.1)}
    study = Study.open(tmp_path / "a.db", SPACE, method="erbo", outcomes=outcomes, cost="2 * speed")
    for k in range(4):
        speed = 1.5 + 2 * k
        reported = {"gloss": speed, "<price>": speed**2 / 10, "haze": 0.1 * speed}
        study.tell({"speed": speed}, {"humidity": 20 + 15 * k}, reported)
    page = report_page(study, {"humidity": 50})
    assert "When humidity 50 is known to come." in page
    assert "&lt;price&gt; against gloss" in page
    assert "haze holds" in page
    assert "No settings are known yet that keep all limits" in page
    assert "Cost so far 36; a run costs 2 * speed." in page
    assert "&lt;price&gt;" in page
    assert "<price>" not in page


def test_progress_against_cost(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "a.db", SPACE, method="erbo", context_distribution="norm(55, 12)")
    study.tell({"speed": 2}, {"humidity": 40}, 1.0, cost=3)
    study.tell({"speed": 5}, {"humidity": 60}, failed=True, cost=4.5)
    study.tell({"speed": 7}, {"humidity": 60}, 2.0)
    study.ask()
    page = report_page(study)
    assert "Progress by cost" in page
    assert "Cost so far 7.5, without 1 run of which it is not known." in page
    assert "run 0: value 1; speed 2; at humidity 40" in page
    assert "conditions are known to follow humidity = norm(55, 12)" in page


@pytest.mark.parametrize("goal", ["expected", "cvar:0.2"])
def test_one_outcome_has_no_scale(tmp_path: Path, goal: str) -> None:
    study = Study.open(tmp_path / "a.db", SPACE, method="erbo", goal=goal, outcome="gloss", unit="GU")
    study.tell({"speed": 2}, {"humidity": 40}, 1.0)
    page = report_page(study)
    assert "too early to say how sure this is" in page
    assert ">-inf" not in page
    assert " inf" not in page
