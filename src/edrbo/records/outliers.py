"""Outcomes so far from all others that they cannot belong to them: they are kept on record and not learned from.

One y of −10,000 among values near 0 would make the unit of every model so large that it sees nothing else. Judged is
each beside the others, by the whole range of these: what is rough or heavy-tailed, a needle or a penalty that somebody
gives every failure stays. ``Settings.outliers`` turns it off.

Robust location and spread, and what is far from them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from edrbo.records.state import State

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
    for count in range(1, min(max(1, len(y) // SHARE), len(y) - MIN_OTHERS) + 1):
        away, body = order[:count], y[order[count:]]
        low, high = float(body.min()), float(body.max())
        gap = np.maximum(low - y[away], y[away] - high)
        # less is needed of none, and quantiles take time
        if not (high > low and (gap > FAR_RANGES * (high - low)).all()):
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
