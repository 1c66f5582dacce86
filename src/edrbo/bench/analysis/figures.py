"""Figures of results: regret curves, time per suggestion, average ranks with critical differences. One theme for all.

The method in question and the best of the others in each panel are strong and have a band, the interval of the mean;
the others are thin lines. With a band each, nothing could be told apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from edrbo.bench.analysis.method_style import style
from edrbo.bench.analysis.results import Results
from edrbo.bench.analysis.stats import (
    IN_QUESTION,
    WINDOW,
    Ranks,
    Series,
    best_rival,
    cliques,
    critical_difference,
    cumulative_regret,
    curve_of,
    days_text,
    final_means,
    in_question,
    rank,
    seeds_text,
    smoothed_regret,
    suggestion_seconds,
    summarize,
    title_of,
)
from edrbo.palette import DARK, LIGHT, Theme, notebook_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Size = tuple[float, float]  # inches
RANKS_WIDTH = 8.0  # inches


def draw_ranks(
    ranks: Ranks,
    title: str,
    alpha: float = 0.05,
    theme: Theme = LIGHT,
    origin: str = "",
    label: Callable[[str], str] = str,
    width: float = RANKS_WIDTH,
) -> Figure:
    """Critical-difference diagram: average ranks on a line; a bar joins methods that do not differ significantly.

    ``label`` says what methods are called; ``width`` is in inches, the height what the methods need.
    """
    test = critical_difference(ranks, alpha)
    order = np.argsort(ranks.mean, kind="stable")
    k, half = len(order), math.ceil(len(order) / 2)
    bars = cliques(ranks, test.difference)
    height = 1.75 + 0.25 * half + 0.15 * len(bars)
    figure = notebook_figure()(figsize=(width, height))
    axes = figure.add_axes((0.01, 0.01, 0.98, 1 - 0.75 / height))
    axes.axis("off")
    axes.set_xlim(0.2 - 0.35 * k, 0.8 + 1.35 * k)
    axes.plot([1, k], [0, 0], color=theme.ink, linewidth=1)
    for tick in range(1, k + 1):
        axes.plot([tick, tick], [0, 0.25], color=theme.ink, linewidth=1)
        axes.text(tick, 0.45, str(tick), ha="center", va="bottom", fontsize=9)
    depth = 0.7 + 0.45 * len(bars)
    for place, i in enumerate(order):
        left = place < half
        row = place if left else k - 1 - place
        y, end = -(depth + 0.75 * row), (0.7 if left else k + 0.3)
        color, _ = style(ranks.methods[i], ranks.methods, theme)
        axes.plot([ranks.mean[i], ranks.mean[i], end], [0, y, y], color=color, linewidth=1.2)
        text = f"{label(ranks.methods[i])}  {ranks.mean[i]:.2f}"
        axes.text(end + (-0.1 if left else 0.1), y, text, ha="right" if left else "left", va="center", fontsize=9)
    by_name = dict(zip(ranks.methods, ranks.mean, strict=True))
    for row, group in enumerate(bars):
        ends = [by_name[group[0]] - 0.06, by_name[group[-1]] + 0.06]
        axes.plot(ends, [-0.45 - 0.45 * row] * 2, color=theme.soft, linewidth=3.5, solid_capstyle="round")
    axes.plot([1, 1 + test.difference], [1.7, 1.7], color=theme.ink, linewidth=1.5, marker="|", markersize=7)
    axes.text(1 + test.difference / 2, 1.85, f"critical difference {test.difference:.2f}", ha="center", fontsize=9)
    figure.suptitle(
        f"{title}\naverage rank over {len(ranks.problems)} problems; "
        f"Friedman p = {test.friedman_p:.2g}, Nemenyi at {alpha:g}" + f"\n{origin}" * bool(origin),
        fontsize=9,
    )
    return figure


LINES: dict[str, tuple[float, Sequence[float]]] = {
    "": (0, ()),
    "6 3": (0, (6, 3)),
    "2 2": (0, (2, 2)),
    "1 3": (0, (1, 2)),
}
STRONG, RIVAL, THIN = 2.6, 1.9, 0.8  # widths of lines
BAND = 0.18  # opacity


def draw_regret(
    results: Results,
    of: Series = cumulative_regret,
    method: str = IN_QUESTION,
    theme: Theme = LIGHT,
    size: Size | None = None,
) -> Figure:
    """A panel a problem, a line a method: the mean over seeds; ``size`` by default as large as the panels need."""
    chosen = in_question(results, method)
    figure, panels = problem_panels(results, size)
    for axes, problem in zip(panels, results.problems, strict=True):
        _draw_panel(axes, results, problem, of, chosen, theme)
    what = "cumulative regret" if of is cumulative_regret else f"regret, mean of {WINDOW} steps"
    label_panels(panels, what if results.goal == "expected" else f"{what}, under {results.goal}")
    legend_below(figure, results, theme)
    words = f"Mean over seeds; bands: 95 % interval of the mean, of {results.label(chosen)}"
    words += " and, grey, of the best other of each panel."
    figure.suptitle(f"{words}\n{origin(results)}", fontsize=8, color=theme.soft)
    return figure


def problem_panels(results: Results, size: Size | None) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each problem."""
    columns = math.ceil(math.sqrt(len(results.problems)))
    rows = math.ceil(len(results.problems) / columns)
    figure = notebook_figure()(figsize=size or (3.6 * columns + 0.4, 2.7 * rows + 1.0), layout="constrained")
    panels: list[Axes] = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in panels[len(results.problems) :]:
        axes.remove()
    for axes, problem in zip(panels, results.problems, strict=False):
        axes.set_title(results.label(problem), fontsize=10)
    return figure, panels[: len(results.problems)]


