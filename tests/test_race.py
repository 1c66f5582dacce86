"""The race of research/race.py: paired runs that can be stopped, and a test that may be looked at any time."""

from __future__ import annotations

import argparse
import gzip
import importlib
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def race() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "research"))
        yield importlib.import_module("race")
    for name in ("race", "goals_evidence", "arguments"):  # others have modules of such names
        sys.modules.pop(name, None)


def a_run(rule: str, problem: str, seed: int, cumulative: float, final: float = 0.0) -> dict[str, Any]:
    at = {"25": 2 * final, "50": final, "100": final}
    return {
        **{"rule": rule, "problem": problem, "seed": seed, "evaluations": 100, "code": "c"},
        **{"cumulative": cumulative, "at": at, "cpu": 1.0},
    }


def runs_of(race: ModuleType, suite: Any, factors: dict[str, float], noise_variance: float = 0.2) -> dict[Any, Any]:
    """Runs whose cumulative regrets are log-normal around a factor."""
    found = []
    for unit in suite.units:
        for problem, seed in unit:
            for rule, factor in factors.items():
                rng = np.random.default_rng([seed, sum(map(ord, problem + rule))])
                found.append(a_run(rule, problem, seed, factor * math.exp(noise_variance * rng.standard_normal())))
    return race.by_key(found, 100)  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", ["normal", "skewed", "rare", "rare on the other side"])
def test_the_sequence_holds_at_all_times(race: ModuleType, kind: str) -> None:
    """Looked at after each of 60 units, it misses the mean in at most 5 % of races (here 200, and chance)."""
    rng, missed = np.random.default_rng(1), 0
    for _ in range(200):
        if kind == "normal":
            values = np.clip(0.4 * rng.standard_normal(60), -race.LIMIT, race.LIMIT)
        elif kind == "skewed":
            values = race.LIMIT * (rng.beta(0.5, 4.5, size=60) - 0.1)
        else:  # one unit in ten ends in a local optimum
            values = np.where(rng.random(60) < 0.1, 0.9, -0.1)
        values = -values if "other" in kind else values
        intervals = [race.confidence_sequence(values[:count]) for count in range(5, 61, 5)]
        missed += any(not low <= 0 <= high for low, high in intervals)
    assert missed <= 0.05 * 200


def test_the_sequence_has_power(race: ModuleType) -> None:
    """Half as much again as the first rule, with a standard deviation of 0.3, is reported within thirty units."""
    rng, reported = np.random.default_rng(2), 0
    for _ in range(50):
        reported += race.verdict(math.log(1.5) + 0.3 * rng.standard_normal(30)) == "worse"
    assert reported >= 45


def test_the_sequence_narrows_and_nothing_seen_is_everything(race: ModuleType) -> None:
    assert race.confidence_sequence([]) == (-race.LIMIT, race.LIMIT)
    values = 0.2 * np.random.default_rng(3).standard_normal(120)
    widths = [np.diff(race.confidence_sequence(values[:count]))[0] for count in (10, 40, 120)]
    assert widths[0] > widths[1] > widths[2]
    assert race.confidence_sequence([0.0] * 400)[0] < 0 < race.confidence_sequence([0.0] * 400)[1]


def test_a_rule_ends_when_it_cannot_be_better_and_then_the_race_does(race: ModuleType) -> None:
    suite = race.suite_of("hard", 20)
    runs = runs_of(race, suite, {"first": 1.0, "bad": 3.0, "good": 0.9})
    assert race.verdict(race.unit_values(suite, runs, "bad", "first")) == "worse"
    assert race.verdict(race.unit_values(suite, runs, "good", "first")) != "worse"
    seen = {key: value for key, value in runs.items() if key[2] < race.FIRST_SEED + 10}
    wanted = list(race.still_wanted(suite, ["first", "bad", "good"], seen))
    assert {rule for rule, _, _ in wanted} == {"first", "good"}
    assert len(wanted) == 2 * 10 * 6
    assert list(race.still_wanted(suite, ["first", "bad"], seen)) == []


def test_runs_are_paired_and_in_order(race: ModuleType) -> None:
    suite = race.suite_of("hard", 2)
    wanted = list(race.still_wanted(suite, ["a", "b"], {}, [("a", race.HARD[0], race.FIRST_SEED)]))
    assert wanted[:2] == [("b", race.HARD[0], race.FIRST_SEED), ("a", race.HARD[1], race.FIRST_SEED)]
    assert len(wanted) == 2 * 2 * 6 - 1


