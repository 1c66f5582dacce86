"""What a design or context variable is, and its kinds: real, integer, categorical (in no order or in one).

A kind of variable is a subclass of ``Variable``, and nothing else in the package knows which. It codes its values into
[0, 1] for a design: a coded real is its position between the bounds, a coded integer lies in its rounding cell (the
center of an equal share of [0, 1]; on a log scale the share is that of the logarithm), a coded categorical is a one-hot
row. In a context a value is one number in the user's units (of a choice its position), which a ``ContextScale`` codes.

``unit``, ``digits`` and ``step`` are for people: suggestions lie on the steps, what was really set need not. A variable
that comes later has a ``default``: the value that runs had before it came.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import EdrboError, InvalidContextError, InvalidDesignError, InvalidSpaceError
from edrbo.space.context_scale import robust_range
from edrbo.space.point_tables import AnyArray, Array, close_match, read_numbers
from edrbo.space.tolerance import Tolerance, check_tolerance

__all__ = [
    "Categorical",
    "Integer",
    "Real",
    "Scalar",
    "Variable",
    "format_value",
    "read_variable",
    "read_variables",
    "variable_from_dict",
]


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
    parts = {name: getattr(variable, name, None) for name in ("unit", "digits", "step", "tolerance", "default")}
    return {name: value for name, value in parts.items() if value not in (None, "")}


def format_extras(variable: Any) -> str:
    return "".join(f", {name}={value!r}" for name, value in given_extras(variable).items())


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
            f"the lower end ({number_text(lower, None)}) must be below the upper one ({number_text(upper, None)})",
            "what never changes is left out",
        )


def check_inside(name: str, numbers: Array, lower: float, upper: float) -> None:
    outside = (numbers < lower) | (numbers > upper)
    if outside.any():
        value = float(numbers[np.argmax(outside)])
        said = number_text(value, None)
        if said in (number_text(lower, None), number_text(upper, None)):
            said = repr(value)  # outside by less than is shown
        raise InvalidDesignError(
            f"{name} is {said}, outside {number_text(lower, None)} to {number_text(upper, None)}",
            f"correct it, or widen the range: edrbo amend -d {name}=LOW:HIGH",
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


@dataclass(frozen=True, repr=False)
class Categorical(Variable):
    """One of two or more ``choices``, in no order; coded as a one-hot row.

    ``ordered`` choices (small, medium, large) stand in one column at equal distances, so that neighbors are alike.

    Args:
        choices: The levels: strings, numbers or bools.
        unit: The unit that is shown.
        ordered: Whether the choices have an order, in which neighbors are alike.
        default: What runs had before the variable came.
    """

    choices: tuple[Scalar, ...]
    unit: str = ""
    ordered: bool = False
    default: Scalar | None = field(default=None, compare=False)

    kind: ClassVar[str] = "categorical"
    numeric: ClassVar[bool] = False

    def __post_init__(self) -> None:
        choices = _read_choices(self.choices)
        for choice in choices:
            if not isinstance(choice, Scalar) or choice != choice:
                raise InvalidSpaceError(f"{choice!r} cannot be a choice", "use strings, numbers or bools")
        if len(set(choices)) != len(choices):
            raise InvalidSpaceError(f"the choices {choices!r} repeat", "name each once; True equals 1")
        if len(choices) < 2:
            raise InvalidSpaceError(f"{choices!r} leaves no choice", "leave a constant out of the space")
        if not isinstance(self.ordered, bool):
            raise InvalidSpaceError(f"ordered is {self.ordered!r}", "it is True or False")
        object.__setattr__(self, "choices", choices)
        check_unit(self.unit)
        check_default(self)

    def __repr__(self) -> str:
        return f"Categorical({list(self.choices)!r}{', ordered=True' if self.ordered else ''}{format_extras(self)})"

    def describe(self) -> str:
        """For people: "a, b or c", or "a < b < c"."""
        if self.ordered:
            return f"{' < '.join(map(str, self.choices))}{self.unit and ' ' + self.unit}"
        *first, last = map(str, self.choices)
        return f"{', '.join(first)} or {last}{self.unit and ' ' + self.unit}"

    def text(self, value: Any) -> str:
        """``value`` as it is shown, without its unit."""
        return number_text(value) if isinstance(value, float) else str(value)

    @property
    def width(self) -> int:
        return 1 if self.ordered else len(self.choices)

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.choices)

    def encode(self, name: str, values: AnyArray) -> Array:
        """(n,) values → (n, width) coded; InvalidDesignError names an unknown choice."""
        coded: Array = self.levels()[self.places(name, values, "design", InvalidDesignError)]
        return coded

    def places(self, name: str, values: AnyArray, what: str, error: type[EdrboError]) -> NDArray[np.intp]:
        """(n,) values → which choices they are; ``error`` names an unknown one of a ``what`` variable."""
        position = {choice: index for index, choice in enumerate(self.choices)}
        indices = np.zeros(len(values), dtype=np.intp)
        for row, value in enumerate(map(_plain, values)):
            # bool and number are distinguished: True is not the choice 1, though Python calls them equal.
            index = position.get(value) if isinstance(value, Scalar) else None
            if index is None or isinstance(value, bool) != isinstance(self.choices[index], bool):
                strings = [choice for choice in self.choices if isinstance(choice, str)]
                hint = close_match(value, strings, f"the choices are {', '.join(map(str, self.choices))}")
                raise error(f"{what} variable {name!r} is {value!r}, not one of its choices", hint)
            indices[row] = index
        return indices

    def decode(self, coded: Array) -> list[Scalar]:
        """(n, width) → the choice nearest to each row."""
        return [self.choices[index] for index in self.positions(coded)]

    def positions(self, coded: Array) -> NDArray[np.intp]:
        """(..., width) → which choice (...): that of the largest entry, or in whose share of [0, 1] the entry lies."""
        if not self.ordered:
            largest: NDArray[np.intp] = np.argmax(coded, axis=-1)
            return largest
        shares = np.floor(np.clip(coded[..., 0], 0.0, 1.0) * self.size).astype(np.intp)
        return np.minimum(shares, self.size - 1)

    def snap(self, coded: Array) -> Array:
        """(..., width) → the nearest coded value."""
        snapped: Array = self.levels()[self.positions(coded)]
        return snapped

    def neighbors(self, coded: Array, most: int) -> Array:
        return some_levels(self, coded, most) if self.ordered else self.levels()

    def moves(self, coded: Array) -> list[Array]:
        return [np.broadcast_to(level, coded.shape) for level in self.levels()]

    def natural(self, coded: Array) -> tuple[Array, Array]:
        """Positions; they have no slope."""
        places = self.positions(coded).astype(np.float64)
        return places, np.zeros_like(places)

    def nearest(self, number: float) -> Array:
        first: Array = self.levels()[0]
        return first

    def limits(self) -> tuple[float, float]:
        """Of the positions."""
        return 0.0, self.size - 1.0

    def labels(self) -> list[str]:
        return [str(choice) for choice in self.choices]

    def grid(self, count: int) -> list[Any]:
        return list(self.choices)

    def numbers(self, name: str, values: AnyArray) -> Array:
        return self.places(name, values, "context", InvalidContextError).astype(np.float64)

    def value_of(self, number: float) -> Scalar:
        return self.choices[int(np.clip(np.rint(number), 0, self.size - 1))]

    def flaw(self, name: str, numbers: Array) -> str | None:
        if (numbers != np.round(numbers)).any():
            return f"{name!r} is no whole number"
        return f"{name!r} has {self.size} choices" if ((numbers < 0) | (numbers >= self.size)).any() else None

    def coded_range(self, numbers: Array) -> tuple[float, float]:
        return -0.5, self.size - 0.5

    def same_numbers(self, other: Variable | None) -> bool:
        return isinstance(other, Categorical) and other.choices[: self.size] == self.choices

    def levels(self) -> Array:
        """Every coded value, in order, (size, width)."""
        return (np.arange(self.size)[:, None] + 0.5) / self.size if self.ordered else np.eye(self.size)

    def to_dict(self) -> dict[str, Any]:
        order = {"ordered": True} if self.ordered else {}
        return {"kind": self.kind, "choices": list(self.choices), **order, **given_extras(self)}


def _read_choices(given: Any) -> tuple[Any, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidSpaceError(f"the choices are {given!r}", "give a list of choices")
    return tuple(_plain(choice) for choice in given)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


# A range with one bound must leave room beyond that bound.
LARGEST_LONE_BOUND = 1e300


class NumericVariable(Variable):
    """A variable whose values are numbers."""

    @abstractmethod
    def ends_of_code(self) -> tuple[float, float]:
        """The numbers at the codes 0 and 1."""

    @abstractmethod
    def step_between(self) -> float:
        """How far apart neighboring levels are; 0.0: there are none."""

    def moves(self, coded: Array) -> list[Array]:
        start, end = self.ends_of_code()
        if self.log:
            width = math.log(end) - math.log(start)
            step = np.log1p(self.step_between() / np.exp(math.log(start) + coded * width)) / width
        else:
            step = np.full(coded.shape, self.step_between() / (end - start))
        return [np.clip(coded + way * step, 0.0, 1.0) for way in (1.0, -1.0)]

    def natural(self, coded: Array) -> tuple[Array, Array]:
        """Between the levels of an integer its number is fractional."""
        code = coded[:, 0]
        start, end = self.ends_of_code()
        if self.log:
            start, end = math.log(start), math.log(end)
            numbers = np.exp(start + code * (end - start))
            return numbers, numbers * (end - start)
        return start + code * (end - start), np.full(code.shape, end - start)

    def nearest(self, number: float) -> Array:
        coded: Array = self.encode("", np.clip(np.array([number]), *self.limits()))[0]
        return coded

    def numbers(self, name: str, values: AnyArray) -> Array:
        return read_numbers(name, values, "context", InvalidContextError)


@dataclass(frozen=True, repr=False)
class Real(NumericVariable):
    """A real variable between ``lower`` and ``upper``; ``log=True`` codes its logarithm.

    ``None`` is an absent bound, which only context variables may have. Suggestions are multiples of ``step`` from the
    lower bound; values are shown in their ``unit`` with ``digits`` after the point. ``tolerance`` is how far what comes
    out may be off what is set: a standard deviation as 1.0 or "2 %", a half-width as "±1.5" or "±2 %".

    Args:
        lower: The least value; None for a context without bounds.
        upper: The largest value.
        log: Whether the logarithm is coded.
        unit: The unit that is shown.
        digits: How many digits after the point are shown.
        step: Suggestions are multiples of it from the lower bound.
        default: What runs had before the variable came.
        tolerance: How far what comes out may be off: 1.0 or "2 %" (standard deviation), "±1.5" (half-width).
    """

    lower: float | None = None
    upper: float | None = None
    log: bool = False
    unit: str = ""
    digits: int | None = None
    step: float | None = None
    default: float | None = field(default=None, compare=False)
    tolerance: float | str | None = None

    kind: ClassVar[str] = "real"

    def __post_init__(self) -> None:
        for side in ("lower", "upper"):
            object.__setattr__(self, side, real_bound(getattr(self, side)))
        check_log_flag(self.log)
        if self.lower is not None and self.upper is not None:
            check_range(self.lower, self.upper)
        elif max(abs(self.lower or 0.0), abs(self.upper or 0.0)) > LARGEST_LONE_BOUND:
            raise InvalidSpaceError(f"{self!r} leaves no room", "a lone bound is at most 1e300 in magnitude")
        if self.log:
            if self.lower is None or self.upper is None or self.lower <= 0:
                raise InvalidSpaceError(f"{self!r} has no logarithm", "log needs two positive bounds")
            if math.log(self.upper) <= math.log(self.lower):
                raise InvalidSpaceError(f"the logarithms of {self!r} are equal", "drop the log scale")
        check_unit(self.unit)
        check_digits(self.digits)
        if self.step is not None:
            object.__setattr__(self, "step", real_bound(self.step))
            self._steps()
        if self.tolerance is not None:
            record = check_tolerance(self.tolerance, self.lower, self.upper, self.log)
            object.__setattr__(self, "tolerance", record)
        check_default(self)

    def __repr__(self) -> str:
        bounds = "" if self.lower is None and self.upper is None else f"{self.lower!r}, {self.upper!r}"
        words = f"{bounds}{', log=True' if self.log else ''}{format_extras(self)}"
        return f"Real({words.removeprefix(', ')})"

    def describe(self) -> str:
        """For people: "10 to 60 m/min in steps of 0.5"."""
        ends = [None if end is None else self.text(end) for end in (self.lower, self.upper)]
        if ends[0] is None or ends[1] is None:
            known = [f"from {ends[0]}"] * (ends[0] is not None) + [f"up to {ends[1]}"] * (ends[1] is not None)
            text = " ".join(known) or "any number"
        else:
            text = f"{ends[0]} to {ends[1]}"
        steps = "" if self.step is None else f" in steps of {number_text(self.step)}"
        off = "" if self.tolerance is None else f", {Tolerance.read(self.tolerance).describe(self.unit)}"
        return f"{text}{self.unit and ' ' + self.unit}{steps}{', on a logarithmic scale' if self.log else ''}{off}"

    def text(self, value: Any) -> str:
        """``value`` as it is shown, without its unit."""
        return number_text(float(value), self.digits)

    def _steps(self) -> Steps | None:
        return None if self.step is None else Steps(*self.bounds(), self.step)

    @property
    def bounded(self) -> bool:
        return self.lower is not None and self.upper is not None

    @property
    def ends(self) -> tuple[float | None, float | None]:
        return self.lower, self.upper

    def limits(self) -> tuple[float, float]:
        return -math.inf if self.lower is None else self.lower, math.inf if self.upper is None else self.upper

    def ends_of_code(self) -> tuple[float, float]:
        return self.bounds()

    def step_between(self) -> float:
        return self.step or 0.0

    @property
    def steps_apart(self) -> bool:
        return self.step is not None

    def grid(self, count: int) -> list[Any]:
        return self.decode(np.linspace(0.0, 1.0, count)[:, None])

    def lattice(self) -> tuple[float, float, float, bool]:
        lower, upper = self.bounds()
        if self.step is None:
            return lower, 1.0, upper - lower, False
        return lower, self.step, float(np.floor((upper - lower) / self.step * (1.0 + 1e-9))), True

    def coded_range(self, numbers: Array) -> tuple[float, float]:
        return robust_range(self.lower, self.upper, numbers, self.log)

    def bounds(self) -> tuple[float, float]:
        """(lower, upper) of a bounded variable."""
        if self.lower is None or self.upper is None:
            raise InvalidSpaceError("a setting needs a range: both of its ends", "as speed=10:80")
        return self.lower, self.upper

    def encode(self, name: str, values: AnyArray) -> Array:
        """(n,) values → (n, 1) coded; InvalidDesignError names what is not inside the bounds."""
        numbers = read_numbers(name, values, "design", InvalidDesignError)
        lower, upper = self.bounds()
        check_inside(name, numbers, lower, upper)
        coded, low, high = numbers, lower, upper
        if self.log:
            coded, low, high = np.log(numbers), math.log(lower), math.log(upper)
        coded = np.clip((coded - low) / (high - low), 0.0, 1.0)
        # The bounds are the ends exactly, although NumPy's logarithm and Python's may differ in the last bit.
        coded = np.where(numbers == lower, 0.0, np.where(numbers == upper, 1.0, coded))
        return coded[:, None]

    def decode(self, coded: Array) -> list[Scalar]:
        """(n, 1) coded → n floats inside the bounds; the ends of [0, 1] give the bounds exactly."""
        position = np.clip(coded[:, 0], 0.0, 1.0)
        lower, upper = self.bounds()
        if self.log:
            with np.errstate(over="ignore"):  # beside the largest float; the clip below brings it back
                values = np.exp(math.log(lower) + position * (math.log(upper) - math.log(lower)))
        else:
            values = lower + position * (upper - lower)
        values = np.clip(values, lower, upper)
        values = np.where(position == 0.0, lower, np.where(position == 1.0, upper, values))
        steps = self._steps()
        decoded: list[Scalar] = (values if steps is None else steps.tidy(values)).tolist()
        return decoded

    def settle(self, coded: Array) -> Array:
        """(..., 1) → the nearest coded value that can be set; here also between the steps."""
        return np.clip(coded, 0.0, 1.0)

    def snap(self, coded: Array) -> Array:
        """(..., 1) → the nearest coded value to suggest: on a step, if there are any."""
        steps = self._steps()
        if steps is None:
            return np.clip(coded, 0.0, 1.0)
        flat = np.asarray(self.decode(coded.reshape(-1, 1)), dtype=np.float64)
        return self.encode("", steps.nearest(flat)).reshape(coded.shape)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "lower": self.lower, "upper": self.upper, "log": self.log, **given_extras(self)}


@dataclass(frozen=True, repr=False)
class Integer(NumericVariable):
    """An integer variable from ``lower`` to ``upper``, both included; ``log=True`` codes its logarithm.

    Args:
        lower: The least value.
        upper: The largest value.
        log: Whether the logarithm is coded.
        unit: The unit that is shown.
        default: What runs had before the variable came.
    """

    lower: int
    upper: int
    log: bool = False
    unit: str = ""
    default: int | None = field(default=None, compare=False)

    kind: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        for side in ("lower", "upper"):
            object.__setattr__(self, side, integer_bound(getattr(self, side)))
        check_log_flag(self.log)
        check_range(self.lower, self.upper)
        if self.log and self.lower < 1:
            raise InvalidSpaceError(f"{self!r} has no logarithm", "log needs a lower bound of 1 or more")
        check_unit(self.unit)
        check_default(self)

    def __repr__(self) -> str:
        return f"Integer({self.lower}, {self.upper}{', log=True' if self.log else ''}{format_extras(self)})"

    def describe(self) -> str:
        """For people: "1 to 8, whole numbers"."""
        scale = ", on a logarithmic scale" if self.log else ""
        return f"{self.lower} to {self.upper}{self.unit and ' ' + self.unit}, whole numbers{scale}"

    def text(self, value: Any) -> str:
        """``value`` as it is shown, without its unit."""
        return str(value)

    @property
    def size(self) -> int:
        """How many values there are."""
        return self.upper - self.lower + 1

    def encode(self, name: str, values: AnyArray) -> Array:
        """(n,) values → (n, 1) coded; InvalidDesignError names what is no integer or outside the bounds."""
        numbers = read_numbers(name, values, "design", InvalidDesignError)
        fractional = numbers != np.floor(numbers)
        if fractional.any():
            value = float(numbers[np.argmax(fractional)])
            raise InvalidDesignError(
                f"design variable {name!r} is {value!r}, which is not an integer",
                f"give a whole number from {self.lower} to {self.upper}",
            )
        check_inside(name, numbers, self.lower, self.upper)
        return self._code(numbers)[:, None]

    def limits(self) -> tuple[float, float]:
        return self.lower, self.upper

    def ends_of_code(self) -> tuple[float, float]:
        """Half a unit outside."""
        return self.lower - 0.5, self.upper + 0.5

    def step_between(self) -> float:
        return 1.0

    def grid(self, count: int) -> list[Any]:
        places = np.linspace(self.lower, self.upper, min(self.size, count))
        return sorted({round(place) for place in places.tolist()})

    def difference(self) -> float:
        return 1.0

    def lattice(self) -> tuple[float, float, float, bool]:
        return float(self.lower), 1.0, float(self.upper - self.lower), True

    def nearest(self, number: float) -> Array:
        return super().nearest(round(number))

    def numbers(self, name: str, values: AnyArray) -> Array:
        numbers = super().numbers(name, values)
        if (broken := numbers != np.floor(numbers)).any():
            value = float(numbers[np.argmax(broken)])
            hint = "give a whole number, or make it a Real"
            raise InvalidContextError(f"context variable {name!r} is {value!r}, which is not an integer", hint)
        return numbers

    def value_of(self, number: float) -> int:
        return int(np.rint(number))

    def flaw(self, name: str, numbers: Array) -> str | None:
        return f"{name!r} is no whole number" if (numbers != np.round(numbers)).any() else None

    def coded_range(self, numbers: Array) -> tuple[float, float]:
        # every level stands in the middle of its share, as those of designs
        return robust_range(*self.ends_of_code(), numbers, self.log)

    def decode(self, coded: Array) -> list[Scalar]:
        """(n, 1) coded → n ints, each the one whose cell holds the coded value."""
        decoded: list[Scalar] = self._nearest(coded[:, 0]).astype(np.int64).tolist()
        return decoded

    def snap(self, coded: Array) -> Array:
        """(..., 1) → the nearest coded value of the variable."""
        return self._code(self._nearest(coded))

    def neighbors(self, coded: Array, most: int) -> Array:
        return some_levels(self, coded, most)

    def levels(self) -> Array:
        return self._code(np.arange(self.lower, self.upper + 1, dtype=np.float64))[:, None]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "lower": self.lower, "upper": self.upper, "log": self.log, **given_extras(self)}

    def _code(self, numbers: Array) -> Array:
        if not self.log:
            return (numbers - self.lower + 0.5) / self.size
        start, end = math.log(self.lower - 0.5), math.log(self.upper + 0.5)
        coded: Array = (np.log(numbers) - start) / (end - start)
        return coded

    def _nearest(self, coded: Array) -> Array:
        position = np.clip(coded, 0.0, 1.0)
        if self.log:
            start, end = math.log(self.lower - 0.5), math.log(self.upper + 0.5)
            numbers = np.floor(np.exp(start + position * (end - start)) + 0.5)
        else:
            numbers = self.lower + np.floor(position * self.size)
        return np.clip(numbers, self.lower, self.upper)


def read_variable(given: Any) -> Variable:
    """A variable from itself or a shorthand.

    A pair of numbers is a Real (integers must be asked for with Integer), ``None`` an unbounded Real, a
    list or a tuple of strings a Categorical.
    """
    if isinstance(given, Variable):
        return given
    if given is None:
        return Real()
    if isinstance(given, list) or (isinstance(given, tuple) and any(isinstance(item, str | bool) for item in given)):
        return Categorical(tuple(given))
    if isinstance(given, tuple) and len(given) == 2:
        return Real(*given)
    raise InvalidSpaceError(
        f"{given!r} is not a variable", "write (lower, upper), Real(...), Integer(...) or a list of choices"
    )


def read_variables(given: Any, role: str) -> dict[str, Variable]:
    """Variables by name; ``role`` is whose they are."""
    if not isinstance(given, Mapping):
        raise InvalidSpaceError(f"{role} is {given!r}", f'give a dict, as in {role}={{"x": (0, 1)}}')
    for name in given:
        if not isinstance(name, str) or not name:
            raise InvalidSpaceError(f"{name!r} cannot name a {role} variable", "names are non-empty strings")
    variables: dict[str, Variable] = {}
    for name, variable in given.items():
        try:
            variables[name] = read_variable(variable)
        except InvalidSpaceError as problem:
            raise InvalidSpaceError(f"{role} variable {name!r}: {problem.message}", problem.hint) from None
    return variables


def variable_from_dict(record: Any) -> Variable:
    """The inverse of ``to_dict``."""
    try:
        arguments = dict(record)
        return Variable.kinds[arguments.pop("kind")](**arguments)
    except (KeyError, TypeError, ValueError) as problem:
        if isinstance(problem, InvalidSpaceError):
            raise
        raise InvalidSpaceError(f"{record!r} does not describe a variable", "it was not written by to_dict") from None


Design = Sequence[tuple[str, Variable]]


@dataclass(frozen=True)
class Column:
    """Where a design variable stands in a coded design: columns ``start`` to ``stop`` (excluded).

    ``kind`` is "real" (any value between the ends), "integer" (levels in a row, ordered choices too) or "categorical"
    (a column for each choice); ``size`` is the number of values, 0 for a real.
    """

    name: str
    start: int
    stop: int
    kind: str
    size: int


def columns_of(design: Iterable[tuple[str, Variable]]) -> tuple[Column, ...]:
    """The place of each variable, in order."""
    columns: list[Column] = []
    start = 0
    for name, variable in design:
        kind = "real" if not variable.size else "integer" if variable.width == 1 else "categorical"
        columns.append(Column(name, start, start + variable.width, kind, variable.size))
        start += variable.width
    return tuple(columns)


def natural_values(design: Design, columns: Sequence[Column], coded: Array) -> tuple[Array, Array]:
    """Values (n × k) of coded designs (n × d_x) in the user's units, smooth in the code, and the slopes of the numeric
    ones by their column (n × k)."""
    parts = [v.natural(coded[:, c.start : c.stop]) for (_, v), c in zip(design, columns, strict=True)]
    values, slopes = (np.stack(some, axis=1) for some in zip(*parts, strict=True))
    return values, slopes


def snap(design: Design, columns: Sequence[Column], coded: Array) -> Array:
    """The nearest coded designs (n × d_x) to suggest."""
    parts = [v.snap(coded[:, c.start : c.stop]) for (_, v), c in zip(design, columns, strict=True)]
    return np.concatenate(parts, axis=1)