def label_panels(panels: Sequence[Axes], what: str) -> None:
    """Words below the last panel of each column, and before the first of each row."""
    columns = math.ceil(math.sqrt(len(panels)))
    for axes in panels[max(0, len(panels) - columns) :]:
        axes.set_xlabel("evaluation", fontsize=9)
    for axes in panels[::columns]:
        axes.set_ylabel(what, fontsize=9)


def origin(results: Results) -> str:
    """Seeds, and when they were run, for whoever finds a figure alone."""
    return "; ".join(filter(None, (seeds_text(results), days_text(results))))


def _draw_panel(axes: Axes, results: Results, problem: str, of: Series, method: str, theme: Theme) -> None:
    found = {name: curve_of(list(runs.values()), of) for name in results.methods if (runs := results.of(problem, name))}
    rival = best_rival(final_means(results, problem), method)
    reach: list[float] = []
    for name, curve in found.items():
        color, dashes = style(name, results.methods, theme)
        width = STRONG if name == method else RIVAL if name == rival else THIN
        # A regret that reached zero has no place on a log axis; the line ends there.
        shown = np.where(curve.mean > 0, curve.mean, np.nan)
        axes.plot(curve.steps, shown, color=color, linestyle=LINES[dashes], linewidth=width, zorder=2 + width)
        reach += shown[np.isfinite(shown)].tolist()
        if width > THIN and (curve.high > curve.low).any():
            low = np.maximum(curve.low, np.finfo(float).tiny)
            tint = color if name == method else theme.soft  # which cannot be taken for each other
            axes.fill_between(curve.steps, low, curve.high, color=(tint, BAND), linewidth=0.0, zorder=1 + width)
            reach.append(float(curve.high.max()))
    _log_scale(axes)
    if reach:  # every line is seen from its first step to its last; bands may go below
        axes.set_ylim(0.9 * min(reach), 1.1 * max(reach))
    plain_axes(axes, theme)


def draw_seconds(results: Results, method: str = IN_QUESTION, theme: Theme = LIGHT, size: Size | None = None) -> Figure:
    """Seconds per suggestion against the number of evaluations, over all problems and seeds.

    Of a compact table the mean alone is known, and the figure shows no more.
    """
    figure = notebook_figure()(figsize=size or (7.0, 4.6), layout="constrained")
    axes = figure.subplots()
    chosen = in_question(results, method)
    if all(np.ptp(run.seconds) == 0 for run in results.runs):
        _mean_seconds(axes, results, chosen, theme)
    else:
        _seconds_by_step(axes, results, chosen, theme)
        legend_below(figure, results, theme)
    figure.suptitle(f"All problems; {origin(results)}", fontsize=8, color=theme.soft)
    return figure


