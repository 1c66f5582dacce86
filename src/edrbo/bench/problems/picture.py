"""Pictures of problems: f over (x, c) slices, the context distribution with its atoms, E f and x*.

One column per design variable and one row of slices per context variable; the other designs stand at x*, the
other contexts at their medians. E f along the same slices is above, the distribution of each context at the right.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edrbo.bench.problems.oracle.distributions import Array, Clipped
from edrbo.bench.problems.problem import Problem
from edrbo.palette import BLUE, COLOR_MAP, GRAY, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RESOLUTION = 161
BAND_CONTEXTS = 400
# Few enough levels to leave the palette of the file room for text and curves.
LEVELS = 64
LINE = np.linspace(0.0, 1.0, RESOLUTION)
# Curves show every ripple of E f: Ackley has 65 of them.
FINE_LINE = np.linspace(0.0, 1.0, 1001)


def slice_designs(problem: Problem, j: int, line: Array) -> Array:
    """x* with x_j running over ``line``: (len(line), d_x)."""
    designs = np.tile(problem.x_star, (len(line), 1))
    designs[:, j] = line
    return designs


def slice_values(problem: Problem, j: int, k: int) -> Array:
    """f over c_k (rows) and x_j (columns), through x* and the median contexts: RESOLUTION × RESOLUTION."""
    medians = [
        float(context_distribution.quantile(np.array(0.5)))
        for context_distribution in problem.context_distribution.components
    ]
    contexts = np.tile(medians, (RESOLUTION, 1))
    contexts[:, k] = LINE
    return problem.evaluate(slice_designs(problem, j, LINE)[:, None, :], contexts).T


def draw_problem(problem: Problem) -> Figure:
    """The picture of one problem."""
    from matplotlib.figure import Figure

    rows, columns = problem.d_c + 1, problem.d_x + 1
    figure = Figure(figsize=(2.2 * columns + 1.4, 2.2 * rows + 1.0), layout="constrained")
    grid = figure.add_gridspec(
        rows, columns, width_ratios=[1.0] * problem.d_x + [0.9], height_ratios=[0.85] + [1.0] * problem.d_c
    )
    tables = np.array([[slice_values(problem, j, k) for j in range(problem.d_x)] for k in range(problem.d_c)])
    slices: list[Axes] = []
    expectations: list[Axes] = []
    for j in range(problem.d_x):
        top = figure.add_subplot(grid[0, j], sharey=expectations[0] if expectations else None)
        _draw_expectation(top, problem, j)
        expectations.append(top)
        for k in range(problem.d_c):
            axes = figure.add_subplot(grid[k + 1, j], sharex=top)
            _draw_slice(axes, problem, tables, j, k)
            slices.append(axes)
    for k, context_distribution in enumerate(problem.context_distribution.components):
        _draw_distribution(
            figure.add_subplot(grid[k + 1, problem.d_x]), context_distribution, _label("c", k, problem.d_c)
        )
    _draw_key(figure.add_subplot(grid[0, problem.d_x]), expectations[0], slices[0])
    figure.suptitle(_title(problem), fontsize=10, linespacing=1.4)
    return figure


def save_picture(problem: Problem, path: Path) -> None:
    """Draw the problem into a PNG file with a palette of 256 colors, a third of the size of full color."""
    from PIL import Image

    stream = BytesIO()
    draw_problem(problem).savefig(stream, format="png", dpi=110)
    path.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(stream) as picture:
        small = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(path, format="png", optimize=True)


def _label(symbol: str, index: int, count: int) -> str:
    return f"${symbol}$" if count == 1 else f"${symbol}_{index + 1}$"


def _title(problem: Problem) -> str:
    size = f"$d_x$ = {problem.d_x}, $d_c$ = {problem.d_c}, max E f = {problem.optimum:.6g}".replace("-", "−")
    data = f"\ndata: {problem.data}" if problem.data else ""
    return f"{problem.name}:  {size}{data}"


def _draw_expectation(axes: Axes, problem: Problem, j: int) -> None:
    designs = slice_designs(problem, j, FINE_LINE)
    contexts = problem.sample_contexts(BAND_CONTEXTS, np.random.default_rng(0))
    outcomes = problem.evaluate(designs[:, None, :], contexts)
    low, high = np.quantile(outcomes, [0.1, 0.9], axis=1)
    axes.fill_between(FINE_LINE, low, high, color=BLUE, alpha=0.18, linewidth=0, label="f, 10–90 % of contexts")
    axes.plot(FINE_LINE, problem.expected(designs), color=BLUE, linewidth=1.8, label="E f")
    best = float(problem.x_star[j])
    axes.axvline(best, color=VERMILION, linestyle="--", linewidth=1)
    # A maximizer at the edge of the cube must not lose half of its marker.
    axes.plot([best], [problem.optimum], "o", color=VERMILION, markersize=6, clip_on=False, label="$x^*$", zorder=5)
    axes.set_title(f"{_label('x', j, problem.d_x)}* = {best:.4g}", fontsize=9, color=VERMILION)
    axes.set_xlim(0, 1)
    axes.tick_params(labelsize=8, labelbottom=False, labelleft=j == 0)
    if j == 0:
        axes.set_ylabel("E f")


def _draw_slice(axes: Axes, problem: Problem, tables: Array, j: int, k: int) -> None:
    from matplotlib import colormaps

    axes.imshow(
        tables[k, j],
        origin="lower",
        extent=(0, 1, 0, 1),
        aspect="auto",
        cmap=colormaps[COLOR_MAP].resampled(LEVELS),
        vmin=float(tables.min()),
        vmax=float(tables.max()),
        interpolation="nearest",
    )
    axes.axvline(float(problem.x_star[j]), color=VERMILION, linestyle="--", linewidth=1.2, clip_on=False)
    bottom = k == problem.d_c - 1
    if bottom:
        axes.set_xlabel(_label("x", j, problem.d_x))
    if j == 0:
        axes.set_ylabel(_label("c", k, problem.d_c))
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.tick_params(labelsize=8, labelbottom=bottom, labelleft=j == 0)


def _draw_distribution(axes: Axes, context_distribution: Clipped, label: str) -> None:
    """Density against c, with c upwards as in the slices beside it."""
    line = np.linspace(0.0, 1.0, 1001)
    density = context_distribution.density(line)
    top = float(density.max())
    axes.fill_betweenx(line, 0, density, color=GRAY, alpha=0.25, linewidth=0)
    axes.plot(density, line, color=GRAY, linewidth=1.4)
    for location, mass in zip(*context_distribution.atoms(), strict=True):
        axes.plot([0], [location], "D", color=VERMILION, markersize=6, clip_on=False, zorder=5)
        axes.annotate(
            f"P({label} = {location:g}) = {mass:.2g}",
            (1.33 * top, location),
            xytext=(0, 5 if location == 0 else -5),
            textcoords="offset points",
            ha="right",
            fontsize=7,
            va="bottom" if location == 0 else "top",
            color=VERMILION,
        )
    axes.set_ylim(0, 1)
    axes.set_xlim(0, 1.35 * top)
    axes.set_xlabel(f"density of {label}", fontsize=9)
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.tick_params(labelsize=8)


def _draw_key(corner: Axes, expectation: Axes, slice_axes: Axes) -> None:
    """Legend of the curves and color scale of the slices, in the free corner."""
    corner.axis("off")
    handles, labels = expectation.get_legend_handles_labels()
    corner.legend(handles, labels, loc="upper center", fontsize=8, frameon=False, borderaxespad=0)
    bar = corner.inset_axes((0.05, 0.3, 0.9, 0.08))
    corner.figure.colorbar(slice_axes.images[0], cax=bar, orientation="horizontal")
    bar.set_xlabel("f(x, c)", fontsize=9)
    bar.tick_params(labelsize=8)
