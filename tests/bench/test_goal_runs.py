"""Replicates under a goal: what the methods are given, what is measured, and what tables call it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up import made_up
from typer.testing import CliRunner

from edrbo.bench import problems
from edrbo.bench.analysis.figures import draw_regret
from edrbo.bench.analysis.report import page_data
from edrbo.bench.analysis.results import export, load_results
from edrbo.bench.analysis.tables import render
from edrbo.bench.learners.learner import Setup
from edrbo.bench.problems.oracle.goals import goal_regret
from edrbo.bench.run.journal import read_journal
from edrbo.bench.run.plugin import make_learner
from edrbo.bench.run.replicate import Replicate, ReplicateSettings, run_replicate
from edrbo.errors import EdrboError, UnknownNameError
from edrbo.lab.cli.bench import app
from edrbo.records.goals import CVaR, Expected

pytestmark = pytest.mark.torch_numeric


def test_regrets_are_those_under_the_goal() -> None:
    problem, found = problems.get("newsvendor"), []
    result = run_replicate(
        Replicate("newsvendor", "random", 1, ReplicateSettings(6, goal="cvar:0.1")), (), found.append
    )
    designs = np.array([one.x for one in found])
    np.testing.assert_allclose([one.regret for one in found], goal_regret(problem, CVaR(0.1), designs), rtol=1e-12)
    assert result.simple_regret == pytest.approx(
        float(goal_regret(problem, CVaR(0.1), np.array(result.recommendation)))
    )
    assert not np.allclose([one.regret for one in found], problem.regret(designs))


def test_the_goal_is_reported_to_edrbo() -> None:
    """The same evaluations, another recommendation: a newsvendor's bad days want a smaller order."""
    recommended = []
    for goal in (Expected(), CVaR(0.1)):
        learner = make_learner("edrbo", Setup(1, 1, 0, 5, goal))
        for x, c in itertools.product((0.1, 0.3, 0.6), (0.15, 0.3, 0.5)):
            outcome = problems.get("newsvendor").evaluate(np.array([x]), np.array([c]))
            learner.observe(np.array([x]), np.array([c]), float(outcome))
        recommended.append(float(learner.recommend()[0]))
    assert recommended[1] < recommended[0] - 0.02


def test_the_mean_is_stored_as_before_there_were_goals() -> None:
    plain = Replicate("newsvendor", "edrbo", 0)
    assert "goal" not in plain.record()["settings"]
    under = replace(plain, settings=ReplicateSettings(goal="cvar:0.10"))
    assert under.record()["settings"]["goal"] == "cvar:0.1"
    assert under.settings_hash() != plain.settings_hash()
    with pytest.raises(UnknownNameError):
        ReplicateSettings(goal="luck")


@pytest.mark.usefixtures("in_this_process")
def test_the_command_runs_and_every_table_names_the_goal(tmp_path: Path) -> None:
    out = str(tmp_path / "runs")
    words = ["--problems", "newsvendor", "--methods", "random", "--seeds", "1", "--evaluations", "6"]
    done = CliRunner().invoke(app, ["run", *words, "--goal", "robust:0.1", "--out", out], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    results = load_results(tmp_path / "runs")
    assert results.goal == "robust:0.1"
    text = render(results, style="markdown", statistic="simple")
    assert "under robust:0.1 (worst mean" in text
    export(results, tmp_path / "runs.csv")
    assert load_results(tmp_path / "runs.csv").goal == "robust:0.1"

    path = tmp_path / "runs" / "replicates" / "newsvendor" / "random" / "1.jsonl"
    record = read_journal(path)
    assert record is not None
    other = path.with_name("2.jsonl")
    other.write_text(path.read_text().replace(', "goal": "robust:0.1"', ""))
    with pytest.raises(EdrboError, match="goal"):
        load_results(tmp_path / "runs")


def test_pictures_and_pages_name_the_goal() -> None:
    results = replace(made_up(seeds=2), goal="cvar:0.1")
    assert any("under cvar:0.1" in axes.get_ylabel() for axes in draw_regret(results).axes)
    statistics = page_data(results, None, "title")["statistics"]
    assert "under cvar:0.1 (mean of the worst 10 % of conditions)" in statistics["simple"]
    assert "cvar" not in statistics["shift-up"]
