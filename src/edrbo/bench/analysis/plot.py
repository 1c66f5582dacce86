"""Figures of results: regret curves, time per suggestion, critical differences. One look for all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edrbo.bench.analysis.method_style import style
from edrbo.bench.analysis.results import PUBLISHED, Results, Run
from edrbo.bench.analysis.stats import Ranks, cliques, critical_difference, rank, summarize, title_of
from edrbo.bench.problems.oracle.distributions import Array
from edrbo.palette import GRAY, GRID

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curve = Callable[[Run], Array]

WINDOW = 5  # instantaneous regrets are averaged over so many steps: single ones jump with the context
TRANSPARENT = 0.12
LINES: dict[str, tuple[float, Sequence[float]]] = {
    "": (0, ()),
    "6 3": (0, (6, 3)),
    "2 2": (0, (2, 2)),
    "1 3": (0, (1, 2)),
}


def curves(runs: Sequence[Run], of: Curve) -> tuple[Array, Array, Array]:
    """Steps 1, …, T and the mean and standard deviation over runs, T the length of the shortest."""
    series = [of(run) for run in runs]
    steps = min(map(len, series))
    table = np.stack([values[:steps] for values in series])
    spread = table.std(axis=0, ddof=1) if len(table) > 1 else np.zeros(steps)
    return np.arange(1.0, steps + 1.0), table.mean(axis=0), spread


def cumulative_regret(run: Run) -> Array:
    return np.cumsum(run.regret)


def smoothed_regret(run: Run) -> Array:
    """Mean of the last ``WINDOW`` regrets, of fewer at the beginning."""
    total = np.cumsum(run.regret)
    before = np.concatenate([np.zeros(WINDOW), total])[: len(total)]
    return np.asarray((total - before) / np.minimum(np.arange(1, len(total) + 1), WINDOW))


def suggestion_seconds(run: Run) -> Array:
    return run.seconds


def draw_regret(results: Results, of: Curve = cumulative_regret) -> Figure:
    """A panel a problem, a line a method: mean over seeds; of cumulative regrets ± one standard deviation as a band."""
    from matplotlib.figure import Figure

    columns = math.ceil(math.sqrt(len(results.problems)))
    rows = math.ceil(len(results.problems) / columns)
    figure = Figure(figsize=(3.6 * columns + 0.4, 2.7 * rows + 0.8), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, problem in zip(panels, results.problems, strict=False):
        _draw_panel(axes, results, problem, of)
    for axes in panels[len(results.problems) :]:
        axes.remove()
    for axes in panels[max(0, len(results.problems) - columns) : len(results.problems)]:
        axes.set_xlabel("evaluation", fontsize=9)
    what = "cumulative regret" if of is cumulative_regret else f"regret, mean of {WINDOW} steps"
    figure.supylabel(what if results.goal == "expected" else f"{what}, under {results.goal}", fontsize=10)
    _legend(figure, results.methods)
    return figure


def _draw_panel(axes: Axes, results: Results, problem: str, of: Curve) -> None:
    lowest = math.inf
    for method in results.methods:
        runs = list(results.of(problem, method).values())
        if not runs:
            continue
        steps, mean, spread = curves(runs, of)
        color, dashes = style(method, results.methods)
        front = 3 if method.startswith("edrbo") else 2
        # A regret that reached zero has no place on a log axis; the line ends there.
        shown = np.where(mean > 0, mean, np.nan)
        axes.plot(steps, shown, color=color, linestyle=LINES[dashes], linewidth=1.5, zorder=front)
        if of is cumulative_regret:
            if spread.any() and PUBLISHED not in method:
                low = np.maximum(mean - spread, 0.01 * mean)
                axes.fill_between(steps, low, mean + spread, color=color, alpha=TRANSPARENT, linewidth=0)
            lowest = min(lowest, float(mean[min(runs[0].initial, len(mean)) - 1]))
    _log_scale(axes)
    if 0 < lowest < math.inf:
        axes.set_ylim(bottom=0.7 * lowest)  # the initial designs are the same for all and only flatten the rest
    axes.set_title(problem, fontsize=10)
    _plain(axes)


def draw_seconds(results: Results) -> Figure:
    """Seconds per suggestion against the number of evaluations, over all problems and seeds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.6), layout="constrained")
    axes = figure.subplots()
    for method in results.methods:
        runs = [run for run in results.runs if run.method == method]
        steps, mean, _ = curves(runs, suggestion_seconds)
        # Quasi-random designs cost nothing and would stretch the axis.
        first = min(runs[0].initial, len(steps) - 1)
        color, dashes = style(method, results.methods)
        axes.plot(steps[first:], mean[first:], color=color, linestyle=LINES[dashes], linewidth=1.5, label=method)
    _log_scale(axes)
    axes.set_xlabel("evaluation")
    axes.set_ylabel("seconds per suggestion")
    _plain(axes)
    _legend(figure, results.methods)
    return figure


