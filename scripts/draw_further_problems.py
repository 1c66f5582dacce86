"""Draw docs/pictures/further-problems.png: E f and one slice of f for each of the further problems.

python scripts/draw_further_problems.py [FILE]
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from edrbo.bench import problems
from edrbo.bench.problems.picture import FINE_LINE, LEVELS, slice_designs, slice_values
from edrbo.bench.problems.problem import Problem
from edrbo.palette import BLUE, COLOR_MAP, VERMILION

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "further-problems.png"
COLUMNS = 4
CONTEXTS = 400
# What is drawn where the first design or context is not the most telling one.
DESIGN = {"coating": 3, "wing": 1, "beacons": 1}
CONTEXT = {"beacons": 1}


def draw_all() -> Figure:
    """Two rows of pictures, each a curve above a slice."""
    names = problems.further_names()
    rows = -(-len(names) // COLUMNS)
    figure = Figure(figsize=(2.6 * COLUMNS, 4.4 * rows), layout="constrained")
    parts = figure.subfigures(rows, COLUMNS, squeeze=False, hspace=0.04)
    for name, part in zip(names, parts.ravel(), strict=False):
        problem = problems.get(name)
        j, k = DESIGN.get(name, 0), CONTEXT.get(name, 0)
        noise_variance = ", noisy" if problem.noise_sd else ""
        part.suptitle(f"{name}\n$d_x$ = {problem.d_x}, $d_c$ = {problem.d_c}{noise_variance}", fontsize=10)
        top, bottom = part.subplots(2, 1, sharex=True, height_ratios=[0.8, 1.0])
        draw_expectation(top, problem, j)
        draw_slice(bottom, problem, j, k)
    above, below = (axes.get_legend_handles_labels() for axes in parts[0, 0].axes)
    figure.legend(
        *(of_curve + of_slice for of_curve, of_slice in zip(above, below, strict=True)),
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=9,
    )
    return figure


def draw_expectation(axes: Axes, problem: Problem, j: int) -> None:
    designs = slice_designs(problem, j, FINE_LINE)
    contexts = problem.sample_contexts(CONTEXTS, np.random.default_rng(0))
    low, high = np.quantile(problem.evaluate(designs[:, None, :], contexts), [0.1, 0.9], axis=1)
    axes.fill_between(FINE_LINE, low, high, color=BLUE, alpha=0.18, linewidth=0, label="f, 10–90 % of contexts")
    axes.plot(FINE_LINE, problem.expected(designs), color=BLUE, linewidth=1.8, label="E f")
    best = float(problem.x_star[j])
    axes.axvline(best, color=VERMILION, linestyle="--", linewidth=1)
    axes.plot([best], [problem.optimum], "o", color=VERMILION, markersize=5, zorder=5, label="$x^*$")
    axes.tick_params(labelsize=8)
    axes.margins(x=0)


def draw_slice(axes: Axes, problem: Problem, j: int, k: int) -> None:
    values = slice_values(problem, j, k)
    levels = np.linspace(values.min(), values.max(), LEVELS)
    steps = levels[np.searchsorted(levels, values, side="right") - 1]
    axes.imshow(steps, origin="lower", extent=(0, 1, 0, 1), aspect="auto", cmap=COLOR_MAP)
    axes.axvline(float(problem.x_star[j]), color=VERMILION, linestyle="--", linewidth=1)
    low, high = problem.context_distribution.components[k].quantile(np.array([0.05, 0.95]))
    bar = {"color": VERMILION, "linewidth": 3.5, "solid_capstyle": "butt", "clip_on": False}
    axes.plot([1.035, 1.035], [low, high], **bar, label="middle 90 % of contexts")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel(f"$x_{j + 1}$" if problem.d_x > 1 else "$x$", labelpad=1)
    axes.set_ylabel(f"$c_{k + 1}$" if problem.d_c > 1 else "$c$", labelpad=3)
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.tick_params(labelsize=8)


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    stream = BytesIO()
    draw_all().savefig(stream, format="png", dpi=100)
    with Image.open(stream) as picture:
        picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, format="png", optimize=True)


if __name__ == "__main__":
    main()
