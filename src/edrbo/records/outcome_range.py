"""What an outcome can be at all: a yield lies from 0 to 100 %, power is never below zero.

No model is asked about it. What is said of an outcome is held to it: means, intervals, bounds and the draws from which
values of goals come. A single outcome that was reported may lie outside: instruments have noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from edrbo.errors import InvalidValueError
from edrbo.space.bounds import plain_number

HINT = 'write "0:100", "0:" for no upper end, or a pair such as (0, None)'


@dataclass(frozen=True)
class OutcomeRange:
    """From ``lower`` to ``upper``, in the user's units; an end that is None is open."""

    lower: float | None = None
    upper: float | None = None

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, _end(getattr(self, name)))
        if self.lower is None and self.upper is None:
            raise InvalidValueError("an outcome range has no end", HINT)
        if not self.ends[0] < self.ends[1]:
            raise InvalidValueError(f"nothing lies between {self.lower} and {self.upper}", "the lower end comes first")

    @property
    def ends(self) -> tuple[float, float]:
        """Infinite where there is none."""
        return -math.inf if self.lower is None else self.lower, math.inf if self.upper is None else self.upper

    def to_text(self) -> str:
        """Such as ``0:100``; ``read_outcome_range`` is the inverse."""
        return ":".join("" if end is None else repr(end).removesuffix(".0") for end in (self.lower, self.upper))


def read_outcome_range(given: Any) -> OutcomeRange | None:
    """From a pair of numbers (None: open), or its text."""
    if given is None or isinstance(given, OutcomeRange):
        return given
    if isinstance(given, str):
        if given.strip() in ("", "none"):
            return None
        given = [part.strip() or None for part in given.split(":")]
    if not isinstance(given, Sequence) or len(given) != 2:
        raise InvalidValueError(f"the outcome range is {given!r}", HINT)
    return OutcomeRange(*given)


def _end(given: Any) -> float | None:
    if given is None:
        return None
    try:
        number = float(given) if isinstance(given, str) else plain_number(given)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise InvalidValueError(f"an end of the outcome range is {given!r}", HINT)
    return number if math.isfinite(number) else None
