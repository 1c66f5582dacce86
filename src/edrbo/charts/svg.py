"""A chart as HTML: SVG text with its title and legend, and nothing to load. All text is escaped here.

Colors are classes that the page's style gives; ``data-tip`` and ``data-run`` are for ``static/chart.js``.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from html import escape
from importlib import resources
from itertools import pairwise
from textwrap import wrap
from typing import Any

from edrbo.charts.description import (
    Axis,
    Band,
    Bars,
    Chart,
    Heat,
    Line,
    Mark,
    Points,
    Rule,
    Spans,
    number,
    one_line,
    share,
    tick_texts,
    ticks,
    typeset,
)
from edrbo.palette import GRAY, GRID, LIGHT, NAMED, shade

WIDTH, BROAD, HEIGHT = 440, 920, 264  # a broad one stands beside it for wide screens
RIGHT, TOP, BOTTOM = 14, 10, 42  # with the name of the axis on one line; each further one takes
LINE = 15
LETTER = 7.4  # width of one on a tick, as large as on a phone
ACROSS, UPWARD = 50, 32  # letters of a line of an axis' name
LINES = 3  # at most
WIDEST_TICK = 12  # letters
SCALE, GAP = 12, 58  # width of the scale of a heat map, and the room of its numbers
SHADES = 32  # of the scale


def chart_html(chart: Chart) -> str:
    """A ``figure`` with title, picture, legend and note."""
    legend = "".join(
        f"<li>{_swatch(mark)}{_escaped(mark.label)}</li>" for mark in chart.legend if not isinstance(mark, Heat)
    )
    return (
        f'<figure class="chart{" wide" if chart.wide else ""}"><figcaption>{_escaped(chart.title)}</figcaption>'
        f"{_Picture(chart, BROAD).svg('broad') if chart.wide else ''}{_Picture(chart, WIDTH).svg('narrow')}"
        + (f'<ul class="legend">{legend}</ul>' if legend else "")
        + (f'<p class="chart-note">{_escaped(chart.note)}</p>' if chart.note else "")
        + "</figure>"
    )


SHRUNK = 0.8  # of its size, in a notebook


def chart_image(chart: Chart) -> str:
    """An ``img`` for notebooks, with its legend: a picture of its own, so that no style leaks in or out."""
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}">'
        f'<style>{_style()}</style><rect width="100%" height="100%" fill="{LIGHT.paper}"/>'
        f'<g class="chart">{_Picture(chart, WIDTH).svg("narrow")}</g></svg>'
    )
    legend = " ".join(
        f'<span style="color:{NAMED[mark.color]}">■</span> {_escaped(mark.label)}'
        for mark in chart.legend
        if not isinstance(mark, Heat)
    )
    source = b64encode(picture.encode()).decode()
    return (
        f'<img alt="{_escaped(chart.title)}" width="{WIDTH * SHRUNK:.0f}" height="{HEIGHT * SHRUNK:.0f}" '
        f'src="data:image/svg+xml;base64,{source}">' + (f"<p>{legend}</p>" if legend else "")
    )


@cache
def _style() -> str:
    """The style of pages, with the colors of a light one."""
    look = {**NAMED, "rule": GRID, "soft": GRAY, "ink": LIGHT.ink, "card": LIGHT.paper, "paper": LIGHT.paper}
    text = resources.files("edrbo.charts").joinpath("static", "chart.css").read_text(encoding="utf-8")
    rules = "".join(f"--{name}:{color};" for name, color in look.items())
    return f":root{{{rules}font-family:sans-serif}}{text}"


def _escaped(text: str) -> str:
    return escape(typeset(one_line(text)))


def short(text: str, length: int) -> str:
    """``text`` on one line of at most ``length`` characters."""
    line = one_line(text)
    return line if len(line) <= length else line[: length - 1] + "…"


def lines(text: str, length: int) -> list[str]:
    """``text`` on lines of at most ``length`` characters; what does not fit on the last one is cut."""
    found = wrap(one_line(typeset(text)), length) or [""]  # the thin space keeps what it joins on one line
    return found if len(found) <= LINES else [*found[: LINES - 1], short(" ".join(found[LINES - 1 :]), length)]


def _swatch(mark: Any) -> str:
    """What a mark looks like, for the legend."""
    kind = mark.color
    if isinstance(mark, Points):
        inside = _shape(mark.shape, 11, 6, min(mark.size, 4.5), _kind(mark), "")
    elif isinstance(mark, Band) or (isinstance(mark, Bars) and mark.filled):
        inside = (
            f'<rect class="{"band" if isinstance(mark, Band) else "bar"} {kind}" x="2" y="1" width="18" height="10"/>'
        )
    elif isinstance(mark, Spans):
        inside = f'<rect class="span {kind}" x="2" y="3" width="18" height="6"/>'
    else:
        dashed = " dashed" * bool(getattr(mark, "dashed", False))
        inside = f'<line class="line {kind}{dashed}" x1="1" x2="21" y1="6" y2="6"/>'
    return f'<svg class="swatch" viewBox="0 0 22 12" width="22" height="12" aria-hidden="true">{inside}</svg>'


def _kind(mark: Points) -> str:
    return f"dot {mark.color}{' faint' * mark.faint}"


def _shape(shape: str, x: float, y: float, size: float, kind: str, more: str) -> str:
    if shape == "cross":
        reach = size * 1.1
        down, back = f"{2 * reach:.1f}", f"{-2 * reach:.1f}"
        path = f"M{x - reach:.1f} {y - reach:.1f}l{down} {down}m0 {back}l{back} {down}"
        return f'<path class="{kind} cross" d="{path}"{more}/>'
    if shape == "star":
        corners = []
        for k in range(10):
            angle, reach = math.pi * k / 5, size * (2.1 if k % 2 == 0 else 0.9)
            corners.append(f"{x + reach * math.sin(angle):.1f},{y - reach * math.cos(angle):.1f}")
        return f'<polygon class="{kind} star" points="{" ".join(corners)}"{more}/>'
    return f'<circle class="{kind}{" ring" * (shape == "ring")}" cx="{x:.1f}" cy="{y:.1f}" r="{size:g}"{more}/>'


class _Picture:
    """The SVG of one chart. Marks stand in a picture of their own, at whose edges they end."""

    def __init__(self, chart: Chart, width: int) -> None:
        self._chart, self._width = chart, width
        self._heat = next((mark for mark in chart.marks if isinstance(mark, Heat)), None)
        below, beside = lines(chart.x.name, ACROSS), lines(chart.y.name, UPWARD)
        labels = [short(text, WIDEST_TICK) for _, text in chart.y.ticks()]
        self.left = 14.0 + LINE * len(beside) + LETTER * max((len(label) for label in labels), default=1)
        self.floor = float(HEIGHT - BOTTOM - LINE * (len(below) - 1))
        self.right = width - RIGHT - (GAP + LINE if self._heat else 0.0)
        self._below, self._beside = below, beside

    # ---------------------------------------------------------------- where things stand, inside the frame

    def px(self, value: float) -> float:
        return (self.right - self.left) * self._chart.x.place(value)

    def py(self, value: float) -> float:
        """Held a little beyond the frame, since a wide interval may end far out or nowhere."""
        place = self._chart.y.place(value)
        return (self.floor - TOP) * (1 - (min(max(place, -9.0), 10.0) if place == place else -9.0))

    # ---------------------------------------------------------------- the whole

    def svg(self, kind: str) -> str:
        """The whole, as one of two of which a page shows the one that fits."""
        title = _escaped(self._chart.title)
        wide, high = self.right - self.left, self.floor - TOP
        inside = "".join(part for mark in self._chart.marks for part in self._drawn(mark))
        return (
            f'<svg class="{kind}" viewBox="0 0 {self._width} {HEIGHT}" role="img" aria-label="{title}">'
            f"{''.join(self._axes())}"
            f'<svg class="plot" x="{self.left:.1f}" y="{TOP}" width="{wide:.1f}" height="{high:.1f}" '
            f'viewBox="0 0 {wide:.1f} {high:.1f}">{inside}</svg>{"".join(self._shapes())}{self._scale()}</svg>'
        )

    def _axes(self) -> list[str]:
        parts, chart = [], self._chart
        left, right, floor = self.left, self.right, self.floor
        for value, text in _roomy(chart.y, chart.y.ticks(), (floor - TOP) / 20):
            at = TOP + self.py(value)
            parts.append(f'<line class="grid" x1="{left:.1f}" x2="{right:.1f}" y1="{at:.1f}" y2="{at:.1f}"/>')
            parts.append(_text("tick", left - 6, at + 4, "end", short(text, WIDEST_TICK)))
        found = chart.x.ticks()
        longest = max((len(short(text, WIDEST_TICK)) for _, text in found), default=1)
        for value, text in _roomy(chart.x, found, (right - left) / (LETTER * (longest + 1))):
            parts.append(_text("tick", left + self.px(value), floor + 17, "middle", short(text, WIDEST_TICK)))
        parts.append(f'<line class="axis" x1="{left:.1f}" x2="{right:.1f}" y1="{floor:.1f}" y2="{floor:.1f}"/>')
        for k, line in enumerate(self._below):
            parts.append(_text("name", left + (right - left) / 2, floor + 36 + LINE * k, "middle", line))
        for k, line in enumerate(self._beside):
            turn = f' transform="translate({14 + LINE * k} {TOP + (floor - TOP) / 2:.0f}) rotate(-90)"'
            parts.append(_text("name", 0, 0, "middle", line, turn))
        return parts

    def _scale(self) -> str:
        """What the colors of a heat map mean."""
        if self._heat is None:
            return ""
        (low, high), x = self._heat.ends, self.right + 10
        step = (self.floor - TOP) / SHADES
        parts = [
            f'<rect x="{x:.1f}" y="{self.floor - step * (k + 1):.2f}" width="{SCALE}" height="{step + 0.3:.2f}" '
            f'fill="{shade((k + 0.5) / SHADES)}"/>'
            for k in range(SHADES)
        ]
        values = ticks(low, high, 4)
        for value, text in zip(values, tick_texts(values), strict=True):
            at = self.floor - (self.floor - TOP) * Axis("", low, high).place(value)
            parts.append(_text("tick", x + SCALE + 4, at + 4, "start", short(text, 6)))
        turn = f' transform="translate({self._width - 4} {TOP + (self.floor - TOP) / 2:.0f}) rotate(-90)"'
        parts.append(_text("name", 0, 0, "middle", short(self._heat.name, UPWARD), turn))
        return "".join(parts)

    # ---------------------------------------------------------------- marks

    def _drawn(self, mark: Mark) -> list[str]:
        draw: dict[type, Callable[[Any], list[str]]] = {
            Line: self._line,
            Band: self._band,
            Points: self._points,
            Bars: self._bars,
            Spans: self._spans,
            Rule: self._rule,
            Heat: self._heat_map,
        }
        return draw[type(mark)](mark)

    def _line(self, mark: Line) -> list[str]:
        points = " ".join(f"{self.px(a):.1f},{self.py(b):.1f}" for a, b in zip(mark.x, mark.y, strict=True))
        kind = f"line {mark.color}{' dashed' * mark.dashed}{' thin' * mark.thin}"
        return [*self._columns(mark), f'<polyline class="{kind}" points="{points}"/>']

    def _columns(self, mark: Line) -> list[str]:
        """Around each point of a line the room in which its numbers are said."""
        if not mark.tips:
            return []
        places = [self.px(value) for value in mark.x]
        middles = [(a + b) / 2 for a, b in pairwise(places)]
        edges = [places[0] - 4, *middles, places[-1] + 4]
        high = self.floor - TOP
        return [
            f'<rect class="hit" x="{a:.1f}" y="0" width="{max(b - a, 0.1):.1f}" height="{high:.1f}"{_tip(tip)}/>'
            for a, b, tip in zip(edges[:-1], edges[1:], mark.tips, strict=True)
        ]

    def _band(self, mark: Band) -> list[str]:
        there = [f"{self.px(a):.1f},{self.py(b):.1f}" for a, b in zip(mark.x, mark.upper, strict=True)]
        back = [f"{self.px(a):.1f},{self.py(b):.1f}" for a, b in zip(mark.x, mark.lower, strict=True)]
        return [f'<polygon class="band {mark.color}" points="{" ".join(there + back[::-1])}"/>']

    def _points(self, mark: Points) -> list[str]:
        """Whiskers; the points themselves stand above all else, and are not cut at the frame."""
        parts = []
        for a, low, high in zip(mark.x, mark.lower, mark.upper, strict=False):
            parts.append(_stroke(f"whisker {mark.color}", (self.px(a), self.py(low), self.px(a), self.py(high))))
        for b, left, right in zip(mark.y, mark.left, mark.right, strict=False):
            ends = self.px(left), self.py(b), self.px(right), self.py(b)
            parts.append(_stroke(f"whisker thin {mark.color}", ends))
        return parts

    def _shapes(self) -> list[str]:
        """Every point that lies within the axes."""
        return [
            _shape(mark.shape, self.left + self.px(a), TOP + self.py(b), mark.size, _kind(mark), _more(mark, k))
            for mark in self._chart.marks
            if isinstance(mark, Points)
            for k, (a, b) in enumerate(zip(mark.x, mark.y, strict=True))
            if self._chart.x.holds(a) and self._chart.y.holds(b)
        ]

    def _bars(self, mark: Bars) -> list[str]:
        if not mark.filled:
            floor = self.py(max(0.0, self._chart.y.low))
            points = [f"{self.px(mark.edges[0]):.1f},{floor:.1f}"]
            for left, right, height in zip(mark.edges[:-1], mark.edges[1:], mark.heights, strict=True):
                points += [f"{self.px(left):.1f},{self.py(height):.1f}", f"{self.px(right):.1f},{self.py(height):.1f}"]
            points.append(f"{self.px(mark.edges[-1]):.1f},{floor:.1f}")
            return [f'<polyline class="line {mark.color}" points="{" ".join(points)}"/>']
        parts = []
        for k, (left, right, height) in enumerate(zip(mark.edges[:-1], mark.edges[1:], mark.heights, strict=True)):
            x, width, y = self.px(left), self.px(right) - self.px(left), self.py(height)
            parts.append(
                f'<rect class="bar {mark.color}" x="{x + 0.5:.1f}" y="{y:.1f}" width="{max(width - 1, 0.5):.1f}" '
                f'height="{max(self.py(0.0) - y, 0.0):.1f}"{_more(mark, k)}/>'
            )
        return parts

    def _spans(self, mark: Spans) -> list[str]:
        parts = []
        for k, (y, start, end) in enumerate(zip(mark.y, mark.start, mark.end, strict=True)):
            top, floor = self.py(y + 0.32), self.py(y - 0.32)
            x, width = self.px(start), max(self.px(end) - self.px(start), 3.0)
            parts.append(
                f'<rect class="span {mark.color}" x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" '
                f'height="{max(floor - top, 1.0):.1f}"{_more(mark, k)}/>'
            )
        return parts

    def _rule(self, mark: Rule) -> list[str]:
        wide, high = self.right - self.left, self.floor - TOP
        ends = (
            (self.px(mark.at), 0.0, self.px(mark.at), high)
            if mark.axis == "x"
            else (0.0, self.py(mark.at), wide, self.py(mark.at))
        )
        return [_stroke(f"line {mark.color}{' dashed' * mark.dashed}", ends)]

    def _heat_map(self, mark: Heat) -> list[str]:
        low, high = mark.ends
        across, upward = [self.px(edge) for edge in mark.x_edges], [self.py(edge) for edge in mark.y_edges]
        parts = []
        for j, row in enumerate(mark.values):
            for i, value in enumerate(row):
                if math.isfinite(value):
                    parts.append(
                        f'<rect class="cell" x="{across[i]:.1f}" y="{upward[j + 1]:.1f}" '
                        f'width="{across[i + 1] - across[i] + 0.4:.1f}" '
                        f'height="{upward[j] - upward[j + 1] + 0.4:.1f}" fill="{shade(share(value, low, high))}"'
                        f"{_tip(mark.tips[j][i] if mark.tips else number(value))}/>"
                    )
        return parts


def _roomy(axis: Axis, found: list[tuple[float, str]], room: float) -> list[tuple[float, str]]:
    """As many of the ticks as there is room for, evenly; of names all, which are cut."""
    step = max(1, math.ceil(len(found) / max(room, 1.0)))
    return found[::step]


def _text(kind: str, x: float, y: float, anchor: str, text: str, more: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{_escaped(text)}</text>'


def _stroke(kind: str, ends: tuple[float, float, float, float]) -> str:
    x1, y1, x2, y2 = ends
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _tip(text: str) -> str:
    return f' data-tip="{_escaped(text)}"'


def _more(mark: Points | Bars | Spans, k: int) -> str:
    """What the ``k``-th thing of a mark says, and which run it is."""
    runs = () if isinstance(mark, Bars) else mark.runs
    return (_tip(mark.tips[k]) if mark.tips else "") + (f' data-run="{int(runs[k])}"' if runs else "")
