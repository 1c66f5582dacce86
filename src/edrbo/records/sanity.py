"""Sanity of entries: numbers that look mistyped are questioned, never refused; in Python by a warning once it is
recorded.

What is expected comes from the suggestion itself where it says so (``OutcomeForecast``), else from what was reported so
far: the middle and the spread of the others, both such that a few wild ones do not move them.

``outliers``: outcomes so far from all others that they cannot belong to them are kept on record and not learned from.
One y of −10,000 among values near 0 would make the unit of every model so large that it sees nothing else. Judged is
each beside the others, by the whole range of these: what is rough or heavy-tailed, a needle or a penalty that somebody
gives every failure stays. ``Settings.outliers`` turns it off.

``OutcomeForecast`` is the predictive distribution of an outcome when its design was suggested, stored with the
suggestion:

    value, low, high    mean and 95 % interval of the outcome over the contexts that were to be expected
    axes                per context variable its name and a few points in the user's units, ascending
    table               [value, low, high] at every combination of the points, the last variable running fastest

``tell`` compares with it without a model, and the prediction can be judged later. Between points it is linear in
every variable, beyond the ends it stays as it is there.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import filterfalse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.cancellation import checkpoint
from edrbo.errors import ImplausibleWarning, NarrowContextsWarning
from edrbo.records.context_log import ContextBatch
from edrbo.records.descriptions import format_outcome
from edrbo.records.reported import relative
from edrbo.records.run import Run
from edrbo.records.settings import Settings
from edrbo.records.state import State
from edrbo.records.validation import read_floats, read_number
from edrbo.space import Space
from edrbo.space.context_scale import seen_of_bounds
from edrbo.space.variables import Variable, format_value

Array = NDArray[np.float64]

MIN_NUMBERS = 8  # numbers before anything can be called unusual: five uniform ones may well lie close together
FAR_SPREADS = 5.0  # spreads from the middle of all seen; a normal distribution goes there once in a million …
BEYOND_RANGES = 1.0  # … and so many of their ranges beyond them, since a distribution may drift
CONSTANT = 1e-9  # of their size: numbers that differ by rounding only have no scale
LIKELY_SPREADS = 3.0  # spreads within which a number may be one of these


def spread_of(seen: Array) -> tuple[float, float]:
    """The middle of numbers and how far they are apart, as a standard deviation."""
    with np.errstate(over="ignore", invalid="ignore"):  # what no float can hold is nothing to judge by
        low, middle, high = (float(end) for end in np.quantile(seen, (0.1, 0.5, 0.9)))  # np.median would load numpy.ma
        spread = max(1.4826 * float(np.quantile(np.abs(seen - middle), 0.5)), (high - low) / 2.563)
    return middle, max(spread, 1e-3 * abs(middle), 1e-9 * float(np.abs(seen).max(initial=0.0)))


def is_far(seen: Array, number: float, far: float = FAR_SPREADS, beyond: float = BEYOND_RANGES) -> bool:
    """Whether ``number`` is far beyond all of those ``seen`` (n)."""
    if len(seen) < MIN_NUMBERS:
        return False
    low, high = float(seen.min()), float(seen.max())
    if high - low <= CONSTANT * max(abs(low), abs(high)) or max(low - number, number - high) <= beyond * (high - low):
        return False
    middle, spread = spread_of(seen)
    return abs(number - middle) > far * spread


def is_far_in_logs(seen: Array, number: float) -> bool:
    """The same on a scale of logarithms; of numbers that have none, on their own."""
    if not (number > 0 and (seen > 0).all()):
        return is_far(seen, number)
    return is_far(np.log(seen), math.log(number))


def is_far_on_best_scale(seen: Array, number: float) -> bool:
    """The same, and in logarithms too where these are less skewed: the largest of log-normal numbers
    are far from the others, and belong to them.

    Of 300 series of 30 log-normal numbers (sigma 1) it says so 20 times, ``is_far`` 90 times.
    """
    if not is_far(seen, number):
        return False
    return not (number > 0 and (seen > 0).all() and _skew(np.log(seen)) < _skew(seen)) or is_far_in_logs(seen, number)


def _skew(numbers: Array) -> float:
    """How far from symmetric numbers that are not all the same are: |E z³|, of a standard deviation of one."""
    away = numbers - numbers.mean()
    return abs(float(np.mean((away / away.std()) ** 3)))


def may_be(seen: Array, number: float) -> bool:
    """Whether ``number`` may well be one of those ``seen``; not if these are few."""
    if len(seen) < MIN_NUMBERS or not np.isfinite(number):
        return False
    middle, spread = spread_of(seen)
    return abs(number - middle) <= LIKELY_SPREADS * spread


Rows = NDArray[np.bool_]

MIN_OTHERS = 9  # others before one can be judged
FAR_RANGES, FAR_RANGES_FEW = 10.0, 100.0  # ranges of the n others between them and an outlier: FAR + FEW / n …
HEAVY = 100.0  # … or, up to this, as many as their farthest is farther from their middle than half of them
SHARE = 20  # one outlier in so many outcomes, or one
# too good to be true is what this many runs so near, in every coded variable, contradict
CONTRADICTION_DISTANCE, CONTRADICTING_RUNS = 0.1, 2


def outliers(state: State) -> Rows:
    """Which of the observations (n) are not to be learned from."""
    data = state.observations
    y = data.y if state.settings.direction == "maximize" else -data.y
    found = np.zeros(len(y), dtype=np.bool_)
    if state.settings.outliers == "keep":
        return found
    for row in _apart(y):
        too_good = y[row] > np.delete(y, row).max()
        explained = any(is_far(np.delete(known, row), known[row]) for known in data.c.T if np.isfinite(known).all())
        if not explained and not (too_good and not _contradicted(data.x, row)):
            found[row] = True
    return found


def _apart(y: Array) -> NDArray[np.intp]:
    """The fewest rows that are far beyond all others; none twice the same, which would be meant."""
    y = y / (float(np.abs(y).max(initial=0.0)) or 1.0)  # so that nothing overflows
    order = np.argsort(-np.abs(y - np.quantile(y, 0.5)), kind="stable") if len(y) else np.zeros(0, dtype=np.intp)
    most = min(max(1, len(y) // SHARE), len(y) - MIN_OTHERS)
    if most < 1:
        return order[:0]
    outward = y[order]
    lows, highs = (end.accumulate(outward[::-1])[::-1][1 : most + 1] for end in (np.minimum, np.maximum))
    last = outward[:most]  # of those taken away the one nearest to the others: mostly it is too near
    apart = np.maximum(lows - last, last - highs) > FAR_RANGES * (highs - lows)
    for count in (np.flatnonzero(apart & (highs > lows)) + 1).tolist():
        away, body = order[:count], y[order[count:]]
        low, high = float(body.min()), float(body.max())
        gap = np.maximum(low - y[away], y[away] - high)
        # less is needed of none, and quantiles take time
        if not (gap > FAR_RANGES * (high - low)).all():
            continue
        if (gap > _needed(body) * (high - low)).all() and len(np.unique(y[away])) == count:
            return away
    return order[:0]


def _needed(body: Array) -> float:
    """In ranges of ``body``."""
    distance = np.abs(body - np.quantile(body, 0.5))
    half = float(np.quantile(distance, 0.5))
    heavy = HEAVY if half == 0.0 else min(float(distance.max()) / half, HEAVY)
    return max(FAR_RANGES + FAR_RANGES_FEW / len(body), heavy)


def _contradicted(x: Array, row: int) -> bool:
    near = (np.abs(x - x[row]) <= CONTRADICTION_DISTANCE).all(axis=1)
    return int(near.sum()) > CONTRADICTING_RUNS


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


FAR_VALUE, BEYOND_VALUE = 8.0, 3.0  # of an outcome, as FAR and BEYOND of a context: good designs are meant to stand out
# Half-widths of a 95 % interval from what was expected, and spreads of all outcomes: 21 of 30,000 outcomes of the
# benchmark's runs are so far.
FAR_EXPECTED, SURPRISING = 3.0, 3.0
FEWEST_REPORTED = 5  # outcomes that have such a spread
UNLEARNED = 'it is so far from all others that it is not learned from (outliers = "keep" changes that)'
SCALES = (100.0, 10.0, 0.1, 0.01)  # a slip of the point, or percent for a share


@dataclass(frozen=True)
class ImplausibleRun:
    """A run that may have been reported wrong, and why; one text each."""

    run: int
    reasons: tuple[str, ...]


def doubts(
    state: State, run: Run | None, value: float | None, context: Mapping[str, Any] | None, *, bounds: bool = True
) -> list[str]:
    """Questions about an outcome and a context that are about to be reported, one text each; none if all looks well.

    ``run`` is the suggestion, if its design was set. Without ``bounds`` a context outside of them is not mentioned.
    """
    numbers = None if context is None else state.space.context_numbers(context)
    return Others.of(state).doubts(run, value, numbers, bounds=bounds)


def series_doubts(state: State, run: Run | None, parts: Mapping[str, Any]) -> list[str]:
    """The same of several rows, with ``contexts`` by name and ``values``, which of several outcomes are by name too."""
    by_name = {name: Others.of(state.of_outcome(name)) for name in state.settings.outcomes or ()}
    others, found = Others.of(state), list[str]()
    for k, reported in enumerate(parts["values"]):
        context = state.space.context_numbers(parts["contexts"][k]) if state.space.d_c else None
        named = reported if isinstance(reported, Mapping) else {state.settings.outcome: reported}
        for name, value in named.items():
            main = name == state.settings.outcome
            asked = (run, value, context) if main else (None, value, None)
            found += [f"row {k}: {text}" for text in (others if main else by_name[name]).doubts(*asked)]
    return found


def all_doubts(
    state: State,
    run: Run | None,
    value: float | Mapping[str, float | None] | None,
    context: Mapping[str, Any] | None,
) -> list[str]:
    """The same where ``value`` may be several outcomes by name."""
    if not isinstance(value, Mapping):
        return doubts(state, run, value, context)
    main = state.settings.outcome
    found = doubts(state, run, value.get(main), context)
    others = {name: number for name, number in value.items() if name != main}
    return found + [
        text for name, number in others.items() for text in doubts(state.of_outcome(name), None, number, None)
    ]


def entry_doubts(
    state: State,
    key: int | None,
    value: float | Mapping[str, float | None] | None,
    context: Mapping[str, Any] | None,
    *,
    own: bool = False,
    control: float | None = None,
) -> list[str]:
    """The same of what is about to be entered of run ``key``; its design is the suggestion's unless it is one's
    ``own``."""
    run, main = None if key is None else state.runs.get(key), state.settings.outcome
    if control is None and run is not None:
        control = run.control
    if isinstance(value, Mapping):
        value = {**value, **({main: relative(value[main], control)} if main in value else {})}
    else:
        value = relative(value, control)
    return all_doubts(state, None if own else run, value, context)


def context_doubts(state: State, context: Mapping[str, Any]) -> list[str]:
    """Of one context, by name, in the user's units."""
    return Others.of(state).context_doubts(state.space.context_numbers(context))