def _seconds_by_step(axes: Axes, results: Results, chosen: str, theme: Theme) -> None:
    for name in results.methods:
        runs = [run for run in results.runs if run.method == name]
        curve = curve_of(runs, suggestion_seconds)
        # Quasi-random designs cost nothing and would stretch the axis.
        first = min(runs[0].initial, len(curve.steps) - 1)
        color, dashes = style(name, results.methods, theme)
        width = STRONG if name == chosen else 1.3
        axes.plot(curve.steps[first:], curve.mean[first:], color=color, linestyle=LINES[dashes], linewidth=width)
    _log_scale(axes)
    axes.set_xlabel("evaluation")
    axes.set_ylabel("seconds per suggestion, mean")
    plain_axes(axes, theme)


def _mean_seconds(axes: Axes, results: Results, chosen: str, theme: Theme) -> None:
    means = {
        name: np.mean([run.seconds.mean() for run in results.runs if run.method == name]) for name in results.methods
    }
    names = sorted(means, key=means.__getitem__, reverse=True)
    for place, name in enumerate(names):
        color, _ = style(name, results.methods, theme)
        axes.plot([means[name]], [place], "o", color=color, markersize=9 if name == chosen else 6)
    _log_scale(axes, "x")
    axes.set_yticks(range(len(names)), list(map(results.label, names)))
    axes.set_xlabel("seconds per suggestion, mean of all evaluations")
    plain_axes(axes, theme)


def save_figures(
    results: Results,
    directory: Path,
    formats: Sequence[str],
    published: Results | None = None,
    method: str = IN_QUESTION,
    dark: bool = False,
    size: Size | None = None,
) -> list[Path]:
    """Write all figures; returns the files. ``size`` in inches is kept to; of rank diagrams it is the width."""
    from matplotlib import rc_context

    theme = DARK if dark else LIGHT
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    with rc_context(_settings(theme)):
        for name, figure in _figures(results, published, method, theme, size).items():
            for kind in formats:
                files.append(directory / f"{name}{'-dark' * dark}.{kind}")
                figure.savefig(files[-1], dpi=150, bbox_inches=None if size else "tight")
    return files


def _settings(theme: Theme) -> dict[Any, str]:
    """The theme as matplotlib's settings."""
    paper = {f"{part}.facecolor": theme.paper for part in ("figure", "axes", "savefig")}
    names = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    return paper | {name: theme.ink for name in names}


def _figures(
    results: Results, published: Results | None, method: str, theme: Theme, size: Size | None
) -> dict[str, Figure]:
    shown = results if published is None else replace(results, runs=(*results.runs, *published.runs))
    figures = {
        "regret": draw_regret(shown, cumulative_regret, method, theme, size),
        "instantaneous-regret": draw_regret(shown, smoothed_regret, method, theme, size),
        "seconds": draw_seconds(shown, method, theme, size),
    }
    for name in ("final", "worst-case"):
        ranks = rank(summarize(results, name), results.problems, results.methods)
        if len(ranks.problems) > 1 and len(ranks.methods) > 2:
            more: dict[str, Any] = {"theme": theme, "origin": origin(results), "label": results.label}
            title = title_of(name, results.goal)
            figures[f"ranks-{name}"] = draw_ranks(ranks, title, **more, width=size[0] if size else RANKS_WIDTH)
    return figures


def _log_scale(axes: Axes, of: Literal["x", "y"] = "y") -> None:
    """A log axis with plain numbers at 1, 2, 5, 10, …"""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set(**{f"{of}scale": "log"})
    axis = axes.xaxis if of == "x" else axes.yaxis
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def plain_axes(axes: Axes, theme: Theme) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, which="major", color=theme.grid, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8)
    axes.margins(x=0.01)


def legend_below(figure: Figure, results: Results, theme: Theme) -> None:
    """One legend below for all panels; every method once, in the common order."""
    from matplotlib.lines import Line2D

    handles, methods = [], results.methods
    for method in methods:
        color, dashes = style(method, methods, theme)
        handles.append(Line2D([], [], color=color, linestyle=LINES[dashes], linewidth=2, label=results.label(method)))
    width = 0.7 + 0.085 * max(
        len(results.label(method)) for method in methods
    )  # inches of the longest name with its line
    most = max(1, int(figure.get_figwidth() / width))
    columns = math.ceil(len(methods) / math.ceil(len(methods) / most))
    figure.legend(
        handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=9, handlelength=2.8
    )