def test_units_count_only_when_whole(race: ModuleType) -> None:
    suite = race.suite_of("hard", 3)
    runs = runs_of(race, suite, {"first": 1.0, "other": 2.0}, noise_variance=0.0)
    assert race.unit_values(suite, runs, "other", "first") == pytest.approx([math.log(2)] * 3, rel=1e-5)
    del runs["other", race.HARD[3], race.FIRST_SEED + 1]
    assert len(race.unit_values(suite, runs, "other", "first")) == 1


def test_suites_are_what_they_are_said_to_be(race: ModuleType) -> None:
    assert len(race.suite_of("hard").units) == 20
    choose, confirm, noisy = (race.suite_of(name) for name in ("choose", "confirm", "noisy"))
    sizes = [sum(map(len, suite.units)) for suite in (choose, confirm)]
    assert min(sizes) >= race.FEWEST_RUNS
    named = [{name for unit in suite.units for name, _ in unit} for suite in (choose, confirm, noisy)]
    assert not named[0] & named[1]
    assert {name.removesuffix("-noisy") for name in named[2]} <= named[0]
    assert race.suite_of("choose") == choose  # in the same order always
    assert race.suite_of("choose,confirm").units == (*choose.units, *confirm.units)
    with pytest.raises(SystemExit, match="'easy'"):
        race.suite_of("hard,easy")


def test_what_was_cut_off_is_no_run_and_goes(race: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    assert race.read(file) == []
    one, two = a_run("a", "ackley", 1, 1.0), a_run("a", "ackley", 2, 2.0)
    race.keep(file, one)
    with file.open("ab") as half:
        half.write(b'{"rule": "a", "prob')
    assert race.read(file) == [one]
    race.keep(file, two)
    assert race.read(file) == [one, two]
    kept = tmp_path / "kept.jsonl.gz"
    kept.write_bytes(gzip.compress(file.read_bytes()))
    assert race.read(kept) == [one, two]


def test_a_run_repeats_itself_and_sees_what_others_see(race: ModuleType) -> None:
    first = race.run("random", "two-seasons", 1000, 12, None)
    again = race.run("random", "two-seasons", 1000, 12, None)
    assert {**first, "cpu": 0} == {**again, "cpu": 0}
    assert set(first["at"]) == {"12"}
    assert first["cumulative"] > 0
    other = race.run("edrbo-mean", "two-seasons", 1000, 12, None)
    assert other["cpu"] > first["cpu"]


def test_shares_get_a_verdict_from_250_runs_on(race: ModuleType) -> None:
    bad, good = [0.1] * 40 + [0.0] * 220, [0.0] * 260
    assert race.shares_text(bad[:249], good[:249]) == ["16.1%"] * 4
    assert all("(p " in cell for cell in race.shares_text(bad, good))
    assert race.shares_text([0.015, *good[1:]], good) == ["0.4% (same)", "0.0%", "0.0%", "0.0%"]


def test_the_report_says_what_was_found(race: ModuleType) -> None:
    suite = race.suite_of("hard", 10)
    runs = runs_of(race, suite, {"first": 1.0, "double": 2.0}, noise_variance=0.01)
    table = race.report(suite, runs, ["first", "double"], 100)
    columns = {str(column.header): list(column.cells) for column in table.columns}
    assert columns["rule"] == ["first", "double"]
    assert columns["cumulative regret (95 % over problems)"][0] == "1.00 (1.00 … 1.00)"
    assert columns["cumulative regret (95 % over problems)"][1].startswith("2.0")
    assert columns["verdict"] == ["", "worse"]
    assert columns["runs"] == ["60", "60"]
    assert list(columns)[-4:] == ["at 25", "at 50", "at 100", "CPU s a run"]
    assert "250" in str(table.caption)


def test_a_race_is_run_and_gone_on_with(race: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "HARD", ("two-seasons", "noisy-kiln"))
    options = argparse.Namespace(
        **{"suite": "hard", "seeds": 1, "rules": "random,tpe", "plugin": None},
        **{"out": tmp_path / "race", "evaluations": 7, "workers": 1},
    )
    race.race(options)
    file = tmp_path / "race" / "runs.jsonl"
    whole = race.read(file)
    assert len(whole) == 4
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]) + lines[2][:20])  # the machine stopped
    race.race(options)
    assert [{**one, "cpu": 0} for one in race.read(file)] == [{**one, "cpu": 0} for one in whole]