def implausible(state: State, keys: Iterable[int] | None = None) -> list[ImplausibleRun]:
    """The runs reported that look wrong beside all others, or beside what was expected of them; of ``keys``, or all."""
    everything, apart = Others.of(state), outliers(state)
    found = []
    for key in state.reported if keys is None else [key for key in keys if key in state.reported]:
        reasons = _doubts_about(state, everything, key) + [UNLEARNED] * bool(apart[list(state.rows_of(key))].any())
        if reasons:
            found.append(ImplausibleRun(key, tuple(reasons)))
    return found


def newly_doubtful(before: State, after: State, keys: Iterable[int]) -> Iterator[ImplausibleRun]:
    """The runs ``keys`` that look wrong beside what was known before they came, or else beside all that came."""
    known, everything = Others.of(before), Others.of(after)
    for key in keys:
        checkpoint()
        reasons = _reasons(after, known, key) or _doubts_about(after, everything, key)
        if reasons:
            yield ImplausibleRun(key, tuple(reasons))


def doubts_about(state: State, key: int) -> list[str]:
    """The same of one run that was reported; nothing of one that was not, or is left out."""
    return _doubts_about(state, Others.of(state), key) if key in state.reported else []


def _doubts_about(state: State, everything: Others, key: int) -> list[str]:
    return _reasons(state, everything.without(key, state.rows_of(key)), key) if key in state.reported else []


