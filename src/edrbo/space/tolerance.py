"""The tolerance of a design variable: what is set is not quite what comes out.

    1.0       normal, with this standard deviation, in the variable's unit
    "2 %"     normal, with a standard deviation of this share of what is set
    "±1.5"    anywhere within this half-width, each as likely
    "±2 %"    the same, of what is set

On a logarithmic scale a tolerance is a share, of the logarithm.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from edrbo.errors import InvalidSpaceError

TEXT = re.compile(r"(±|\+/-|\+-)?\s*([0-9.]+(?:[eE][-+]?[0-9]+)?)\s*(%)?")
LARGEST_SHARE = 0.25  # of what is set, and half of it of the range: beyond that nothing is set any more
HOW = 'write a standard deviation as 1.0 or "2 %", or a half-width as "±1.5" or "±2 %"'


@dataclass(frozen=True)
class Tolerance:
    """``amount`` is a standard deviation, or a half-width if ``uniform``; of what is set if it is a ``share``."""

    amount: float
    share: bool = False
    uniform: bool = False

    @classmethod
    def read(cls, given: Any) -> Tolerance:
        """From a number or a text; InvalidSpaceError for anything else."""
        if isinstance(given, bool) or not isinstance(given, int | float | str):
            raise InvalidSpaceError(f"the tolerance is {given!r}", HOW)
        match = TEXT.fullmatch(given.strip()) if isinstance(given, str) else None
        try:
            amount = float(match[2]) if match else float(given)
        except (ValueError, OverflowError):
            raise InvalidSpaceError(f"the tolerance is {given!r}", HOW) from None
        share, uniform = (bool(match[3]), bool(match[1])) if match else (False, False)
        amount = amount / 100.0 if share else amount
        if not (math.isfinite(amount) and amount > 0.0):
            raise InvalidSpaceError(
                f"the tolerance is {given!r}", "it is larger than zero; leave it out if there is none"
            )
        if share and amount > LARGEST_SHARE:
            raise InvalidSpaceError(f"the tolerance is {given!r}", f"a share is at most {100 * LARGEST_SHARE:g} %")
        return cls(amount, share, uniform)

    @property
    def record(self) -> float | str:
        """As it is stored and written: a number, or a text that ``read`` understands."""
        if not (self.share or self.uniform):
            return self.amount
        number = f"{100.0 * self.amount:.12g} %" if self.share else repr(self.amount)
        return f"±{number}" if self.uniform else number

    def describe(self, unit: str) -> str:
        """For people: "±1.5 mm", "sd 2 %"."""
        number = f"{100.0 * self.amount:.6g} %" if self.share else f"{self.amount:.6g}{unit and ' ' + unit}"
        return f"±{number}" if self.uniform else f"sd {number}"

    def reach(self, lower: float, upper: float, log: bool) -> tuple[float, float]:
        """(a, b): what comes out has the code x + (u − ½)(a + b x), with the code x of what is set and u normal around
        ½ with standard deviation 1/6, or uniform on [0, 1]."""
        width = (2.0 if self.uniform else 6.0) * self.amount
        if log:
            return width / (math.log(upper) - math.log(lower)), 0.0
        if self.share:
            return width * lower / (upper - lower), width
        return width / (upper - lower), 0.0


def check_tolerance(given: Any, lower: float | None, upper: float | None, log: bool) -> float | str:
    """What is stored of the tolerance of a variable with these bounds."""
    tolerance = Tolerance.read(given)
    if log and not tolerance.share:
        hint = 'write a share of what is set, as "2 %"'
        raise InvalidSpaceError(f"the tolerance is {given!r}, and the variable's scale is logarithmic", hint)
    if lower is not None and upper is not None and not tolerance.share and 2.0 * tolerance.amount > upper - lower:
        raise InvalidSpaceError(f"the tolerance {given!r} is as wide as the bounds", "then nothing can be set")
    return tolerance.record
