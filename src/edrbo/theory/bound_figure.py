"""The picture of what a bound is worth: regret as it was, as it could have been at worst, and as the theorem says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from edrbo.palette import BLUE, GRAY, GRID, VERMILION
from edrbo.theory import RegretBounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IMPOSSIBLE = "no run can get here"


def draw_bounds(panels: Mapping[str, RegretBounds]) -> Figure:
    """A panel for each title: the three curves on a log axis, with their last values written at the end."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.4 * len(panels), 4.2), layout="constrained", dpi=130)
    for axes, (title, bounds) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        _draw_panel(axes, bounds)
        axes.set_title(title, fontsize=11)
    figure.supylabel("cumulative regret", fontsize=10)
    return figure


def _draw_panel(axes: Axes, bounds: RegretBounds) -> None:
    steps = np.arange(1, len(bounds.regret) + 1)
    curves = (
        (bounds.theorem, VERMILION, "--", "theorem"),
        (bounds.trivial, GRAY, "-.", "trivial: T · range"),
        (bounds.regret, BLUE, "-", "realized"),
    )
    for values, color, dashes, label in curves:
        axes.plot(steps, values, color=color, linestyle=dashes, linewidth=1.8)
        end = (float(steps[-1]), float(values[-1]))
        axes.annotate(
            f"{label}\n{end[1]:,.0f}",
            end,
            (6, 0),
            textcoords="offset points",
            color=color,
            va="center",
            fontsize=9,
            backgroundcolor="white",
        )
    axes.fill_between(steps, bounds.trivial, bounds.theorem.max() * 3, color=GRAY, alpha=0.1, linewidth=0)
    axes.text(0.04, 0.955, IMPOSSIBLE, transform=axes.transAxes, color=GRAY, fontsize=9, va="top", style="italic")
    axes.set_yscale("log")
    axes.set_ylim(top=bounds.theorem.max() * 3)
    axes.set_xlim(0, len(steps) * 1.3)
    axes.set_xticks([tick for tick in axes.get_xticks() if tick <= len(steps)])
    axes.set_xlabel("evaluations T")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, which="major", color=GRID, linewidth=0.6)