def _reasons(state: State, others: Others, key: int) -> list[str]:
    run = state.runs[key]
    if run.series is None:
        known = run.context is not None and state.space.d_c > 0
        context = state.space.known_numbers(run.context) if known and run.context is not None else None
        return others.doubts(run, run.value, context)
    found = []
    for k, (row, value) in enumerate(zip(run.series.contexts, run.series.values.tolist(), strict=True)):
        context = state.space.known_numbers(row) if state.space.d_c else None
        found += [f"row {k}: {text}" for text in others.doubts(run, None if np.isnan(value) else value, context)]
    return found


@dataclass(frozen=True, eq=False)
class Others:
    """What a number is compared with: outcomes ``reported`` (n) and contexts ``seen`` (N × d_c), those of runs with
    their ``owners`` (N; −1 for contexts alone)."""

    settings: Settings
    reported: Array
    seen: Array
    owners: NDArray[np.intp]

    @classmethod
    def of(cls, state: State) -> Others:
        """Contexts of runs with an outcome stand in a table already; the others are looked for."""
        reported, met = state.reported, state.observations.c
        known = ~np.isnan(met).all(axis=1)
        rows, owners = [met[known]], [state.owners[known]]
        for entry in filterfalse(reported.__contains__, state.seen):
            if isinstance(entry, ContextBatch):
                rows.append(entry.rows)
                owners.append(np.full(len(entry.rows), -1, dtype=np.intp))
            elif not (run := state.runs[entry]).dropped and run.context is not None:
                rows.append(run.context[None])
                owners.append(np.array([entry], dtype=np.intp))
        return cls(state.settings, state.observations.y, np.concatenate(rows), np.concatenate(owners))

    def without(self, key: int, rows: Sequence[int]) -> Others:
        """Less the run ``key``, whose outcomes are ``rows`` of those reported."""
        kept = self.owners != key
        return Others(self.settings, np.delete(self.reported, list(rows)), self.seen[kept], self.owners[kept])

    @property
    def space(self) -> Space:
        return self.settings.space

    def doubts(
        self, run: Run | None, value: float | None, context: Mapping[str, float] | None, *, bounds: bool = True
    ) -> list[str]:
        found = [] if context is None else self.context_doubts(context, bounds=bounds)
        if value is not None:
            found += self._value_doubt(run, value, context)
        if value is not None and context is not None:
            found += self._swapped(value, context)
        return found

    def context_doubts(self, context: Mapping[str, float], *, bounds: bool = True) -> list[str]:
        found = []
        for k, (name, variable) in enumerate(self.space.context.items()):
            if name not in context or not variable.numeric:
                continue
            number, seen = context[name], self._seen(k)
            words = format_value(variable, variable.value_of(number))
            if not _inside(variable, number):
                found += [f"{name} is {words}, outside {variable.describe()}"] * bounds
            elif _is_far(variable, seen, number):
                found.append(f"{name} is {words}, far from {_range(variable, seen)}{_meant(seen, number)}")
            elif _is_percent(variable) and _is_share(seen, number):
                found.append(f"{name} is {words}, as a share of one would be; did you mean {100 * number:.6g}?")
        return found

    def _value_doubt(self, run: Run | None, value: float, context: Mapping[str, float] | None) -> list[str]:
        reported, settings = self.reported, self.settings
        outcome_forecast = None if run is None else read_outcome_forecast(run.outcome_forecast)
        if outcome_forecast is not None and len(reported) >= FEWEST_REPORTED:
            near = outcome_forecast.at(context)
            away = abs(value - near.value)
            if not (near.half > 0 and away > FAR_EXPECTED * near.half and away > SURPRISING * spread_of(reported)[1]):
                return []
            words = f"expected was {format_outcome(settings, near.low)} to {format_outcome(settings, near.high)}"
        elif is_far(reported, value, FAR_VALUE, BEYOND_VALUE):
            ends = (format_outcome(settings, float(end)) for end in (reported.min(), reported.max()))
            words = f"far from the {' to '.join(ends)} reported so far"
        else:
            return []
        return [f"{settings.outcome} is {format_outcome(settings, value)}, {words}{_meant(reported, value)}"]

    def _seen(self, k: int) -> Array:
        """What is known of context variable ``k`` (n)."""
        values = self.seen[:, k]
        known: Array = values[~np.isnan(values)]
        return known

    def _swapped(self, value: float, context: Mapping[str, float]) -> list[str]:
        """Whether outcome and a context would each look well in the other's place."""
        for k, (name, variable) in enumerate(self.space.context.items()):
            if not variable.numeric:
                continue
            number = context.get(name, np.nan)
            seen, reported = self._seen(k), self.reported
            odd = not _inside(variable, number) or _is_far(variable, seen, number) or is_far(reported, value)
            if odd and _inside(variable, value) and may_be(seen, value) and may_be(reported, number):
                return [f"{self.settings.outcome} and {name} look as if they had been swapped"]
        return []


