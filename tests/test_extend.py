"""Every piece may be one's own: each file of docs/extend in ``Optimizer``, ``Study``, the benchmark and by plugin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import edrbo
from edrbo import Method, Optimizer, Space
from edrbo.acquisition import methods
from edrbo.bench.run.plugin import Plugin, _namespace, get_problem
from edrbo.lab.cli.bench import app
from edrbo.records import goals

FOLDER = Path(__file__).parents[1] / "docs" / "extend"
FILES = sorted(FOLDER.glob("*.py"))
SPACE = Space({"x": (0, 1), "z": (0, 1)}, {"c": (0, 1)})


@pytest.fixture(autouse=True)
def registries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(goals, "_REGISTERED", dict(goals._REGISTERED))
    monkeypatch.setenv("EDRBO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(methods, "PARTS", dict(methods.PARTS))
    _namespace.cache_clear()
    yield
    _namespace.cache_clear()


def pieces(path: Path) -> tuple[list[Method], list[str]]:
    """Methods and goals that a file brings."""
    plugin = Plugin.read(path)
    return [one for one in plugin.table("METHODS").values() if isinstance(one, Method)], plugin.goals


def f(suggestion: edrbo.Suggestion, c: float) -> float:
    return float(-((suggestion["x"] - c) ** 2) - (suggestion["z"] - 0.3) ** 2)


def test_the_page_shows_them_and_each_is_short() -> None:
    page = (FOLDER.parent / "extend.md").read_text(encoding="utf-8")
    assert len(FILES) >= 6
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 25
        assert f"```python\n{text}```" in page, f"copy {path.name} into the page"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_in_an_optimizer_and_a_study(path: Path, tmp_path: Path) -> None:
    own, names = pieces(path)
    wanted = [{"method": method} for method in own] + [{"goal": name} for name in names]
    for number, choice in enumerate(wanted):
        optimizer = Optimizer(SPACE, **choice, initial=3, seed=2)  # type: ignore[arg-type]
        file = tmp_path / f"{number}.db"
        edrbo.Study.open(file, SPACE, **choice, initial=3, seed=2)  # type: ignore[arg-type]
        for c in np.random.default_rng(0).uniform(0.3, 0.7, 7):
            study = edrbo.Study.open(file)  # as another process would
            one, other = optimizer.ask(), study.ask()
            assert one.design == other.design
            optimizer.tell(one, {"c": c}, f(one, c))
            study.tell(other, {"c": c}, f(other, c))
        answer = edrbo.Study.open(file).recommend()
        assert answer.design == optimizer.recommend().design
        assert answer.interval[0] < answer.value < answer.interval[1]
        assert len({tuple(one.design.values()) for one in optimizer.ask(2)}) == 2


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_in_the_benchmark_by_plugin(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """One of them by a process of its own, which loads the file again."""
    if path.stem != "problem":
        request.getfixturevalue("in_this_process")
    plugin = Plugin.read(path)
    own = {"--methods": ",".join(plugin.table("METHODS")) or "edrbo-mean"}
    own["--problems"] = ",".join(plugin.table("PROBLEMS")) or "newsvendor"
    own["--goal"] = next(iter(plugin.goals), "expected")
    words = [word for pair in own.items() for word in pair]
    settings = ["--seeds", "0", "--evaluations", "7", "--initial", "4", "--workers", "1"]
    command = ["run", "--plugin", str(path), *words, *settings, "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    journals = sorted((tmp_path / "out").rglob("*.jsonl"))
    assert len(journals) == len(own["--methods"].split(",")) * len(own["--problems"].split(","))
    for journal in journals:
        *_, last = (json.loads(line) for line in journal.read_text().splitlines())
        assert last["simple_regret"] >= -1e-9
    monkeypatch.setattr(goals, "_REGISTERED", {})  # as another program, which does not have the file
    shown = CliRunner().invoke(app, ["table", str(tmp_path / "out")], catch_exceptions=False)
    assert shown.exit_code == 0, shown.output
    assert own["--goal"] in shown.output or own["--goal"] == "expected"
    if path.stem == "problem":
        assert "standard error" in shown.output


def test_own_problems_against_other_arithmetic() -> None:
    """The best designs of the example are the means of the first context and medians of the second."""
    plugin = Plugin.read(FOLDER / "problem.py")
    drawn, listed = get_problem("blend", plugin), get_problem("blend-days", plugin)
    nodes, weights = listed.context_distribution.quadrature()
    assert listed.x_star[0] == pytest.approx(float(weights @ nodes[:, 0]), abs=1e-4)
    assert listed.x_star[1] == pytest.approx(0.5, abs=1e-4)  # the weighted median
    means = drawn.context_distribution.quadrature()[0]
    assert drawn.x_star[0] == pytest.approx(means[:, 0].mean(), abs=1e-3)
    assert np.isclose(drawn.x_star[1], np.median(means[:, 1]), atol=5e-3)
    # what is said of the error of chance, against draws of the expectation itself
    x = np.array([0.2, 0.9])
    fresh = drawn.sample_contexts(100_000, np.random.default_rng(1))
    values = drawn.evaluate(np.broadcast_to(x, (len(fresh), 2)), fresh)
    assert float(drawn.standard_error(x)) == pytest.approx(
        values.std() / 16, rel=0.25
    )  # of a skewed error, by 256 draws
    assert abs(float(drawn.expected(x)) - values.mean()) < 4 * float(drawn.standard_error(x))
    assert float(drawn.standard_error(x, drawn.x_star)) > 0
    assert float(listed.standard_error(x)) == 0
