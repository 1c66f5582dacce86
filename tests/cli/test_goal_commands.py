"""A goal on the command line, in TOML, in a study, its report and the Optuna sampler."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

import edrbo as package
from edrbo.lab import Study
from edrbo.lab.config import read_toml
from edrbo.lab.report import report_page

Run = Callable[..., Any]


def lever(x: float, c: float) -> float:
    return 6 * x * (c - 0.35) - 0.3 * (x - 0.5) ** 2


@pytest.fixture
def study(edrbo: Run, folder: Path) -> Study:
    made = edrbo("new", "lever.toml", "-d", "x=0:1", "-c", "c=0:1", "--goal", "cvar:0.2", "--seed", 0, "--unit", "mm")
    assert made.code == 0, made.err
    study = Study.described(read_toml(folder / "lever.toml"))
    draw = np.random.default_rng(0)
    for x in np.linspace(0, 1, 12):
        c = float(draw.uniform())
        study.tell({"x": float(x)}, {"c": c}, lever(float(x), c))
    return study


def test_a_study_keeps_and_follows_its_goal(study: Study, edrbo: Run) -> None:
    assert study.settings.goal == package.CVaR(0.2)
    found = edrbo("recommend", "--json").json
    assert found["design"]["x"] < 0.2
    assert found["title"] == "mean of the worst 20 % of conditions"
    assert found["value_interval"][0] <= found["value"] <= found["value_interval"][1]
    assert found["price"]["on average"]["mean"] > found["price"]["recommended"]["mean"] == found["expected"]
    words = edrbo("recommend").out
    assert "mean of the worst 20 % of conditions" in words
    assert "the price of robustness" in words
    other = edrbo("recommend", "--goal", "expected", "--json").json
    assert other["design"]["x"] > 0.9
    wrong = edrbo("recommend", "--goal", "median")
    assert wrong.code != 0
    assert "expected" in wrong.err


@pytest.mark.parametrize(("goal", "unit"), [("cvar:0.2", " mm"), ("reach:0.5", ""), ("hit:1", " mm²")])
def test_what_is_still_to_gain_is_in_the_unit_of_the_goal(goal: str, unit: str, study: Study, edrbo: Run) -> None:
    found = edrbo("recommend", "--goal", goal, "--json").json
    words = " ".join(edrbo("recommend", "--goal", goal).out.split())
    facts = {fact["label"]: fact["value"] for fact in found["facts"]}
    assert facts["left to gain"].endswith(unit or facts["left to gain"][-1])
    assert (" mm" in facts["left to gain"]) == bool(unit)
    for fact in found["facts"]:
        assert f"{fact['label']} {fact['value']}" in words


def test_a_bound_is_called_so_only_where_it_is_one(study: Study, edrbo: Run) -> None:
    assert "if conditions move by 20 % of their range" in edrbo("recommend", "--radius", "0.2").out
    assert "if conditions turn" not in edrbo("recommend", "--radius", "0").out
    assert edrbo("new", "alone.toml", "-d", "x=0:1", "--goal", "hit:1").code == 0
    for x, value in ((0.2, 0.5), (0.6, 1.5)):
        edrbo("tell", "--study", "alone.toml", "-d", f"x={x}", "--value", str(value))
    words = edrbo("recommend", "--study", "alone.toml").out
    assert "from 2 results" in words
    assert "if conditions turn" not in words
    assert "price of robustness" not in words


def test_the_frontier_on_the_command_line(study: Study, edrbo: Run, folder: Path) -> None:
    found = edrbo("tradeoff", "--out", "frontier.svg", "--json").json
    assert found["goal"] == "cvar:0.2"
    assert found["frontier"][0]["design"]["x"] > found["frontier"][-1]["design"]["x"]
    assert (folder / "frontier.svg").read_text().startswith("<?xml")
    words = edrbo("tradeoff", "--goal", "robust:0.3").out
    assert "from the best on average to the best under the goal" in words


def test_the_policy_on_the_command_line(study: Study, edrbo: Run, folder: Path) -> None:
    found = edrbo("policy", "--goal", "expected", "--out", "policy.csv", "--json").json
    assert found["known"] == ["c"]
    assert found["worth_interval"][0] <= found["worth"] <= found["worth_interval"][1]
    assert "Knowing c before choosing is worth" in found["facts"][0]
    lines = (folder / "policy.csv").read_text().splitlines()
    assert lines[0] == "c,x,expected,lower,upper"
    assert [float(cell) for cell in lines[1].split(",")] == pytest.approx(
        [found["rows"][0]["context"]["c"], found["rows"][0]["design"]["x"], found["rows"][0]["expected"]]
        + found["rows"][0]["interval"]
    )
    same = study.policy(goal="expected")
    assert [row.design["x"] for row in same.rows] == [row["design"]["x"] for row in found["rows"]]
    words = edrbo("policy", "--known", "c").out
    assert "Knowing c before choosing is worth" in words
    assert "the best for each" in words
    assert "name a .csv file" in edrbo("policy", "--out", "policy.docx").err
    assert "exists already" in edrbo("policy", "--out", "policy.csv").err
    assert "'d' is not a context variable" in edrbo("policy", "--known", "d").err


def test_what_matters_on_the_command_line(study: Study, edrbo: Run) -> None:
    found = edrbo("sensitivity", "--json").json
    assert list(found["variables"]) == ["x", "c"]
    assert sum(share["value"] for share in found["shares"].values()) == pytest.approx(1.0, abs=0.02)
    words = edrbo("sensitivity").out
    assert "what moves value" in words
    assert "Of the variance of results" in words
    assert "'weight' is not an outcome" in edrbo("sensitivity", "--outcome", "weight").err


def test_a_report_says_which_goal(study: Study) -> None:
    page = report_page(study)
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())
    assert "maximize value [mm]: mean of the worst 20 % of conditions" in text
    assert "mean of the worst 20 % of conditions along x" in text
    assert "best on average" in text
    assert "The average against the goal" in text


def test_the_optuna_sampler_takes_a_goal() -> None:
    sampler = package.EDRBOSampler(context={"c": (0, 1)}, goal="cvar:0.2", seed=0)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    draw = np.random.default_rng(0)

    def objective(trial: optuna.Trial) -> float:
        x, c = trial.suggest_float("x", 0, 1), float(draw.uniform())
        trial.set_user_attr("context", {"c": c})
        return lever(x, c)

    study.optimize(objective, n_trials=16)
    assert np.median([trial.params["x"] for trial in study.trials[11:]]) < 0.2
