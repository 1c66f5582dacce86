"""The predictive distribution of an outcome when its design was suggested, stored with the suggestion.

    value, low, high    mean and 95 % interval of the outcome over the contexts that were to be expected
    axes                per context variable its name and a few points in the user's units, ascending
    table               [value, low, high] at every combination of the points, the last variable running fastest

``tell`` compares with it without a model, and the prediction can be judged later. Between points it is linear in
every variable, beyond the ends it stays as it is there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.records.validation import read_floats

Array = NDArray[np.float64]

MAX_MAGNITUDE = 1e150  # numbers whose squares can be summed
LARGEST_TABLE = 128  # rows that are believed
DIGITS = 2  # after the first one of an interval's width


@dataclass(frozen=True)
class Interval:
    """A mean and the ends of a 95 % interval, in the user's units; low ≤ high."""

    value: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """The longer of its two sides."""
        return max(self.high - self.value, self.value - self.low)


@dataclass(frozen=True, eq=False)
class OutcomeForecast:
    """``table`` has one dimension for each of ``axes`` and a last one of three numbers; both empty without contexts."""

    overall: Interval
    axes: tuple[tuple[str, Array], ...] = ()
    table: Array | None = None

    def at(self, context: Mapping[str, float] | None) -> Interval:
        """In ``context``, by name; over all contexts if it is not known or a variable of the table is not in it."""
        if context is None or self.table is None or any(name not in context for name, _ in self.axes):
            return self.overall
        table = self.table
        for name, points in self.axes:
            table = _along(points, table, float(context[name]))
        return Interval(*(float(number) for number in table))

    def values(self, contexts: Array) -> Array:
        """The values of the table (n) in ``contexts`` (n × its axes, in their order)."""
        assert self.table is not None
        each, table = np.arange(len(contexts)), self.table[..., 0]
        table = np.broadcast_to(table, (len(contexts), *table.shape))
        for (_, points), places in zip(self.axes, contexts.T, strict=True):
            place = np.clip(places, points[0], points[-1])
            upper = np.searchsorted(points, place)
            lower = np.maximum(upper - 1, 0)
            gap = points[upper] - points[lower]
            share = (place - points[lower]) / np.where(gap > 0, gap, 1.0)
            share = share.reshape(-1, *[1] * (table.ndim - 2))
            table = (1.0 - share) * table[each, lower] + share * table[each, upper]
        found: Array = table
        return found

    def reach(self) -> Interval:
        """From the lowest to the highest of what is expected in any context."""
        if self.table is None:
            return self.overall
        low, high = float(self.table[..., 1].min()), float(self.table[..., 2].max())
        return Interval(self.overall.value, min(low, self.overall.low), max(high, self.overall.high))

    def to_dict(self) -> dict[str, Any]:
        """In JSON types, with as many digits as matter."""
        whole = np.array([self.overall.value, self.overall.low, self.overall.high])
        record: dict[str, Any] = dict(zip(("value", "low", "high"), _short(whole, np.ptp(whole)), strict=True))
        if self.table is not None:
            gaps = [np.diff(points).min(initial=np.inf) for _, points in self.axes]
            record["axes"] = [[name, _short(points, gap)] for (name, points), gap in zip(self.axes, gaps, strict=True)]
            record["table"] = [_short(row, np.ptp(row)) for row in self.table.reshape(-1, 3)]
        return record


def read_outcome_forecast(record: Mapping[str, Any] | None) -> OutcomeForecast | None:
    """The inverse of ``to_dict``; None for what says nothing of this kind, whoever wrote it."""
    if not record:
        return None
    ends = _numbers([record.get(name) for name in ("value", "low", "high")], (3,))
    if ends is None or not ends[1] <= ends[0] <= ends[2]:
        return None
    overall = Interval(*ends.tolist())
    axes = _read_axes(record.get("axes"))
    if not axes:
        return OutcomeForecast(overall)
    sizes = tuple(len(points) for _, points in axes)
    table = _numbers(record.get("table"), (int(np.prod(sizes, dtype=np.float64)), 3))
    if table is None or not ((table[:, 1] <= table[:, 0]) & (table[:, 0] <= table[:, 2])).all():
        return OutcomeForecast(overall)
    return OutcomeForecast(overall, axes, table.reshape(*sizes, 3))


def _read_axes(given: Any) -> tuple[tuple[str, Array], ...]:
    axes = []
    try:
        for name, points in given or ():
            numbers = read_floats(points)
            if (
                not isinstance(name, str)
                or numbers is None
                or numbers.ndim != 1
                or not 0 < len(numbers) < LARGEST_TABLE
            ):
                return ()
            if not np.isfinite(numbers).all() or not (np.diff(numbers) > 0).all():
                return ()
            axes.append((name, numbers))
    except (TypeError, ValueError):
        return ()
    return tuple(axes) if len(axes) < 8 else ()


def _numbers(given: Any, shape: tuple[int, ...]) -> Array | None:
    """Finite numbers of this shape, of sizes whose squares can be summed; None for anything else."""
    if len(given or ()) > LARGEST_TABLE or shape[0] > LARGEST_TABLE:
        return None
    numbers = read_floats(given)
    if numbers is None or numbers.shape != shape or not (np.abs(numbers) < MAX_MAGNITUDE).all():
        return None
    return numbers


def _along(points: Array, table: Array, place: float) -> Array:
    """``table`` (n × …) between the ``points`` (n) around ``place``."""
    place = min(max(place, float(points[0])), float(points[-1]))
    upper = int(np.searchsorted(points, place))
    if upper == 0:
        first: Array = table[0]
        return first
    share = (place - points[upper - 1]) / (points[upper] - points[upper - 1])
    between: Array = (1.0 - share) * table[upper - 1] + share * table[upper]
    return between


def _short(numbers: Array, unit: float) -> list[float]:
    """Rounded to a hundredth of ``unit`` or less; as they are where that is no number."""
    digits = DIGITS - math.floor(math.log10(unit)) if 0.0 < unit < math.inf else None
    return [float(number) if digits is None else round(float(number), digits) for number in numbers]
