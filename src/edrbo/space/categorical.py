"""Variables whose values have names, in no order or in one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import EdrboError, InvalidContextError, InvalidDesignError, InvalidSpaceError
from edrbo.space.point_tables import AnyArray, Array, close_match
from edrbo.space.steps import check_default, check_unit, format_extras, given_extras, number_text
from edrbo.space.variable import Scalar, Variable, some_levels


@dataclass(frozen=True, repr=False)
class Categorical(Variable):
    """One of two or more ``choices``, in no order; coded as a one-hot row.

    ``ordered`` choices (small, medium, large) stand in one column at equal distances, so that neighbors are alike.
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
            # bool and number are told apart: True is not the choice 1, though Python calls them equal.
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
