"""Small charts as SVG text: enough for a report, and nothing to load. All text is escaped here."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from html import escape
from textwrap import wrap

WIDTH, HEIGHT = 440, 250
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 40  # with names of axes on one line; each further one takes
LINE = 14
ACROSS, UPWARD = 58, 32  # letters of such a line
LINES = 3  # at most


def number(value: float) -> str:
    """A number for people: four figures, no noise."""
    if not math.isfinite(value):
        return "–"
    return f"{value:.4g}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e−").replace("-", "−")


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from ``low`` to ``high``."""
    raw = high / count - low / count
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def span(values: Iterable[float]) -> tuple[float, float]:
    """The range of the finite ``values``, with a margin, never empty."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    margin = 0.06 * high - 0.06 * low or 0.5 * max(abs(low), 1e-9)
    return max(low - margin, -sys.float_info.max), min(high + margin, sys.float_info.max)


def share(value: float, low: float, high: float) -> float:
    """How far ``value`` is on the way from ``low`` to ``high``, which may be the largest numbers there are."""
    return (value / 4 - low / 4) / (high / 4 - low / 4)


class Chart:
    """One pair of axes. ``labels`` puts names at x = 0, 1, 2, … instead of numbers, ``y_labels`` at y; ``log`` x."""

    def __init__(
        self,
        title: str,
        x: tuple[float, float],
        y: tuple[float, float],
        x_name: str,
        y_name: str,
        *,
        labels: Sequence[str] | None = None,
        y_labels: Sequence[str] | None = None,
        log: bool = False,
    ) -> None:
        self._x, self._y, self._log = x, y, log
        self._parts: list[str] = []
        self._title = title
        below, beside = lines(x_name, ACROSS), lines(y_name, UPWARD)
        self._left, self._floor = LEFT + LINE * (len(beside) - 1), HEIGHT - BOTTOM - LINE * (len(below) - 1)
        self._axes(below, beside, labels, y_labels)

    def px(self, value: float) -> float:
        low, high = self._x
        if self._log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return self._left + (WIDTH - self._left - RIGHT) * share(value, low, high)

    def py(self, value: float) -> float:
        """Held a little beyond the axes, since a wide interval may end far out or nowhere."""
        return self._floor - (self._floor - TOP) * min(max(share(value, *self._y), -1.0), 2.0)

    def _axes(
        self,
        x_lines: Sequence[str],
        y_lines: Sequence[str],
        labels: Sequence[str] | None,
        y_labels: Sequence[str] | None,
    ) -> None:
        left, floor, right = self._left, self._floor, WIDTH - RIGHT
        for value, text in self._y_ticks(y_labels):
            at = self.py(value)
            self._parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
            self._text("tick", left - 6, at + 4, "end", text)
        for value, text in self._x_ticks(labels):
            self._text("tick", self.px(value), floor + 16, "middle", text)
        self._parts.append(f'<line class="axis" x1="{left}" x2="{right}" y1="{floor}" y2="{floor}"/>')
        for k, line in enumerate(x_lines):
            self._text("name", left + (right - left) / 2, floor + 34 + LINE * k, "middle", line)
        for k, line in enumerate(y_lines):
            turn = f' transform="translate({13 + LINE * k} {TOP + (floor - TOP) / 2:.0f}) rotate(-90)"'
            self._text("name", 0, 0, "middle", line, turn)

    def _text(self, kind: str, x: float, y: float, anchor: str, text: str, more: str = "") -> None:
        place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}'
        self._parts.append(f'<text class="{kind}" {place}>{escape(text)}</text>')

    def _y_ticks(self, labels: Sequence[str] | None) -> list[tuple[float, str]]:
        if labels is not None:
            return [(float(k), short(label, 6)) for k, label in enumerate(labels)]
        return [(value, number(value)) for value in ticks(*self._y)]

    def _x_ticks(self, labels: Sequence[str] | None) -> list[tuple[float, str]]:
        if labels is not None:
            return [(float(k), short(label, 12)) for k, label in enumerate(labels)]
        if self._log:
            powers = range(math.ceil(math.log10(self._x[0]) - 1e-9), math.floor(math.log10(self._x[1]) + 1e-9) + 1)
            values = [10.0**power for power in powers]
            if len(values) > 1:
                return [(value, number(value)) for value in values]
            return [(value, number(value)) for value in self._x]
        return [(value, number(value)) for value in ticks(*self._x)]

    def line(self, x: Sequence[float], y: Sequence[float], kind: str) -> None:
        points = " ".join(f"{self.px(a):.1f},{self.py(b):.1f}" for a, b in zip(x, y, strict=True))
        self._parts.append(f'<polyline class="line {kind}" points="{points}"/>')

    def band(self, x: Sequence[float], lower: Sequence[float], upper: Sequence[float], kind: str) -> None:
        there = [f"{self.px(a):.1f},{self.py(b):.1f}" for a, b in zip(x, upper, strict=True)]
        back = [f"{self.px(a):.1f},{self.py(b):.1f}" for a, b in zip(x, lower, strict=True)]
        self._parts.append(f'<polygon class="band {kind}" points="{" ".join(there + back[::-1])}"/>')

    def dots(self, x: Sequence[float], y: Sequence[float], tips: Sequence[str], kind: str, size: float = 3.2) -> None:
        for a, b, tip in zip(x, y, tips, strict=True):
            self._parts.append(
                f'<circle class="dot {kind}" cx="{self.px(a):.1f}" cy="{self.py(b):.1f}" r="{size}" '
                f'data-tip="{escape(one_line(tip))}"/>'
            )

    def whiskers(self, x: Sequence[float], lower: Sequence[float], upper: Sequence[float], kind: str) -> None:
        for a, low, high in zip(x, lower, upper, strict=True):
            at = f"{self.px(a):.1f}"
            self._parts.append(
                f'<line class="whisker {kind}" x1="{at}" x2="{at}" y1="{self.py(low):.1f}" y2="{self.py(high):.1f}"/>'
            )

    def bars(self, edges: Sequence[float], heights: Sequence[float], kind: str) -> None:
        for left, right, height in zip(edges[:-1], edges[1:], heights, strict=True):
            x, width = self.px(left), self.px(right) - self.px(left)
            y = self.py(height)
            self._parts.append(
                f'<rect class="bar {kind}" x="{x + 0.5:.1f}" y="{y:.1f}" width="{max(width - 1, 0.5):.1f}" '
                f'height="{max(self.py(0.0) - y, 0.0):.1f}"/>'
            )

    def mark(self, x: float, kind: str) -> None:
        at = f"{self.px(x):.1f}"
        self._parts.append(f'<line class="mark {kind}" x1="{at}" x2="{at}" y1="{TOP}" y2="{self._floor}"/>')

    def svg(self) -> str:
        title = escape(one_line(self._title))
        return (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">'
            f"<title>{title}</title>{''.join(self._parts)}</svg>"
        )


def one_line(text: str) -> str:
    """``text`` without characters that are not meant to be seen."""
    return "".join(c if c.isprintable() else "�" for c in text)


def short(text: str, length: int) -> str:
    """``text`` on one line of at most ``length`` characters."""
    line = one_line(text)
    return line if len(line) <= length else line[: length - 1] + "…"


def lines(text: str, length: int) -> list[str]:
    """``text`` on lines of at most ``length`` characters; what does not fit on the last one is cut."""
    found = wrap(one_line(text), length) or [""]
    return found if len(found) <= LINES else [*found[: LINES - 1], short(" ".join(found[LINES - 1 :]), length)]
