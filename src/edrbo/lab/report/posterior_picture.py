"""Pictures of what an optimizer believes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import InvalidSpaceError
from edrbo.optimizer.optimizer import Optimizer
from edrbo.palette import BLUE, COLOR_MAP, GRAY, GREEN, VERMILION
from edrbo.space import Real

Array = NDArray[np.float64]


def draw_belief(optimizer: Optimizer, path: Path | str, truth: Callable[[Array], Array] | None = None) -> None:
    """One design and one context variable: data over (x, c), the believed expected value, and the context distribution.

    ``truth`` gives the true expected value at an array of designs, where it is known.
    """
    from matplotlib.figure import Figure

    space = optimizer.space
    if space.d_x != 1 or space.d_c != 1 or not isinstance(space.context[space.context_names[0]], Real):
        raise InvalidSpaceError("this picture needs one design and one real context variable", "see `edrbo report`")
    figure = Figure(figsize=(11, 5.2), layout="constrained", dpi=110)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.15, 1), height_ratios=(2, 1))
    plane, value, context_distribution = (figure.add_subplot(cell) for cell in (grid[:, 0], grid[0, 1], grid[1, 1]))
    best = optimizer.recommend()
    _draw_plane(plane, figure, optimizer, best.design[space.design_names[0]])
    _draw_expected(value, optimizer, best, truth)
    _draw_distribution(context_distribution, optimizer)
    figure.savefig(path)


def _across(optimizer: Optimizer, count: int) -> Array:
    """Values across the range of the one design variable."""
    ends = np.linspace(0.0, 1.0, count)[:, None]
    return np.array([next(iter(row.values())) for row in optimizer.space.decode_designs(ends)], dtype=np.float64)


def _draw_plane(axes: Any, figure: Any, optimizer: Optimizer, x_best: float) -> None:
    x_name, c_name = optimizer.space.design_names[0], optimizer.space.context_names[0]
    data = optimizer.observations
    designs = [row[x_name] for row in optimizer.space.decode_designs(data.x)]
    x = _across(optimizer, 60)
    c = np.linspace(np.nanmin(data.c), np.nanmax(data.c), 60)
    rows = [{x_name: float(v)} for v in x]
    mean = np.stack([optimizer.predict(rows, context={c_name: float(level)}).expected for level in c])
    shade = axes.pcolormesh(x, c, mean, cmap=COLOR_MAP, shading="gouraud", rasterized=True)
    axes.scatter(designs, data.c[:, 0], c=data.y, cmap=COLOR_MAP, edgecolors="white", s=42, clim=shade.get_clim())
    axes.axvline(x_best, color=VERMILION, lw=2, label=f"recommended {x_name} = {x_best:.4f}")
    axes.set(xlabel=f"{x_name} (chosen)", ylabel=f"{c_name} (set by the world)")
    axes.set_title("believed f(x, c) and the observations")
    axes.legend(loc="upper right")
    figure.colorbar(shade, ax=axes, label="value")


def _draw_expected(axes: Any, optimizer: Optimizer, best: Any, truth: Callable[[Array], Array] | None) -> None:
    x_name = optimizer.space.design_names[0]
    x = _across(optimizer, 161)
    posterior = optimizer.predict([{x_name: float(v)} for v in x])
    axes.fill_between(
        x, posterior.lower, posterior.upper, color=BLUE, alpha=0.2, lw=0, label="95 % interval, true distribution"
    )
    inner = np.hypot(posterior.from_model, posterior.from_experts)
    low, high = posterior.expected - inner, posterior.expected + inner
    axes.fill_between(x, low, high, color=BLUE, alpha=0.25, lw=0, label="of it what is not known of f")
    axes.plot(x, posterior.expected, color=BLUE, lw=2, label="believed")
    if truth is not None:
        axes.plot(x, truth(x), color=GRAY, lw=1.5, ls="--", label="true")
    reach = [[best.expected - best.interval[0]], [best.interval[1] - best.expected]]
    axes.errorbar(
        [best.design[x_name]],
        [best.expected],
        yerr=reach,
        fmt="o",
        color=VERMILION,
        ms=9,
        capsize=5,
        label="recommended",
    )
    axes.set(ylabel="expected value", xlabel=x_name, title="average over contexts")
    axes.legend(loc="best", fontsize="small", ncols=2)


def _draw_distribution(axes: Any, optimizer: Optimizer) -> None:
    rows, weights = optimizer.context_log.weighted(1, optimizer.settings.context_half_life)
    axes.hist(rows[:, 0], bins=24, weights=weights / weights.sum(), color=GREEN, alpha=0.7)
    axes.plot(rows[:, 0], np.zeros(len(rows)), "|", color="black", ms=10, alpha=0.5)
    axes.set(xlabel=optimizer.space.context_names[0], ylabel="share", title="context distribution (observed)")
