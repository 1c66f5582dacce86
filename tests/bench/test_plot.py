"""Figures: the numbers behind them, and that the files are drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up import METHODS, PROBLEMS, made_up
from typer.testing import CliRunner

from edrbo.bench.analysis.method_style import DASHES, FIXED, style
from edrbo.bench.analysis.plot import (
    WINDOW,
    curves,
    draw_ranks,
    draw_regret,
    draw_seconds,
    save_figures,
    smoothed_regret,
)
from edrbo.bench.analysis.results import export
from edrbo.bench.analysis.stats import rank, summarize
from edrbo.bench.learners.adapters import ADAPTERS
from edrbo.bench.run.plugin import PAPER_METHODS, method_names
from edrbo.cli.bench import app
from edrbo.errors import InvalidValueError
from edrbo.palette import OKABE_ITO


def test_curves_are_mean_and_deviation_up_to_the_shortest_run() -> None:
    runs = [run for run in made_up().runs if (run.problem, run.method) == ("ackley", "ucb")]
    runs[0] = replace(runs[0], regret=runs[0].regret[:15])
    steps, mean, spread = curves(runs, lambda run: run.regret)
    table = np.stack([run.regret[:15] for run in runs])
    np.testing.assert_array_equal(steps, np.arange(1, 16))
    np.testing.assert_allclose(mean, table.mean(axis=0))
    np.testing.assert_allclose(spread, table.std(axis=0, ddof=1))


def test_smoothed_regret_is_a_moving_mean() -> None:
    run = made_up().runs[0]
    expected = [run.regret[max(0, t + 1 - WINDOW) : t + 1].mean() for t in range(len(run.regret))]
    np.testing.assert_allclose(smoothed_regret(run), expected)


def test_every_method_has_its_own_look_and_keeps_it() -> None:
    assert {*PAPER_METHODS, *ADAPTERS} <= set(FIXED) <= set(method_names())
    looks = {style(name, FIXED) for name in FIXED}
    assert len(looks) == len(FIXED)
    assert style("edrbo", ["edrbo"]) == style("edrbo", [*FIXED, "mine"])
    color, dashes = style("edrbo (published)", FIXED)
    assert color == style("edrbo", FIXED)[0]
    assert dashes not in DASHES
    assert style("mine", ["mine", "yours"]) != style("yours", ["mine", "yours"])
    assert {style(name, FIXED)[0] for name in FIXED} <= set(OKABE_ITO)


def test_regret_figure_has_a_panel_a_problem_and_a_line_a_method() -> None:
    results = made_up()
    figure = draw_regret(results)
    assert [axes.get_title() for axes in figure.axes] == list(PROBLEMS)
    for axes in figure.axes:
        assert axes.get_yscale() == "log"
        assert len(axes.lines) == len(METHODS)
    line = figure.axes[1].lines[0]
    runs = list(results.of("ackley", "edrbo").values())
    np.testing.assert_allclose(line.get_ydata(), np.mean([np.cumsum(run.regret) for run in runs], axis=0))
    assert line.get_color() == style("edrbo", results.methods)[0]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == results.methods


def test_time_leaves_out_the_initial_designs() -> None:
    (axes,) = draw_seconds(made_up()).axes
    assert axes.lines[0].get_xdata()[0] == 6


def test_rank_diagram_names_every_method_with_its_rank() -> None:
    results = made_up()
    ranks = rank(summarize(results, "final"), results.problems, results.methods)
    texts = [text.get_text() for text in draw_ranks(ranks, "final").axes[0].texts]
    for method, mean in zip(ranks.methods, ranks.mean, strict=True):
        assert f"{method}  {mean:.2f}" in texts
    assert any(text.startswith("critical difference") for text in texts)


def test_all_figures_are_written(tmp_path: Path) -> None:
    files = save_figures(made_up(seeds=2), tmp_path, ["png", "svg"], made_up(suffix=" (published)"))
    names = ("regret", "instantaneous-regret", "seconds", "ranks-final", "ranks-worst-case")
    assert {file.name for file in files} == {f"{name}.{kind}" for name in names for kind in ("png", "svg")}
    assert all(file.stat().st_size > 5_000 for file in files)


def test_zero_regret_and_one_seed_can_be_drawn(tmp_path: Path) -> None:
    results = made_up(seeds=1)
    flat = tuple(replace(run, regret=0 * run.regret) if run.method == "ucb" else run for run in results.runs)
    assert save_figures(replace(results, runs=flat), tmp_path, ["png"])


def test_plot_command_writes_next_to_a_table_of_runs(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    export(made_up(seeds=2), file)
    arguments = ["plot", str(file), "--out", str(tmp_path / "figures"), "--format", "svg"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert (tmp_path / "figures" / "regret.svg").exists()
    with pytest.raises(InvalidValueError, match="gif"):
        CliRunner().invoke(app, ["plot", str(file), "--format", "gif"], catch_exceptions=False)
