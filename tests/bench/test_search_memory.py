"""Best designs are searched once: announced, kept on disk, left out on demand."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from edrbo.bench.problems.oracle.distributions import Scenarios, clipped_normal, iid
from edrbo.bench.problems.oracle.goals import goal_optimum
from edrbo.bench.problems.oracle.search import remembering
from edrbo.bench.problems.problem import Problem
from edrbo.bench.run.execute import SweepEvent
from edrbo.bench.run.progress import Progress
from edrbo.bench.run.replicate import Replicate, ReplicateSettings, run_replicate
from edrbo.errors import InvalidValueError
from edrbo.records.goals import CVaR, Robust, WorstCase


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EDRBO_CACHE", str(tmp_path))
    return tmp_path


def hill(width: float = 1.0) -> Problem:
    def f(x: np.ndarray, c: np.ndarray) -> np.ndarray:
        return np.asarray(-width * (x[..., 0] - c[..., 0]) ** 2)

    return Problem("hill", "", 1, iid(clipped_normal(0.4, 0.1)), f)


def test_a_search_is_made_once_and_announced(folder: Path) -> None:
    heard: list[str] = []
    with remembering(heard.append):
        first = hill().x_star
        again = hill().x_star  # another value of the same problem, as another process would make
    assert heard == ["looking for the best design of hill (expected)"]
    assert np.array_equal(first, again)
    assert np.array_equal(first, hill().x_star)  # without memory: searched, and the same
    with remembering(heard.append):
        assert hill(2.0).x_star[0] == pytest.approx(float(first[0]), abs=1e-6)
        x, value = goal_optimum(hill(), CVaR(0.2))
        hill().robust_optimum(0.1)
    assert len(heard) == 4
    assert value <= hill().optimum
    assert len(list(folder.rglob("*.json"))) == 4
    assert len(x) == 1


@pytest.mark.parametrize("garbage", ["", "{}", "[2.0]", "[0.1, 0.2]", '["a"]', "[NaN]"])
def test_a_file_that_makes_no_sense_is_searched_again(folder: Path, garbage: str) -> None:
    heard: list[str] = []
    with remembering(heard.append):
        first = hill().x_star
        (file,) = folder.rglob("*.json")
        file.write_text(garbage)
        assert np.array_equal(hill().x_star, first)
    assert len(heard) == 2


def test_a_folder_that_cannot_be_written_costs_only_the_memory(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    blocked = folder / "file"
    blocked.write_text("")
    monkeypatch.setenv("EDRBO_CACHE", str(blocked))
    with remembering(lambda text: None):
        assert hill().x_star[0] == pytest.approx(0.4, abs=0.01)


def test_worlds_that_nobody_asks_for_are_not_searched() -> None:
    heard: list[str] = []
    some = Replicate("two-seasons", "random", 0, ReplicateSettings(3, 2, changes=False))
    with remembering(heard.append):
        result = run_replicate(some)
    assert result.robust_regret == {}
    assert result.simple_regret >= 0
    assert heard == ["looking for the best design of two-seasons (expected)"] or heard == []
    assert some.record()["settings"]["changes"] is False
    assert "changes" not in Replicate("two-seasons", "random", 0, ReplicateSettings(3, 2)).record()["settings"]


def test_progress_says_what_is_looked_for() -> None:
    text = io.StringIO()
    replicate = Replicate("two-seasons", "random", 0, ReplicateSettings(3, 2))
    with Progress([replicate], 0, 1, Console(file=text, width=200)) as progress:
        progress.update(SweepEvent("started", replicate))
        words = "looking for the best design of two-seasons (expected)"
        progress.update(SweepEvent("searching", replicate, text=words))
        assert words in text.getvalue()
        progress.update(SweepEvent("evaluated", replicate, 1, 0.5))
        assert "looking" not in progress.line()


def test_listed_contexts_have_goals_but_no_worst_cases() -> None:
    def f(x: np.ndarray, c: np.ndarray) -> np.ndarray:
        return np.asarray(-np.abs(x[..., 0] - c[..., 0]))

    problem = Problem("list", "", 1, Scenarios(np.array([[0.1], [0.5], [0.9]])), f, analytic=False)
    x, value = goal_optimum(problem, CVaR(1 / 3))
    assert (float(x[0]), value) == pytest.approx((0.5, -0.4), abs=1e-4)  # the worst third, as far from both ends
    for goal in (WorstCase(), Robust(0.1)):
        with pytest.raises(InvalidValueError):
            goal_optimum(problem, goal)
    with pytest.raises(InvalidValueError):
        Scenarios(np.array([[0.1], [1.5]]))
    with pytest.raises(InvalidValueError):
        Scenarios(np.array([[0.1], [0.5]]), np.array([1.0, -1.0]))
