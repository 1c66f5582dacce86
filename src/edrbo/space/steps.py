"""Numbers as people set and read them: steps of a dial, digits, units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from edrbo.errors import EdrboError, InvalidSpaceError
from edrbo.space.point_tables import Array, read_numbers

FINEST = 1e-9  # of the range: a smaller step is no step
LONGEST_UNIT = 40
MOST_DIGITS = 15


@dataclass(frozen=True)
class Steps:
    """``lower``, ``lower`` + ``step``, … up to ``upper``; the last is below it where the range is no multiple."""

    lower: float
    upper: float
    step: float

    def __post_init__(self) -> None:
        width = self.upper - self.lower
        if not width * FINEST < self.step <= width * (1 + FINEST):
            raise InvalidSpaceError(
                f"a step of {self.step!r} does not fit the range from {self.lower!r} to {self.upper!r}",
                "a step is above zero and at most as wide as the range",
            )

    def nearest(self, values: Array) -> Array:
        """The steps (n) nearest to ``values`` (n), each the decimal number that people would write."""
        last = math.floor((self.upper - self.lower) / self.step * (1 + FINEST))
        counts = np.clip(np.rint((values - self.lower) / self.step), 0, last)
        found = np.round(self.lower + counts * self.step, self._decimals())
        return np.clip(found, self.lower, self.upper)

    def tidy(self, values: Array) -> Array:
        """``values`` (n) with those that are a step but for rounding errors made exact."""
        near = self.nearest(values)
        return np.where(np.abs(near - values) <= FINEST * (self.upper - self.lower), near, values)

    def _decimals(self) -> int:
        """Digits after the point that steps can have; more than a float holds where the step is no short decimal."""
        exponents = (Decimal(repr(number)).as_tuple().exponent for number in (self.lower, self.step))
        return min(max(0, *(-exponent for exponent in exponents if isinstance(exponent, int))), 300)


def number_text(value: float, digits: int | None = None) -> str:
    """A number for people: ``digits`` after the point, or six figures."""
    if digits is not None and math.isfinite(value):
        return f"{value:.{digits}f}"
    return f"{value:.6g}"


def check_unit(unit: Any) -> None:
    if not isinstance(unit, str) or len(unit) > LONGEST_UNIT or not unit.isprintable():
        raise InvalidSpaceError(f"the unit is {unit!r}", "it is a short text, as m/min")


def check_digits(digits: Any) -> None:
    if digits is None:
        return
    if isinstance(digits, bool) or not isinstance(digits, int) or not 0 <= digits <= MOST_DIGITS:
        raise InvalidSpaceError(f"digits is {digits!r}", f"it is a whole number from 0 to {MOST_DIGITS}")


def check_default(variable: Any) -> None:
    """That the value which runs had before the variable came is one of its values."""
    if variable.default is None:
        return
    value = np.empty(1, dtype=object)
    value[0] = variable.default
    try:
        if getattr(variable, "bounded", True):
            variable.encode("default", value)
        else:
            read_numbers("default", value, "context", InvalidSpaceError)
    except EdrboError as problem:
        raise InvalidSpaceError(
            f"the default cannot be {variable.default!r}: {problem.message}", problem.hint
        ) from None


def given_extras(variable: Any) -> dict[str, Any]:
    """What is written only if it was given: records of version 0.1 lack it."""
    parts = {name: getattr(variable, name, None) for name in ("unit", "digits", "step", "default")}
    return {name: value for name, value in parts.items() if value not in (None, "")}


def format_extras(variable: Any) -> str:
    return "".join(f", {name}={value!r}" for name, value in given_extras(variable).items())