def _inside(variable: Variable, number: float) -> bool:
    lower, upper = variable.limits()
    return bool(lower <= number <= upper)


def _is_far(variable: Variable, seen: Array, number: float) -> bool:
    """Whether ``number`` is far from those ``seen`` (n), on the variable's scale or the one on which they are spread
    evenly."""
    return is_far_in_logs(seen, number) if variable.log else is_far_on_best_scale(seen, number)


def _is_percent(variable: Variable) -> bool:
    """Whether it is given in hundredths; then a share of one is an easy slip, and needs no others to be seen by."""
    return variable.numeric and (variable.unit == "%" or variable.limits() == (0.0, 100.0))


def _is_share(seen: Array, number: float) -> bool:
    """Whether ``number`` is a share of one where those ``seen`` (n) are percent, but for a few that slipped too."""
    if not 0 < number <= 1:
        return False
    percent = seen[seen > 1]
    if len(percent) < 2 * (len(seen) - len(percent)) or not len(percent):
        return len(seen) == 0
    low, high = float(percent.min()), float(percent.max())
    wide = max(high - low, high / 2)
    return len(percent) == len(seen) or low - wide <= 100 * number <= high + wide


def _range(variable: Variable, seen: Array) -> str:
    low, high = (format_value(variable, variable.value_of(float(end))) for end in (seen.min(), seen.max()))
    return f"the {low} to {high} seen so far"


