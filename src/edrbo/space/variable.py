"""What a design or context variable is: one of its kinds is a subclass, and nothing else in the package knows which.

A variable codes its values into [0, 1] for a design. In a context a value is one number in the user's units (of a
choice its position), which a ``ContextScale`` codes.

What the bounds of a variable may be, and whether numbers lie inside them.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from dataclasses import Field
from typing import Any, ClassVar

import numpy as np

from edrbo.errors import InvalidDesignError, InvalidSpaceError
from edrbo.space.point_tables import AnyArray, Array

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


Scalar = str | int | float | bool

DIFFERENCE = 1e-6  # of the range: the step of a difference


class Variable(ABC):
    """A kind of variable: a frozen dataclass with the fields ``unit`` and ``default`` and what is abstract here.

    ``default`` is the value that runs had before the variable came. ``kind`` names the kind in records; giving one
    registers it.
    """

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Variable]]] = {}  # by the name in records
    numeric: ClassVar[bool] = True  # whether values are numbers: with arithmetic, distances and an axis
    unit: str = ""
    default: Any = None
    log: bool = False  # whether the logarithm is coded
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):
            Variable.kinds[cls.kind] = cls

    # ---------------------------------------------------------------- in words

    @abstractmethod
    def describe(self) -> str:
        """For people: "10 to 60 m/min in steps of 0.5"."""

    @abstractmethod
    def text(self, value: Any) -> str:
        """``value`` as it is shown, without its unit."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """In JSON types: ``kind``, and the fields by name."""

    # ---------------------------------------------------------------- values

    @property
    def width(self) -> int:
        """Columns of a coded value."""
        return 1

    @property
    def size(self) -> int:
        """How many values there are; 0: any between the ends."""
        return 0

    @property
    def bounded(self) -> bool:
        """Whether both ends are known, as those of a design variable must be."""
        return True

    @property
    def steps_apart(self) -> bool:
        """Whether suggestions lie on levels or steps."""
        return self.size > 0

    @abstractmethod
    def limits(self) -> tuple[float, float]:
        """Where the numbers of ordinary values end; infinite where that is not known."""

    def labels(self) -> list[str] | None:
        """The names of values on an axis, which stand at 0, 1, …; None for numbers."""
        return None

    @abstractmethod
    def grid(self, count: int) -> list[Any]:
        """At most ``count`` values from end to end; of values with names all."""

    # ---------------------------------------------------------------- a design

    @abstractmethod
    def encode(self, name: str, values: AnyArray) -> Array:
        """(n,) values → (n, width) coded; InvalidDesignError names what is none of its values."""

    @abstractmethod
    def decode(self, coded: Array) -> list[Scalar]:
        """(n, width) coded → the n nearest values."""

    @abstractmethod
    def snap(self, coded: Array) -> Array:
        """(..., width) → the nearest coded value to suggest."""

    def settle(self, coded: Array) -> Array:
        """(..., width) → the nearest coded value that can be set, which may lie between steps."""
        return self.snap(coded)

    def levels(self) -> Array:
        """Every coded value, in order, (size, width)."""
        raise NotImplementedError(f"{self!r} has no levels")

    def neighbors(self, coded: Array, most: int) -> Array:
        """Coded values (k, width) to exchange for the one at ``coded`` (width): all, or about ``most`` of many."""
        return self.levels()

    @abstractmethod
    def moves(self, coded: Array) -> list[Array]:
        """One step aside of codes (n, width), in every way there is; not yet snapped."""

    @abstractmethod
    def natural(self, coded: Array) -> tuple[Array, Array]:
        """Numbers (n) as smooth functions of the code (n, width), and their slopes (n); zero where there is none."""

    def difference(self) -> float:
        """A small step in the user's units, for slopes by differences."""
        lower, upper = self.limits()
        return DIFFERENCE * (upper - lower)

    def lattice(self) -> tuple[float, float, float, bool]:
        """For linear programs: values are base + unit · i with 0 ≤ i ≤ count, and whether i is a whole number."""
        return 0.0, 0.0, 0.0, False

    @abstractmethod
    def nearest(self, number: float) -> Array:
        """The code (width) of the value nearest to a number; of values without numbers the first."""

    # ---------------------------------------------------------------- a context

    @abstractmethod
    def numbers(self, name: str, values: AnyArray) -> Array:
        """(n,) values → the numbers (n) that hold them in a context; InvalidContextError for what is none."""

    def value_of(self, number: float) -> Scalar:
        """The user's value of such a number."""
        return number

    def flaw(self, name: str, numbers: Array) -> str | None:
        """What is wrong with numbers (n) of a record; None: nothing."""
        return None

    @abstractmethod
    def coded_range(self, numbers: Array) -> tuple[float, float]:
        """The numbers that code to 0 and 1, where ``numbers`` (n) were seen."""

    def same_numbers(self, other: Variable | None) -> bool:
        """Whether the numbers of contexts mean the same to ``other``, which takes this variable's place."""
        return True


def some_levels(variable: Variable, coded: Array, most: int) -> Array:
    """Of levels in a row, all; of more than ``most`` the nearest to ``coded`` (1) at doubling distances on both sides,
    and an even spread."""
    if variable.size <= most:
        return variable.levels()
    here, offsets = float(coded[0]), 1.0 / variable.size * 2.0 ** np.arange(0, int(np.log2(variable.size)))
    codes = np.concatenate([here + offsets, here - offsets, np.linspace(0, 1, most // 2)])
    return variable.snap(np.clip(codes, 0.0, 1.0)[:, None])


def format_value(variable: Variable, value: Any) -> str:
    """``value`` with its unit, for people to read."""
    return f"{variable.text(value)}{variable.unit and ' ' + variable.unit}"
