"""A chart with matplotlib, on axes of its own or on given ones."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from edrbo.charts.description import Axis, Band, Bars, Chart, Heat, Line, Mark, Points, Rule, Spans, typeset
from edrbo.errors import InvalidValueError
from edrbo.palette import COLOR_MAP, GRID, NAMED, notebook_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (5.4, 3.6)  # inches of one chart
ACROSS = 3  # charts beside each other
LETTERS = 48  # a line of an axis' name
SHAPES = {"dot": "o", "ring": "o", "cross": "x", "star": "*"}


def draw_all(charts: Sequence[Chart], ax: Axes | Sequence[Axes] | None = None) -> Figure:
    """The figure of all ``charts``, a new one unless there are axes for each; one a notebook shows."""
    places = _new_axes(len(charts)) if ax is None else list(np.atleast_1d(np.asarray(ax, dtype=object)).flat)
    if len(places) != len(charts):
        hint = f"give ax=plt.subplots(1, {len(charts)})[1]" if len(charts) > 1 else "give ax one of them"
        raise InvalidValueError(f"there are {len(charts)} charts to draw, and {len(places)} axes", hint)
    for chart, place in zip(charts, places, strict=True):
        draw(chart, place)
    figure: Figure = places[0].figure
    return figure


def _new_axes(count: int) -> list[Any]:
    across = min(count, ACROSS)
    down = -(-count // across)
    size = (across * SIZE[0], down * SIZE[1])
    figure = notebook_figure()(figsize=size, layout="constrained", dpi=110)
    many = list(figure.subplots(down, across, squeeze=False).flat)
    for axes in many[count:]:
        axes.remove()
    return many[:count]


def draw(chart: Chart, axes: Any) -> None:
    """On matplotlib's ``axes``."""
    axes.set_axisbelow(True)
    axes.grid(color=GRID)
    for mark in chart.marks:
        _draw(mark, axes, chart)
    for role, axis in (("x", chart.x), ("y", chart.y)):
        _set_axis(axes, role, axis)
    axes.set_title(fill(typeset(chart.title), LETTERS), fontsize="medium")
    if chart.legend:
        axes.legend(fontsize="small", loc="best")


def _set_axis(axes: Any, role: str, axis: Axis) -> None:
    getattr(axes, f"set_{role}label")(fill(typeset(axis.name), LETTERS))
    if axis.log:
        getattr(axes, f"set_{role}scale")("log")
    getattr(axes, f"set_{role}lim")(_held(axis.low), _held(axis.high))
    if axis.labels or axis.dates or axis.whole:
        places, texts = zip(*axis.ticks(), strict=True)
        getattr(axes, f"set_{role}ticks")(places, texts)


def _held(value: float) -> float:
    """matplotlib takes differences of the ends of an axis."""
    return max(min(value, 8e307), -8e307)


def _draw(mark: Mark, axes: Any, chart: Chart) -> None:
    if isinstance(mark, Heat):
        mesh = axes.pcolormesh(mark.x_edges, mark.y_edges, np.array(mark.values), cmap=COLOR_MAP, rasterized=True)
        axes.figure.colorbar(mesh, ax=axes, label=typeset(mark.name))
        return
    color, label = NAMED[mark.color], "" if mark.color == "white" else typeset(mark.label)
    dashed = "--" if getattr(mark, "dashed", False) else "-"
    if isinstance(mark, Line):
        axes.plot(mark.x, mark.y, color=color, ls=dashed, lw=0.7 if mark.thin else 1.6, label=label)
    elif isinstance(mark, Band):
        axes.fill_between(mark.x, mark.lower, mark.upper, color=color, alpha=0.2, lw=0, label=label)
    elif isinstance(mark, Bars) and mark.filled:
        axes.stairs(mark.heights, mark.edges, fill=True, color=color, alpha=0.6, label=label)
    elif isinstance(mark, Bars):
        axes.stairs(mark.heights, mark.edges, color=color, label=label)
    elif isinstance(mark, Spans):
        wide = np.subtract(mark.end, mark.start)
        axes.barh(mark.y, wide, left=mark.start, height=0.64, color=color, edgecolor=color, label=label)
    elif isinstance(mark, Rule):
        (axes.axvline if mark.axis == "x" else axes.axhline)(mark.at, color=color, ls=dashed, lw=1.6, label=label)
    else:
        _draw_points(mark, axes, color, label)


def _draw_points(mark: Points, axes: Any, color: str, label: str) -> None:
    x, y = np.asarray(mark.x), np.asarray(mark.y)
    if len(mark.lower):
        axes.vlines(x, mark.lower, mark.upper, color=color, lw=1.4)
    if len(mark.left):
        axes.hlines(y, mark.left, mark.right, color=color, lw=0.7)
    axes.plot(
        x,
        y,
        SHAPES[mark.shape],
        color=color,
        mfc="none" if mark.shape == "ring" else color,
        ms=mark.size * (3 if mark.shape == "star" else 1.4),
        alpha=0.5 if mark.faint else 1.0,
        label=label,
        clip_on=False,
    )