def _meant(seen: Array, number: float) -> str:
    """A guess at a slip of the decimal point."""
    for scale in SCALES:
        if not is_far(seen, number * scale, LIKELY_SPREADS) and number != 0:
            return f"; did you mean {number * scale:.6g}?"
    return ""


MAX_WARNED_ROWS = 3  # rows of a run that are warned of one by one


def input_warnings(state: State, suggested: Run | None, value: Any, row: Array | None) -> list[Warning]:
    """Of an outcome of a run in its context (d_c), as far as they are reported; ``suggested`` if that design was
    set."""
    context = None if row is None or not state.space.d_c else state.space.name_contexts(row[None])[0]
    number = read_number(value)
    # A context outside its bounds was warned of when it was read.
    texts = doubts(state, suggested, number if math.isfinite(number) else None, context, bounds=False)
    found: list[Warning] = [ImplausibleWarning(f"{text} (kept as it is; correct it if it is wrong)") for text in texts]
    return found + [NarrowContextsWarning(text) for text in newly_narrow(state, row)]


def other_input_warnings(state: State, others: Mapping[str, Any] | None) -> list[Warning]:
    """Of outcomes besides the main one, by name."""
    numbers = {name: read_number(value) for name, value in (others or {}).items()}
    texts = [text for name, n in numbers.items() for text in doubts(state.of_outcome(name), None, n, None)]
    return [ImplausibleWarning(f"{text} (kept as it is; correct it if it is wrong)") for text in texts]


