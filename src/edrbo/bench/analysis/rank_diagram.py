"""Critical-difference diagram of average ranks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from edrbo.bench.analysis.method_style import style
from edrbo.bench.analysis.stats import Ranks, cliques, critical_difference
from edrbo.palette import LIGHT, Look

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_ranks(ranks: Ranks, title: str, alpha: float = 0.05, look: Look = LIGHT, origin: str = "") -> Figure:
    """Critical-difference diagram: average ranks on a line; a bar joins methods that do not differ significantly."""
    from matplotlib.figure import Figure

    test = critical_difference(ranks, alpha)
    order = np.argsort(ranks.mean, kind="stable")
    k, half = len(order), math.ceil(len(order) / 2)
    bars = cliques(ranks, test.difference)
    height = 1.75 + 0.25 * half + 0.15 * len(bars)
    figure = Figure(figsize=(8.0, height))
    axes = figure.add_axes((0.01, 0.01, 0.98, 1 - 0.75 / height))
    axes.axis("off")
    axes.set_xlim(0.2 - 0.35 * k, 0.8 + 1.35 * k)
    axes.plot([1, k], [0, 0], color=look.ink, linewidth=1)
    for tick in range(1, k + 1):
        axes.plot([tick, tick], [0, 0.25], color=look.ink, linewidth=1)
        axes.text(tick, 0.45, str(tick), ha="center", va="bottom", fontsize=9)
    depth = 0.7 + 0.45 * len(bars)
    for place, i in enumerate(order):
        left = place < half
        row = place if left else k - 1 - place
        y, end = -(depth + 0.75 * row), (0.7 if left else k + 0.3)
        color, _ = style(ranks.methods[i], ranks.methods, look)
        axes.plot([ranks.mean[i], ranks.mean[i], end], [0, y, y], color=color, linewidth=1.2)
        text = f"{ranks.methods[i]}  {ranks.mean[i]:.2f}"
        axes.text(end + (-0.1 if left else 0.1), y, text, ha="right" if left else "left", va="center", fontsize=9)
    by_name = dict(zip(ranks.methods, ranks.mean, strict=True))
    for row, group in enumerate(bars):
        ends = [by_name[group[0]] - 0.06, by_name[group[-1]] + 0.06]
        axes.plot(ends, [-0.45 - 0.45 * row] * 2, color=look.soft, linewidth=3.5, solid_capstyle="round")
    axes.plot([1, 1 + test.difference], [1.7, 1.7], color=look.ink, linewidth=1.5, marker="|", markersize=7)
    axes.text(1 + test.difference / 2, 1.85, f"critical difference {test.difference:.2f}", ha="center", fontsize=9)
    figure.suptitle(
        f"{title}\naverage rank over {len(ranks.problems)} problems; "
        f"Friedman p = {test.friedman_p:.2g}, Nemenyi at {alpha:g}" + f"\n{origin}" * bool(origin),
        fontsize=9,
    )
    return figure
