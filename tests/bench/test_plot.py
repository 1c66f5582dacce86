"""Figures: the numbers behind them, and that the files are drawn."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up import METHODS, PROBLEMS, made_up
from typer.testing import CliRunner

from edrbo.bench.analysis.figures import STRONG, THIN, draw_ranks, draw_regret, draw_seconds, save_figures
from edrbo.bench.analysis.method_style import DASHES, FIXED, style
from edrbo.bench.analysis.results import export
from edrbo.bench.analysis.stats import (
    WINDOW,
    best_rival,
    curve_of,
    days_text,
    final_means,
    rank,
    seeds_text,
    smoothed_regret,
    summarize,
)
from edrbo.bench.learners.adapters import ADAPTERS
from edrbo.bench.run.plugin import PAPER_METHODS, method_names
from edrbo.errors import InvalidValueError
from edrbo.lab.cli.bench import app
from edrbo.palette import BLACK, DARK, OKABE_ITO


def test_curves_are_means_up_to_the_shortest_run() -> None:
    runs = [run for run in made_up().runs if (run.problem, run.method) == ("ackley", "ucb")]
    runs[0] = replace(runs[0], regret=runs[0].regret[:15])
    curve = curve_of(runs, lambda run: run.regret)
    table = np.stack([run.regret[:15] for run in runs])
    np.testing.assert_array_equal(curve.steps, np.arange(1, 16))
    np.testing.assert_allclose(curve.mean, table.mean(axis=0))
    assert (curve.low < curve.mean).all()
    assert (curve.mean < curve.high).all()
    assert (curve.low > 0).all()


def test_the_interval_of_the_mean_is_that_of_all_resamples() -> None:
    """With four seeds all 256 resamples can be listed."""
    runs = [run for run in made_up(seeds=4).runs if (run.problem, run.method) == ("ackley", "ucb")]
    table = np.stack([run.regret for run in runs])
    means = np.array([table[list(drawn)].mean(axis=0) for drawn in itertools.product(range(4), repeat=4)])
    curve = curve_of(runs, lambda run: run.regret)
    for end, level in ((curve.low, 0.025), (curve.high, 0.975)):
        below, above = ((means < end - 1e-9).mean(axis=0), (means <= end + 1e-9).mean(axis=0))
        assert (below <= level + 0.02).all()  # 1,000 draws know a level of 0.025 to ± 0.015, three times its deviation
        assert (above >= level - 0.02).all()


def test_one_seed_has_no_interval() -> None:
    curve = curve_of([made_up().runs[0]], lambda run: run.regret)
    np.testing.assert_allclose(curve.low, curve.high)


def test_the_best_rival_is_of_our_own_runs() -> None:
    results = made_up()
    finals = final_means(results, "ackley")
    table = {
        m: np.mean([r.regret.sum() for r in results.runs if (r.problem, r.method) == ("ackley", m)]) for m in METHODS
    }
    assert finals == pytest.approx(table)
    assert best_rival(finals | {"erbo (published)": 0.0}, "edrbo") == min(
        set(METHODS) - {"edrbo"}, key=table.__getitem__
    )
    assert best_rival({"edrbo": 1.0}, "edrbo") is None


def test_seeds_and_days_are_reported() -> None:
    results = made_up(seeds=3)
    assert seeds_text(results) == "3 seeds (100–102)"
    assert seeds_text(replace(results, runs=results.runs[:1])) == "1 seed (100)"
    assert days_text(results) == ""
    headers = tuple({"started": f"2026-11-{day}T10:00:00+00:00"} for day in (17, 15, 16))
    assert days_text(replace(results, headers=headers)) == "run from 2026-11-15 to 2026-11-17"


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
    (black,) = (name for name in FIXED[:8] if style(name, FIXED)[0] == BLACK)
    assert style(black, FIXED, DARK)[0] == DARK.ink


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
    assert "6 seeds (100–105)" in figure.get_suptitle()


def test_two_lines_are_strong_and_none_is_cut() -> None:
    results = made_up()
    for axes, problem in zip(draw_regret(results).axes, PROBLEMS, strict=True):
        rival = best_rival(final_means(results, problem), "edrbo")
        widths = {method: line.get_linewidth() for method, line in zip(results.methods, axes.lines, strict=True)}
        assert max(widths, key=widths.__getitem__) == "edrbo"
        assert {method for method, width in widths.items() if width > THIN} == {"edrbo", rival}
        assert len({tuple(band.get_facecolor()[0, :3]) for band in axes.collections}) == 2  # their bands, distinct
        low, high = axes.get_ylim()
        for line in axes.lines:
            assert low < np.min(line.get_ydata())
            assert np.max(line.get_ydata()) < high


def test_another_method_can_be_in_question() -> None:
    results = made_up()
    for axes in draw_regret(results, method="ucb").axes:
        assert axes.lines[results.methods.index("ucb")].get_linewidth() == STRONG


def test_time_leaves_out_the_initial_designs() -> None:
    (axes,) = draw_seconds(made_up()).axes
    assert axes.lines[0].get_xdata()[0] == 6


def test_of_a_table_the_mean_time_is_all_there_is() -> None:
    """Drawn against the evaluations it would be flat lines, which nobody measured."""
    whole = made_up()
    runs = [replace(run, seconds=np.full_like(run.seconds, run.seconds.mean())) for run in whole.runs]
    (axes,) = draw_seconds(replace(whole, runs=tuple(runs))).axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    shown = [float(line.get_xdata()[0]) for line in axes.lines]
    assert shown == sorted(shown, reverse=True)
    means = {name: np.mean([run.seconds.mean() for run in runs if run.method == name]) for name in whole.methods}
    assert dict(zip(names, shown, strict=True)) == pytest.approx(means)


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


def test_dark_figures_have_names_of_their_own(tmp_path: Path) -> None:
    (file,) = (file for file in save_figures(made_up(seeds=2), tmp_path, ["svg"], dark=True) if "seconds" in file.name)
    assert file.name == "seconds-dark.svg"
    assert f"fill: {DARK.paper.lower()}" in file.read_text(encoding="utf-8")


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