def draw_ranks(ranks: Ranks, title: str, alpha: float = 0.05) -> Figure:
    """Critical-difference diagram: average ranks on a line; a bar joins methods that do not differ significantly."""
    from matplotlib.figure import Figure

    test = critical_difference(ranks, alpha)
    order = np.argsort(ranks.mean, kind="stable")
    k, half = len(order), math.ceil(len(order) / 2)
    bars = cliques(ranks, test.difference)
    height = 1.5 + 0.25 * half + 0.15 * len(bars)
    figure = Figure(figsize=(8.0, height))
    axes = figure.add_axes((0.01, 0.01, 0.98, 1 - 0.5 / height))
    axes.axis("off")
    axes.set_xlim(0.2 - 0.35 * k, 0.8 + 1.35 * k)
    axes.plot([1, k], [0, 0], color="black", linewidth=1)
    for tick in range(1, k + 1):
        axes.plot([tick, tick], [0, 0.25], color="black", linewidth=1)
        axes.text(tick, 0.45, str(tick), ha="center", va="bottom", fontsize=9)
    depth = 0.7 + 0.45 * len(bars)
    for place, i in enumerate(order):
        left = place < half
        row = place if left else k - 1 - place
        y, end = -(depth + 0.75 * row), (0.7 if left else k + 0.3)
        color, _ = style(ranks.methods[i], ranks.methods)
        axes.plot([ranks.mean[i], ranks.mean[i], end], [0, y, y], color=color, linewidth=1.2)
        text = f"{ranks.methods[i]}  {ranks.mean[i]:.2f}"
        axes.text(end + (-0.1 if left else 0.1), y, text, ha="right" if left else "left", va="center", fontsize=9)
    by_name = dict(zip(ranks.methods, ranks.mean, strict=True))
    for row, group in enumerate(bars):
        ends = [by_name[group[0]] - 0.06, by_name[group[-1]] + 0.06]
        axes.plot(ends, [-0.45 - 0.45 * row] * 2, color=GRAY, linewidth=3.5, solid_capstyle="round")
    axes.plot([1, 1 + test.difference], [1.7, 1.7], color="black", linewidth=1.5, marker="|", markersize=7)
    axes.text(1 + test.difference / 2, 1.85, f"critical difference {test.difference:.2f}", ha="center", fontsize=9)
    figure.suptitle(
        f"{title}\naverage rank over {len(ranks.problems)} problems; "
        f"Friedman p = {test.friedman_p:.2g}, Nemenyi at {alpha:g}",
        fontsize=9,
    )
    return figure


def save_figures(
    results: Results, directory: Path, formats: Sequence[str], published: Results | None = None
) -> list[Path]:
    """Write all figures; returns the files."""
    shown = results if published is None else Results((*results.runs, *published.runs), goal=results.goal)
    figures: dict[str, Figure] = {
        "regret": draw_regret(shown),
        "instantaneous-regret": draw_regret(shown, smoothed_regret),
        "seconds": draw_seconds(shown),
    }
    for name in ("final", "worst-case"):
        ranks = rank(summarize(results, name), results.problems, results.methods)
        if len(ranks.problems) > 1 and len(ranks.methods) > 2:
            figures[f"ranks-{name}"] = draw_ranks(ranks, title_of(name, results.goal))
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    for name, figure in figures.items():
        for kind in formats:
            files.append(directory / f"{name}.{kind}")
            figure.savefig(files[-1], dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return files


def _log_scale(axes: Axes) -> None:
    """A log axis with plain numbers at 1, 2, 5, 10, …"""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, which="major", color=GRID, linewidth=0.6)
    axes.tick_params(labelsize=8)
    axes.margins(x=0.01)


def _legend(figure: Figure, methods: Sequence[str]) -> None:
    """One legend below for all panels; every method once, in the common order."""
    from matplotlib.lines import Line2D

    handles = []
    for method in methods:
        color, dashes = style(method, methods)
        handles.append(Line2D([], [], color=color, linestyle=LINES[dashes], linewidth=2, label=method))
    most = max(2, int(figure.get_figwidth() / 1.6))
    columns = math.ceil(len(methods) / math.ceil(len(methods) / most))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
