"""Constraints on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edrbo.lab import Study
from edrbo.records.outcomes import OutcomeRange

Run = Callable[..., Any]


def test_constraints_are_made_shown_followed_and_amended(edrbo: Run, folder: Path) -> None:
    words = ["-d", "speed=10:60", "-d", "dose=1:9", "--constraint", "speed * dose <= 80", "--constraint", "dose >= 2"]
    assert edrbo("new", "line.toml", *words).code == 0
    assert 'constraints = ["speed * dose <= 80", "dose >= 2"]' in (folder / "line.toml").read_text()
    assert "speed * dose <= 80" in edrbo("show").out
    for suggestion in edrbo("ask", "-n", 3, "--json").json:
        assert suggestion["design"]["speed"] * suggestion["design"]["dose"] <= 80
        assert suggestion["design"]["dose"] >= 2
    reported = edrbo("tell", "-d", "speed=60", "-d", "dose=9", "-v", 1)
    assert reported.code == 0
    assert "breaks 'speed * dose <= 80'; it is kept as it was run" in reported.err
    ended = edrbo("amend", "--no-constraint", "dose>=2", "--constraint", "speed >= 3 * dose", "--yes")
    assert ended.code == 0
    assert "dose: 2 to 9; runs may lie from 1 to 9 → 1 to 9" in ended.out
    assert "speed >= 3 * dose must hold" in ended.out
    found = [constraint.text for constraint in Study.open(folder / "line.db").space.constraints]
    assert found == ["speed * dose <= 80", "speed >= 3 * dose"]
    assert 'constraints = ["speed * dose <= 80", "speed >= 3 * dose"]' in (folder / "line.toml").read_text()
    assert edrbo("amend", "-d", "speed=10:70", "--yes").code == 0
    assert [constraint.text for constraint in Study.open(folder / "line.db").space.constraints] == found
    assert edrbo("amend", "--no-constraint", "speed >= 4 * dose", "--yes").code != 0


def test_what_is_wrong_is_said(edrbo: Run, folder: Path) -> None:
    ended = edrbo("new", "line.toml", "-d", "speed=10:60", "--constraint", "sped <= 20")
    assert ended.code != 0
    assert "'sped' at character 1 is no design variable" in ended.err
    assert "did you mean 'speed'" in ended.err
    assert not (folder / "line.toml").exists()


def test_what_is_held_and_what_is_on_the_shelf(edrbo: Run, folder: Path) -> None:
    words = ["-d", "speed=10:60 m/min", "-d", "kind=plain,glossy", "--constraint", "speed <= 50", "--initial", 9]
    assert edrbo("new", "line.toml", *words).code == 0
    (held,) = edrbo("ask", "--fix", "speed=30 m/min", "--json").json
    assert held["design"]["speed"] == 30
    (folder / "shelf.csv").write_text("speed,kind,price\n20,plain,1\n30,glossy,2\n60,plain,3\n")
    ended = edrbo("ask", "--candidates", "shelf.csv", "-n", 2, "--json")
    assert sorted(s["design"]["speed"] for s in ended.json) == [20, 30]
    ended = edrbo("ask", "--candidates", "shelf.csv")
    assert ended.code != 0
    assert "all 2 candidates have been tried or are being tried" in ended.err
    for run in (0, 1, 2):
        assert edrbo("tell", run, "-v", run).code == 0
    assert edrbo("ask", "--candidates", "shelf.csv").code != 0
    assert edrbo("ask", "--candidates", "shelf.csv", "--repeat").code == 0
    found = edrbo("recommend", "--candidates", "shelf.csv", "--fix", "kind=glossy", "--json").json
    assert found["design"] == {"speed": 30, "kind": "glossy"}
    assert "is not a setting" in edrbo("ask", "--fix", "sped=3").err
    assert "with the variables that are held" in edrbo("ask", "--fix", "speed=55").err
    (folder / "empty.csv").write_text("price\n1\n")
    assert "holds no design" in edrbo("ask", "--candidates", "empty.csv").err


def test_what_runs_cost_is_kept_and_said(edrbo: Run, folder: Path) -> None:
    assert edrbo("new", "line.toml", "-d", "speed=10:60", "--cost", "5 + speed / 10").code == 0
    assert 'cost = "5 + speed / 10"' in (folder / "line.toml").read_text()
    assert edrbo("tell", "-d", "speed=20", "-v", 1).code == 0
    assert edrbo("tell", "-d", "speed=50", "--failed", "--cost", "12,5").code == 0
    (asked,) = edrbo("ask", "--json").json  # not paid yet
    assert asked["cost"] == pytest.approx(5 + asked["design"]["speed"] / 10)
    assert edrbo("show", "--json").json["pending"][0]["cost_expected"] == asked["cost"]
    shown = edrbo("show").out
    assert "cost so far 19.5; a run costs 5 + speed / 10" in shown
    assert edrbo("show", "--json").json["spent"] == 19.5
    assert edrbo("edit", 1, "--cost", "11").code == 0
    assert "failed, no result, cost 11" in edrbo("show", 1).out
    assert edrbo("export", "runs.csv").code == 0
    assert edrbo("new", "again.toml", "-d", "speed=10:60").code == 0
    assert edrbo("import", "runs.csv", "--study", "again.toml").code == 0
    record = edrbo("show", "--json", "--study", "again.toml").json
    assert (record["spent"], record["cost_unknown"]) == (11, 1)
    assert "doze" in edrbo("new", "other.toml", "-d", "speed=10:60", "--cost", "doze").err
    much = ["-d", "speed=20", "-v", 1, "--cost", "much", "--study", "line.toml"]
    assert "the cost is 'much'" in edrbo("tell", *much).err


def test_a_known_distribution_is_shown(edrbo: Run, folder: Path) -> None:
    assert (
        edrbo(
            "new", "a.toml", "-d", "speed=10:60", "-c", "humidity=0:100", "--context-distribution", "norm(55, 12)"
        ).code
        == 0
    )
    assert 'context_distribution = {humidity = {name = "norm", args = [55.0, 12.0]}}' in (folder / "a.toml").read_text()
    assert "conditions are known to follow humidity = norm(55, 12)" in edrbo("show").out
    assert edrbo("amend", "--context-distribution", "none", "--yes").code == 0
    assert "known to follow" not in edrbo("show").out
    assert "did you mean" in edrbo("amend", "--context-distribution", "norml(55, 12)", "--yes").err


def test_the_range_of_an_outcome_is_read_as_everywhere(edrbo: Run, folder: Path) -> None:
    """With a decimal comma, as on the page."""
    words = ["-d", "speed=10:60", "-c", "humidity=0:100", "--outcome-range"]
    assert edrbo("new", "a.toml", *words, "0,5:100").code == 0
    assert Study.open(folder / "a.db").settings.outcome_range == OutcomeRange(0.5, 100.0)
    refused = edrbo("new", "b.toml", *words, "wide")
    assert refused.code == 2
    assert "outcome range" in refused.err