def series_input_warnings(state: State, suggested: Run | None, parts: Mapping[str, Any]) -> list[Warning]:
    """Of several rows at once, as ``Series.fields`` has them: the first that look wrong, and how many more do."""
    others, texts = Others.of(state), list[str]()
    for k, (row, value) in enumerate(zip(parts["contexts"], parts["values"].tolist(), strict=True)):
        context = state.space.known_numbers(row) if state.space.d_c else None
        known = None if math.isnan(value) else value
        texts += [f"row {k}: {text}" for text in others.doubts(suggested, known, context, bounds=False)]
    for name, column in (parts["others_values"] or {}).items():
        others = Others.of(state.of_outcome(name))
        texts += [f"row {k}: {text}" for k, value in enumerate(column) for text in others.doubts(None, value, None)]
    more = [f"{len(texts) - MAX_WARNED_ROWS} more of these rows look wrong"] if len(texts) > MAX_WARNED_ROWS else []
    shown = [*texts[:MAX_WARNED_ROWS], *more]
    return [ImplausibleWarning(f"{text} (kept as it is; correct it if it is wrong)") for text in shown]


def exact_conflict(
    state: State, key: int, x: Array | None, row: Array | None, value: Any, noise_variance: Any
) -> list[Warning]:
    """Of an outcome reported with no noise at all, if another one of the same design (d_x) and context is too."""
    design = x if x is not None else state.runs[key].x if key in state.runs else None
    if read_number(noise_variance) != 0.0 or design is None or (row is None and state.space.d_c):
        return []
    data = state.observations
    same = (data.x == design).all(axis=1) & (data.noise_variance == 0.0) & (data.y != read_number(value))
    same &= (data.c == (np.empty(0) if row is None else row)).all(axis=1)
    if not same.any():
        return []
    place = int(np.argmax(same))
    other = format_outcome(state.settings, float(data.y[place]))
    text = f"run {state.owners[place]} gave {other} at the same design and context, and both were reported with noise=0"
    return [ImplausibleWarning(f"{text}; their difference is taken for noise")]


_typed: ContextVar[bool] = ContextVar("typed", default=True)


@contextmanager
def not_typed() -> Iterator[None]:
    """Within, in this thread, numbers come from a program: nobody is asked whether they are slips."""
    before = _typed.set(False)
    try:
        yield
    finally:
        _typed.reset(before)


def warn(found: Sequence[Warning], *, deeper: int = 0) -> None:
    """For a method that the user called, or one so many calls below it."""
    for warning in found:
        if _typed.get() or not isinstance(warning, ImplausibleWarning):
            warnings.warn(warning, stacklevel=3 + deeper)


def narrow_contexts(state: State, contexts: Array | None = None) -> dict[str, str]:
    """The context variables that fill a sliver of their bounds only, with what that means; of ``contexts`` (n × d_c) or
    of those that outcomes met."""
    data = state.observations
    rows = data.c[data.complete] if contexts is None else contexts
    found = {}
    for k, (name, variable) in enumerate(state.space.context.items()):
        lower, upper = variable.limits()
        if not (variable.numeric and variable.bounded):
            continue
        if seen_of_bounds(lower, upper, rows[:, k], variable.log) is not None:
            ends = float(rows[:, k].min()), float(rows[:, k].max())
            low, high = (format_value(variable, variable.value_of(end)) for end in ends)
            found[name] = (
                f"{name} was {low} to {high} so far, a small part of {variable.describe()}: the model takes its scale "
                "from what was seen; narrower bounds say the same"
            )
    return found


def newly_narrow(state: State, row: Array | None) -> list[str]:
    """What there is to say of that once ``row`` (d_c) is reported, if it was not so before."""
    if row is None or not state.space.d_c or np.isnan(row).any():
        return []
    data = state.observations
    found = narrow_contexts(state, np.concatenate([data.c[data.complete], row[None]]))
    before = narrow_contexts(state) if found else {}
    return [text for name, text in found.items() if name not in before]


def narrow_with(state: State, key: int) -> list[str]:
    """The same of a run that was reported last."""
    data = state.observations
    others = data.complete.copy()
    others[list(state.rows_of(key))] = False
    before = narrow_contexts(state, data.c[others])
    return [text for name, text in narrow_contexts(state).items() if name not in before]
