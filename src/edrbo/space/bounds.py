"""What the bounds of a variable may be, and whether numbers lie inside them."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from edrbo.errors import InvalidDesignError, InvalidSpaceError
from edrbo.space.point_tables import Array

# Beyond this, coding in float64 could no longer tell neighboring integers apart with certainty.
LARGEST_INTEGER = 2**42


def plain_number(given: Any) -> float:
    """``given`` as a float; NaN if it is no number: texts and truth values are none, though Python would take them."""
    try:
        return math.nan if isinstance(given, str | bytes | bool) else float(given)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def real_bound(value: Any) -> float | None:
    if value is None:
        return None
    if not math.isfinite(bound := plain_number(value)):
        raise InvalidSpaceError(f"the bound {value!r} is not a finite number", "None is no bound")
    return bound


def integer_bound(value: Any) -> int:
    try:
        bound = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        bound = None
    if bound is None or abs(bound) > LARGEST_INTEGER:
        raise InvalidSpaceError(
            f"the bound {value!r} of an integer variable is not an int within ±2**42", "use Real instead"
        )
    return bound


def check_log_flag(log: Any) -> None:
    if not isinstance(log, bool):
        raise InvalidSpaceError(f"log is {log!r}", "it is True or False")


def check_range(lower: float, upper: float) -> None:
    if not 0 < upper - lower < math.inf:
        raise InvalidSpaceError(
            f"the bounds ({lower!r}, {upper!r}) enclose no usable range",
            "the upper bound must exceed the lower one by a finite amount; leave a constant out of the space",
        )


def check_inside(name: str, numbers: Array, lower: float, upper: float) -> None:
    outside = (numbers < lower) | (numbers > upper)
    if outside.any():
        value = float(numbers[np.argmax(outside)])
        raise InvalidDesignError(
            f"design variable {name!r} is {value!r}, outside its bounds [{lower!r}, {upper!r}]",
            "move it inside, or widen the space",
        )
