"""What a chart shows: axes with units, and marks in the colors of ``palette``; how it is drawn stands elsewhere."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal

Numbers = Sequence[float]
Color = Literal["blue", "orange", "green", "grey", "purple", "white"]
Shape = Literal["dot", "ring", "cross", "star"]
Role = Literal["x", "y"]

TICKS = 5
DAY = 86_400.0
CLOCK = (1, 5, 15, 30, 60, 180, 360, 720)  # minutes between ticks of less than a day
DAYS = (1, 2, 7, 14, 30, 60, 90, 180, 365, 730, 1825, 3650)
NARROW_SPACE = "\u202f"  # a thin space at which no line ends


# -------------------------------------------------------------------- numbers and words


def number(value: float) -> str:
    """A number for people: four figures, no noise."""
    if not math.isfinite(value):
        return "–"
    return f"{value:.4g}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e−").replace("-", "−")


def typeset(text: str) -> str:
    """``text`` with a thin space before each per cent sign: 95 %."""
    return re.sub(r"(?<=\d) %", f"{NARROW_SPACE}%", text)


def one_line(text: str) -> str:
    """``text`` without characters that are not meant to be seen."""
    return "".join(c if c.isprintable() or c == NARROW_SPACE else "�" for c in text)


def span(values: Iterable[float]) -> tuple[float, float]:
    """The range of the finite ``values``, with a margin, never empty."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    margin = 0.06 * high - 0.06 * low or 0.5 * max(abs(low), 1e-9)
    return max(low - margin, -sys.float_info.max), min(high + margin, sys.float_info.max)


def share(value: float, low: float, high: float) -> float:
    """How far ``value`` is on the way from ``low`` to ``high``, which may be the largest numbers there are."""
    return (value / 4 - low / 4) / (high / 4 - low / 4)


def ticks(low: float, high: float, count: int = TICKS) -> list[float]:
    """Round numbers from ``low`` to ``high``."""
    raw = high / count - low / count
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def tick_texts(values: Sequence[float]) -> list[str]:
    """Numbers along one axis, all with the same decimals."""
    step = min((b - a for a, b in pairwise(values)), default=0.0)
    if not 1e-4 <= step < 1e6 or max(map(abs, values)) >= 1e6:
        return [number(value) for value in values]
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{round(value, places) + 0.0:.{places}f}".replace("-", "−") for value in values]


def date_ticks(low: float, high: float, count: int = TICKS) -> list[tuple[float, str]]:
    """Times of the clock here from ``low`` to ``high`` (seconds since 1970), and how they are written."""
    apart = (high - low) / count
    start = datetime.fromtimestamp(low).replace(hour=0, minute=0, second=0, microsecond=0)
    if apart < DAYS[0] * DAY / 2:
        minutes = next(step for step in CLOCK if step * 60 >= apart or step == CLOCK[-1])
        steps, words = timedelta(minutes=minutes), "%H:%M"
    else:
        days = next((step for step in DAYS if step * DAY >= apart), math.ceil(apart / DAY))
        steps, words = timedelta(days=days), "%d %b" if days < 300 else "%b %Y"
    found = []
    while (at := start.timestamp()) <= high:
        if at >= low:
            found.append((at, start.strftime(words).lstrip("0") or "0:00"))
        start += steps
    return found or [(low, datetime.fromtimestamp(low).strftime("%d %b").lstrip("0"))]


# -------------------------------------------------------------------- what is drawn


