"""The ranges by which contexts are coded: bounds where they are known, else robust ranges of data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from edrbo.space.point_tables import Array

# A range of plus and minus 2.5 standard deviations holds 98.8 % of a normal distribution.
SPREADS_COVERED = 2.5
# The 5 % to 95 % quantile range of a normal distribution, in standard deviations.
QUANTILE_RANGE = 3.29
# With a constant context the range is median ± max(1, |median|).
CONSTANT_SPREAD = 1.0 / SPREADS_COVERED
# Coded contexts are as they are up to this many ranges beyond an end of the range, and drawn in farther out.
PLAIN = 2.0
# What lies farther from the median than this many interquartile ranges (40 standard deviations of a normal
# distribution) is a slip of the sensor, not a part of the range.
GROSS = 30.0
# Contexts that fill less than this part of their bounds are coded by what is seen of them, once there are as many.
SLIVER, FEWEST_SEEN = 0.1, 10
MAX_FLOAT = float(np.finfo(np.float64).max)
MIN_FLOAT = float(np.finfo(np.float64).tiny)
# Below this part of the magnitude a spread is rounding error.
NEGLIGIBLE = 1e-13


@dataclass(frozen=True, eq=False)
class ContextScale:
    """The range of each context variable that codes to [0, 1]; ``log`` marks those coded by their logarithm.

    lower, upper: (d_c,), read-only. ``whole`` marks whole numbers, to which positions of choices belong. ``choices`` is
    the number of choices where they have no order: those have a column each, 1 for the one that it is; 0 elsewhere.
    """

    lower: Array
    upper: Array
    log: tuple[bool, ...]
    whole: tuple[bool, ...] = ()
    choices: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "whole", self.whole or (False,) * len(self.log))
        object.__setattr__(self, "choices", self.choices or (0,) * len(self.log))
        for side in ("lower", "upper"):
            array = np.array(getattr(self, side), dtype=np.float64)
            array.setflags(write=False)
            object.__setattr__(self, side, array)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ContextScale):
            return NotImplemented
        same = np.array_equal(self.lower, other.lower) and np.array_equal(self.upper, other.upper)
        return same and (self.log, self.whole, self.choices) == (other.log, other.whole, other.choices)

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """The coded columns of each variable."""
        stops = np.cumsum([count or 1 for count in self.choices]).tolist()
        return tuple(slice(stop - (count or 1), stop) for stop, count in zip(stops, self.choices, strict=True))

    @property
    def width(self) -> int:
        """How many columns a coded context has."""
        return self.blocks[-1].stop if self.blocks else 0

    @cached_property
    def discrete(self) -> NDArray[np.bool_]:
        """Which coded columns hold levels."""
        return np.repeat(np.array(self.whole, dtype=np.bool_), [block.stop - block.start for block in self.blocks])

    def snap(self, coded: Array) -> Array:
        """Coded contexts (n, width) → the nearest that have real levels; what is real stays as it is."""
        return np.where(self.discrete, self.encode(self.decode(coded)), coded)

    def encode(self, raw: Array) -> Array:
        """(n, d_c) in the user's units → coded, (n, width).

        On a log scale the coding goes on as a straight line below the lower bound, with the same slope there,
        so that a context at or below zero, which is kept with a warning, still has a code. More than two ranges
        outside the code grows as log log, so that no context, be it 1e300, is coded beyond −9 or 10: a model and a
        distribution that hold it still see the others.
        """
        with np.errstate(over="ignore"):
            coded = (raw - self.lower) / (self.upper - self.lower)
            for index in np.flatnonzero(self.log):
                lower, values = self.lower[index], raw[:, index]
                width = np.log(self.upper[index]) - np.log(lower)
                above = np.log(np.maximum(values, lower)) - np.log(lower)
                coded[:, index] = np.where(values < lower, values / lower - 1.0, above) / width
        coded = _drawn_in(coded)
        if not any(self.choices):
            return coded
        return np.concatenate([self._columns(k, coded[:, k], raw[:, k]) for k in range(len(self.log))], axis=1)

    def _columns(self, k: int, coded: Array, raw: Array) -> Array:
        """Of variable ``k``: its code (n, 1), or one column for each of its choices."""
        if not self.choices[k]:
            return coded[:, None]
        chosen = (raw[:, None] == np.arange(self.choices[k])).astype(np.float64)
        return np.where(np.isnan(raw)[:, None], np.nan, chosen)

    def decode(self, coded: Array) -> Array:
        """The inverse of ``encode``, (n, d_c); held to finite values and to levels where there are such."""
        if not any(self.choices):
            return self._levels(self._decode(coded), coded)
        firsts = np.stack([coded[:, block.start] for block in self.blocks], axis=1)
        raw = self._levels(self._decode(firsts), firsts)
        for k, block in enumerate(self.blocks):
            if self.choices[k]:
                raw[:, k] = coded[:, block].argmax(axis=1)
        return raw

    def _levels(self, raw: Array, coded: Array) -> Array:
        """Rows (n, d_c) with whole numbers where there must be; those coded in [0, 1] stay in their range."""
        if not any(self.whole):
            return raw
        nearest = np.rint(raw)
        held = np.clip(nearest, np.ceil(self.lower), np.floor(self.upper))
        return np.where(self.whole, np.where((coded >= 0) & (coded <= 1), held, nearest), raw)

    def _decode(self, coded: Array) -> Array:
        coded = _drawn_out(coded)
        with np.errstate(over="ignore"):
            raw = self.lower + coded * (self.upper - self.lower)
            for index in np.flatnonzero(self.log):
                lower = self.lower[index]
                exponent = coded[:, index] * (np.log(self.upper[index]) - np.log(lower))
                above = np.exp(np.log(lower) + np.maximum(exponent, 0.0))
                raw[:, index] = np.where(exponent < 0, lower * (1.0 + exponent), above)
        raw = np.where(coded == 0.0, self.lower, np.where(coded == 1.0, self.upper, raw))
        held: Array = np.clip(raw, -MAX_FLOAT, MAX_FLOAT)
        return held


def _drawn_in(coded: Array) -> Array:
    """z itself in [−PLAIN, 1 + PLAIN]; a distance u beyond that becomes log(1 + log(1 + u)), of slope one there."""
    inside = np.clip(coded, -PLAIN, 1.0 + PLAIN)
    beyond = np.clip(coded - inside, -MAX_FLOAT, MAX_FLOAT)
    drawn: Array = inside + np.sign(beyond) * np.log1p(np.log1p(np.abs(beyond)))
    return drawn


def _drawn_out(coded: Array) -> Array:
    """The inverse of ``_drawn_in``."""
    inside = np.clip(coded, -PLAIN, 1.0 + PLAIN)
    beyond = coded - inside
    with np.errstate(over="ignore"):
        away = np.minimum(np.expm1(np.expm1(np.abs(beyond))), MAX_FLOAT)
    drawn: Array = inside + np.sign(beyond) * away
    return drawn


def robust_range(lower: float | None, upper: float | None, values: Array, log: bool = False) -> tuple[float, float]:
    """The bounds, or what is seen of them where that is a sliver (``seen_of_bounds``).

    An absent bound is replaced by the median of ``values`` (n,) minus or plus 2.5 spreads. The spread is the 5 % to
    95 % quantile range over 3.29, a standard deviation that outliers do not move, be they few or, if they are as far
    away as slips are, up to a quarter of the data; where that vanishes, the standard deviation; where that vanishes too
    (a constant, or no data), 0.4 max(1, |median|). A bound that is given beside an absent one stays, and the other end
    is at least 2.5 spreads from it.
    """
    if lower is not None and upper is not None:
        return seen_of_bounds(lower, upper, values, log) or (lower, upper)
    bound = lower if upper is None else upper
    if len(values) == 0:
        values = np.array([0.0 if bound is None else bound])
    median, spread = _location_and_spread(values)
    center = median
    if bound is not None:
        center = max(median, bound) if upper is None else min(median, bound)
        # Data far outside the bound must not make the range vanish beside it.
        spread = max(spread, NEGLIGIBLE * abs(bound))
    low = max(center - SPREADS_COVERED * spread, -MAX_FLOAT) if lower is None else lower
    high = min(center + SPREADS_COVERED * spread, MAX_FLOAT) if upper is None else upper
    if high - low > MAX_FLOAT:  # the width must be a float as well
        low = low / 2 if lower is None else low
        high = high / 2 if upper is None else high
    return low, high


def seen_of_bounds(lower: float, upper: float, values: Array, log: bool = False) -> tuple[float, float] | None:
    """The range of ``values`` (n) if they fill a sliver of their bounds only; None if not, or if they are few.

    By such bounds all contexts would be coded as nearly the same, and a model would not see what they do.
    """
    if len(values) < FEWEST_SEEN or (log and not (values > 0.0).all()):
        return None
    if log:
        found = seen_of_bounds(float(np.log(lower)), float(np.log(upper)), np.log(values))
        return None if found is None else (float(np.exp(found[0])), float(np.exp(found[1])))
    values = _without_slips(values)
    low, high = float(values.min()), float(values.max())
    if high / 2 - low / 2 >= SLIVER * (upper / 2 - lower / 2):
        return None
    if high - low <= NEGLIGIBLE * max(abs(low), abs(high)):
        return None  # a constant says nothing of a scale
    median, spread = _location_and_spread(values)
    ends = median - SPREADS_COVERED * spread, median + SPREADS_COVERED * spread
    return (max(ends[0], lower), min(ends[1], upper)) if lower <= low and high <= upper else ends


def _location_and_spread(values: Array) -> tuple[float, float]:
    values = _without_slips(values)
    # In units of the largest magnitude nothing overflows, whatever the data.
    unit = float(np.abs(values).max()) or 1.0
    scaled = values / unit
    low, middle, high = (float(quantile) for quantile in np.quantile(scaled, (0.05, 0.5, 0.95)))
    median = middle * unit
    for spread in ((high - low) / QUANTILE_RANGE, float(scaled.std())):
        if spread > NEGLIGIBLE and spread * unit > MIN_FLOAT:
            return median, spread * unit
    return median, CONSTANT_SPREAD * max(1.0, abs(median))


def _without_slips(values: Array) -> Array:
    """``values`` (n) less what is so far from the rest that it cannot belong to it."""
    scaled = values / (float(np.abs(values).max()) or 1.0)
    low, middle, high = np.quantile(scaled, (0.25, 0.5, 0.75))
    spread = high - low
    if spread <= NEGLIGIBLE * max(abs(low), abs(high)):  # most are one value: the others make all of the spread
        return values
    kept: Array = values[np.abs(scaled - middle) <= GROSS * spread]
    return kept
