"""``edrbo bench problems``, ``show`` and ``portfolio``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from edrbo.bench import problems
from edrbo.bench.problems.portfolio import data as portfolio_data
from edrbo.bench.problems.portfolio import problem as portfolio_problem
from edrbo.bench.problems.portfolio.data import COLUMNS, ENVIRONMENT_VARIABLE
from edrbo.errors import InvalidValueError, UnknownNameError
from edrbo.lab.cli.bench import app


@pytest.fixture(autouse=True)
def own_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio_data, "user_data_directory", lambda: tmp_path / "user")
    monkeypatch.setattr(portfolio_problem, "user_data_directory", lambda: tmp_path / "user")
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_problems_lists_all_of_them_with_their_optimum() -> None:
    output = run("problems")
    for name in problems.names():
        assert name in output
        assert f"{problems.get(name).optimum:.8f}" in output
    assert "portfolio data: regenerated" in output


def test_show_draws_the_problem(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    output = run("show", "newsvendor", "--out", str(path))
    assert "0.46394307" in output
    assert path.exists()


def test_show_refuses_an_unknown_name() -> None:
    with pytest.raises(UnknownNameError):
        run("show", "newsagent")


def test_portfolio_takes_in_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "mine.csv"
    np.savetxt(path, rng.random((60, 6)), delimiter=",", header=",".join(COLUMNS), comments="")
    output = run("portfolio", "--import", str(path))
    assert "60 evaluations" in output
    assert "imported evaluations" in output
    assert "imported evaluations" in run("portfolio")


def test_portfolio_refuses_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError):
        run("portfolio", "--import", str(tmp_path / "nothing.csv"))
