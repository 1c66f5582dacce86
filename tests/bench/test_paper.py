"""Figures and tables for a paper: what is shown, in which order, by which names, how large; and the paper's layout."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
from made_up import METHODS, PROBLEMS, made_up
from typer.testing import CliRunner

from edrbo.bench.analysis.figures import draw_ranks, draw_regret
from edrbo.bench.analysis.paper import draw_paper, paper_table, write_paper
from edrbo.bench.analysis.results import base_name, choose, export, load_results
from edrbo.bench.analysis.stats import rank, statistic, summarize
from edrbo.bench.analysis.tables import regret_table, render
from edrbo.errors import InvalidValueError, UnknownNameError
from edrbo.lab.cli.bench import app

NAMES = {"ucb": "GP-UCB", "ackley": "Ackley & co"}


def test_what_is_chosen_stands_in_its_order() -> None:
    found = choose(made_up(), ["hartmann", "ackley"], ["ucb", "edrbo"], NAMES)
    assert (found.problems, found.methods) == (["hartmann", "ackley"], ["ucb", "edrbo"])
    assert [found.label(name) for name in ("ucb", "edrbo", "ucb (published)")] == [
        *("GP-UCB", "edrbo", "GP-UCB (published)"),
    ]
    everything = made_up()
    assert choose(everything).runs == everything.runs
    assert choose(made_up(suffix=" (published)"), None, ["ucb"]).methods == ["ucb (published)"]
    assert base_name("tpe (mine)") == "tpe (mine)"
    for wrong in ((["akley"], None, None), (None, ["ubc"], None), (None, None, {"ubc": "UCB"})):
        with pytest.raises(UnknownNameError):
            choose(made_up(), *wrong)


def test_tables_have_the_names_and_the_order() -> None:
    found = choose(made_up(), ["hartmann", "ackley"], ["ucb", "edrbo"], NAMES)
    text = render(found, statistic="final", style="markdown", against="edrbo")
    assert "|  | GP-UCB | edrbo |" in text
    assert [line.split("|")[1].strip() for line in text.splitlines()[4:6]] == ["hartmann", "Ackley & co"]
    assert "| GP-UCB |" in text.split("paired Wilcoxon tests")[1]
    assert r"Ackley \& co" in render(found, statistic="final", style="latex")
    assert "relative to GP-UCB" in render(found, statistic="final", style="markdown", relative="ucb")


def test_figures_have_the_names_and_the_order() -> None:
    found = choose(made_up(), ["hartmann", "ackley"], ["ucb", "edrbo"], NAMES)
    figure = draw_regret(found, size=(6.0, 3.0))
    assert [axes.get_title() for axes in figure.axes] == ["hartmann", "Ackley & co"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["GP-UCB", "edrbo"]
    assert tuple(figure.get_size_inches()) == (6.0, 3.0)
    ranks = rank(summarize(made_up(), "final"), list(PROBLEMS), list(METHODS))
    texts = [
        text.get_text() for text in draw_ranks(ranks, "final", label=choose(made_up(), names=NAMES).label).axes[0].texts
    ]
    assert any(text.startswith("GP-UCB ") for text in texts)


def test_what_is_stored_has_a_size_fonts_that_journals_take_and_no_date(tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    export(made_up(seeds=2), table)
    words = ["plot", str(table), "--out", str(tmp_path / "figures"), "--format", "pdf,svg", "--size", "6x4.5"]
    words += ["--methods", "ucb,edrbo", "--problems", "ackley,hartmann", "--name", "ucb=GP-UCB"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = {file.name: file.read_bytes() for file in (tmp_path / "figures").iterdir()}
    assert re.search(rb"/MediaBox \[ 0 0 432 324 \]", found["regret.pdf"])
    assert b"/CIDFontType2" in found["regret.pdf"]  # TrueType
    assert not any(b"/Type3" in content or b"CreationDate" in content for content in found.values())
    assert b"drawn on" not in found["regret.svg"]
    assert b"<dc:date>" not in found["regret.svg"]
    chosen = choose(made_up(seeds=2), ["ackley"], ["ucb", "edrbo"])
    for name in ("one.pdf", "two.pdf", "one.svg", "two.svg"):
        draw_regret(chosen).savefig(tmp_path / name)
    for kind in ("pdf", "svg"):  # the same runs, the same file
        assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"two.{kind}").read_bytes()


@pytest.mark.parametrize("wrong", [["--size", "large"], ["--size", "0x3"], ["--name", "ucb"], ["--methods", "ubc"]])
def test_what_is_misspelled_is_said(tmp_path: Path, wrong: list[str]) -> None:
    export(made_up(seeds=2), tmp_path / "runs.csv")
    with pytest.raises((InvalidValueError, UnknownNameError)):
        CliRunner().invoke(app, ["plot", str(tmp_path / "runs.csv"), *wrong], catch_exceptions=False)


# -------------------------------------------------------------------- the layout of the paper


def rows_of(latex: str) -> dict[str, list[str]]:
    """Cells by method, the blocks side by side."""
    found: dict[str, list[str]] = {}
    for line in latex.splitlines():
        if " & " in line:
            name, *cells = (part.strip() for part in line.removesuffix(r"\\").split(" & "))
            found.setdefault(name, []).extend(cells)
    return found


@pytest.mark.parametrize("name", ["final", "mean"])
def test_the_table_has_methods_in_rows_and_the_best_of_each_column_in_bold(name: str) -> None:
    results = made_up()
    rows = rows_of(paper_table(results, name))
    assert rows["Method"] == [*PROBLEMS, "Average rank"]
    for j, problem in enumerate(PROBLEMS):
        values = {m: [statistic(run, name) for run in results.of(problem, m).values()] for m in METHODS}
        order = sorted(METHODS, key=lambda method: float(np.mean(values[method])))
        for method in METHODS:
            mean, spread = rows[method][j].split(r" $\pm$ ")
            digits = float(re.sub(r"\\\w+\{|\}", "", mean))
            assert digits == pytest.approx(np.mean(values[method]), rel=5e-3)
            assert float(spread) == pytest.approx(np.std(values[method], ddof=1), rel=0.05)
            assert mean.startswith(r"\textbf{") == (method == order[0])
            assert mean.startswith(r"\underline{") == (method == order[1])
    assert rows["edrbo"][-1].startswith(r"\textbf{")


def test_more_than_five_columns_stand_below_each_other() -> None:
    many = made_up()
    runs = [run for run in many.runs if run.problem == "ackley"]
    wide = [type(run)(f"p{k}", run.method, run.seed, run.regret, run.seconds, {}) for k in range(6) for run in runs]
    text = paper_table(type(many)(tuple(wide)), "final")
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 2
    assert len(rows_of(text)["ucb"]) == 7


def test_the_figure_shows_mean_and_standard_deviation() -> None:
    results = made_up()
    figure = draw_paper(results)
    axes = figure.axes[PROBLEMS.index("ackley")]
    for j, method in enumerate(METHODS):
        table = np.stack([np.cumsum(run.regret) for run in results.of("ackley", method).values()])
        np.testing.assert_allclose(axes.lines[j].get_ydata(), table.mean(axis=0))
        band = axes.collections[j].get_paths()[0].vertices
        top = table.mean(axis=0) + table.std(axis=0, ddof=1)
        assert np.isclose(np.asarray(band)[:, 1].max(), top.max())
        assert axes.get_ylim()[1] > top.max()
    assert draw_paper(made_up(seeds=1)).axes  # one seed has no spread


def test_the_command_writes_figure_and_tables_by_the_names_of_the_paper(tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    export(made_up(seeds=2), table)
    words = ["paper", str(table), "--out", str(tmp_path / "paper"), "--name", "edrbo=EDRBO (ours)", "--size", "5x4"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert {file.name for file in (tmp_path / "paper").iterdir()} == {"regret.pdf", "table-final.tex", "table-mean.tex"}
    assert b"/MediaBox [ 0 0 360 288 ]" in (tmp_path / "paper" / "regret.pdf").read_bytes()
    text = (tmp_path / "paper" / "table-mean.tex").read_text()
    assert list(rows_of(text)) == ["Method", "EDRBO (ours)", "UCB", "ERBO", "StableOpt"]  # in the paper's order
    assert rows_of(text)["Method"][:3] == ["Ackley", "Hartmann", "Newsvendor"]
    kept = choose(made_up(seeds=2), None, ["stableopt", "ucb"])
    (tex, _) = write_paper(kept, tmp_path, formats=(), keep_order=True)
    assert list(rows_of(tex.read_text())) == ["Method", "StableOpt", "UCB"]


# -------------------------------------------------------------------- the published runs


def test_the_published_numbers_are_those_of_the_file() -> None:
    """Of the file that cannot be shipped, where it is there; the averages of ranks follow from the page alone."""
    pages = [Path(__file__).parents[2] / folder / "published.md" for folder in ("docs", "research")]
    sections = [section for page in pages for section in page.read_text(encoding="utf-8").split("\n## ")[1:]]
    for section in sections:
        rows = [
            [cell.strip(" *") for cell in line.strip("|").split("|")] for line in section.splitlines() if "±" in line
        ]
        means = np.array([[float(cell.replace("<u>", "").split(" ±")[0]) for cell in row[1:]] for row in rows])
        assert means.shape == (10, 9)
        np.testing.assert_allclose(means[:9].argsort(axis=1).argsort(axis=1).mean(axis=0) + 1, means[9], atol=0.005)
    if file := os.environ.get("EDRBO_PUBLISHED_RUNS"):
        for name, section in zip(("final", "mean"), sections, strict=True):
            table = regret_table(load_results(Path(file)), name)
            assert table is not None
            assert [line for line in table.to_markdown().splitlines() if "±" in line and line not in section] == []