@dataclass(frozen=True)
class Axis:
    """From ``low`` to ``high``. ``labels`` stand at 0, 1, 2, … in place of numbers; ``log``: ten times as much is as
    far everywhere; ``dates``: seconds since 1970; ``whole``: numbers that are
    counted."""

    name: str
    low: float
    high: float
    labels: tuple[str, ...] = ()
    log: bool = False
    dates: bool = False
    whole: bool = False

    @classmethod
    def of(
        cls,
        name: str,
        ends: tuple[float, float],
        labels: Sequence[str] | None = None,
        *,
        log: bool = False,
        whole: bool = False,
    ) -> Axis:
        """One with ``ends``; of choices their names, wide enough for the first and the last."""
        if labels is not None:
            return cls(name, -0.6, len(labels) - 0.4, tuple(labels))
        return cls(name, *ends, log=log, whole=whole)

    def place(self, value: float) -> float:
        """How far ``value`` is on the way from one end to the other."""
        if self.log:
            return share(math.log(value), math.log(self.low), math.log(self.high))
        return share(value, self.low, self.high)

    def holds(self, value: float) -> bool:
        """Whether ``value`` lies between the ends."""
        return math.isfinite(value) and -1e-6 <= self.place(value) <= 1.0 + 1e-6

    def ticks(self) -> list[tuple[float, str]]:
        """Where the axis is labeled, and with what."""
        if self.labels:
            return [(float(k), label) for k, label in enumerate(self.labels)]
        if self.dates:
            return date_ticks(self.low, self.high)
        if self.log:
            low, high = math.log10(self.low) - 1e-9, math.log10(self.high) + 1e-9
            values = [10.0**power for power in range(math.ceil(low), math.floor(high) + 1)]
            values = values[:: max(1, len(values) // TICKS)]
            return [(value, number(value)) for value in (values if len(values) > 1 else (self.low, self.high))]
        values = ticks(self.low, self.high)
        if self.whole:
            values = [value for value in values if abs(value - round(value)) < 1e-9]
        return list(zip(values, tick_texts(values), strict=True))


@dataclass(frozen=True)
class Line:
    """Through points. ``tips`` say what it is at each of them; ``label`` stands in the legend."""

    x: Numbers
    y: Numbers
    color: Color = "blue"
    label: str = ""
    dashed: bool = False
    thin: bool = False
    tips: Sequence[str] = ()


@dataclass(frozen=True)
class Band:
    """Between two lines."""

    x: Numbers
    lower: Numbers
    upper: Numbers
    color: Color = "blue"
    label: str = ""


@dataclass(frozen=True)
class Points:
    """Single things. ``runs`` says which run each stands for, that a tap may open; ``lower`` and ``upper`` are the ends
    of upright whiskers, ``left`` and ``right`` of level ones."""

    x: Numbers
    y: Numbers
    color: Color = "blue"
    label: str = ""
    tips: Sequence[str] = ()
    runs: Sequence[int] = ()
    shape: Shape = "dot"
    size: float = 3.2
    faint: bool = False
    lower: Numbers = ()
    upper: Numbers = ()
    left: Numbers = ()
    right: Numbers = ()


@dataclass(frozen=True)
class Bars:
    """Upright bars between ``edges`` (one more than ``heights``); without ``filled`` their outline."""

    edges: Numbers
    heights: Numbers
    color: Color = "blue"
    label: str = ""
    tips: Sequence[str] = ()
    filled: bool = True


@dataclass(frozen=True)
class Spans:
    """Level bars from ``start`` to ``end`` at the heights ``y``."""

    y: Numbers
    start: Numbers
    end: Numbers
    color: Color = "blue"
    label: str = ""
    tips: Sequence[str] = ()
    runs: Sequence[int] = ()


@dataclass(frozen=True)
class Rule:
    """A straight line right across at one value of an axis, as a limit."""

    axis: Role
    at: float
    color: Color = "orange"
    label: str = ""
    dashed: bool = True


@dataclass(frozen=True)
class Heat:
    """``values`` (rows upward, columns to the right) in the cells between the edges, NaN: left blank. ``name`` is what
    they are, ``tips`` what is said of each cell."""

    x_edges: Numbers
    y_edges: Numbers
    values: Sequence[Numbers]
    name: str
    tips: Sequence[Sequence[str]] = ()

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest value; never the same."""
        finite = [value for row in self.values for value in row if math.isfinite(value)]
        low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
        return (low, high) if high > low else span([low])


Mark = Line | Band | Points | Bars | Spans | Rule | Heat


@dataclass(frozen=True)
class Chart:
    """Marks on one pair of axes, from the back to the front; ``note`` is what else is to be said of it."""

    title: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...] = ()
    note: str = ""
    wide: bool = False  # worth the whole width of a page

    @property
    def legend(self) -> list[Mark]:
        """The marks that are explained, each kind of them once."""
        found: dict[str, Mark] = {}
        for mark in self.marks:
            if not isinstance(mark, Heat) and mark.label:
                found.setdefault(mark.label, mark)
        return list(found.values())
