"""What must hold between design variables: comparisons as text, or functions of a design."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edrbo.errors import InvalidSpaceError
from edrbo.space.expressions import Comparison, Dual, Expression, Operation, Reader
from edrbo.space.point_tables import Array
from edrbo.space.variable import Variable

MAX_CONSTRAINTS = 50  # constraints of a space
Function = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Relation:
    """A margin that must be at most zero (below it if ``strict``), or zero if ``equal``; in the user's units."""

    margin: Expression
    equal: bool
    strict: bool
    constraint: int  # which of the constraints it is a part of

    @classmethod
    def of(cls, comparison: Comparison, constraint: int) -> Relation:
        sides = (comparison.left, comparison.right)
        if comparison.sign.startswith(">"):
            sides = sides[::-1]
        return cls(Operation("-", sides), comparison.sign == "==", comparison.sign in ("<", ">"), constraint)


@dataclass(frozen=True)
class Constraint:
    """``text`` in the usual spelling, or a ``function`` of a design's values by name.

    A function says whether a design is allowed: True or False, or a number that is zero or more where it is.
    """

    text: str
    function: Function | None = None

    def describe(self) -> str:
        return self.text


@dataclass(frozen=True, eq=False)
class FunctionMargin(Expression):
    """Minus what a function of the user's says; slopes by differences, none of True and False."""

    function: Function
    text: str  # what it is, for people
    variables: Mapping[str, Variable]  # all k of them

    def evaluate(self, point: Array) -> Dual:
        value, gradient = np.empty(len(point)), np.zeros(point.shape)
        for row, place in enumerate(point):
            value[row], flag = self._ask(place)
            for k, variable in enumerate(() if flag else self.variables.values()):
                if not variable.numeric:
                    continue
                step = variable.difference()
                there = self._aside(place, k, step)
                if not np.isfinite(there):
                    step = -step
                    there = self._aside(place, k, step)
                gradient[row, k] = (there - value[row]) / step
        return value, gradient

    def _aside(self, place: Array, k: int, step: float) -> float:
        moved = place.copy()
        moved[k] += step
        return self._ask(moved)[0]

    def _ask(self, place: Array) -> tuple[float, bool]:
        """Minus the answer, and whether it was True or False."""
        design = {
            name: variable.value_of(number)
            for (name, variable), number in zip(self.variables.items(), place.tolist(), strict=True)
        }
        try:
            answer = self.function(design)
        except ArithmeticError:  # not defined there, as a division by zero
            return np.nan, False
        except Exception as problem:
            raise InvalidSpaceError(f"{self.text} failed: {problem!r}", f"at {design}") from problem
        if isinstance(answer, bool | np.bool_):
            return (-1.0 if answer else 1.0), True
        try:
            return -float(answer), False
        except (TypeError, ValueError):
            hint = "return True or False, or a number that is zero or more where the design is allowed"
            raise InvalidSpaceError(f"{self.text} returned {answer!r}", hint) from None

    def affine(self, width: int) -> None:
        return None

    def uses(self) -> set[int]:
        return set(range(len(self.variables)))


def variable_reader(design: Mapping[str, Variable], context: Iterable[str], example: str = "x1 + x2 <= 1") -> Reader:
    """Reads arithmetic in the design variables, by their places."""
    places = {name: k for k, name in enumerate(design) if design[name].numeric}
    reasons = {name: "is categorical: it has no arithmetic" for name in design if name not in places}
    reasons |= {name: "is a context, which nobody can choose" for name in context}
    return Reader(places, reasons, example)


def read_constraints(
    given: Any, design: Mapping[str, Variable], context: Iterable[str]
) -> tuple[tuple[Constraint, ...], tuple[Relation, ...]]:
    """Constraints as people give them, and the relations they come to, in all design variables in their order."""
    if given is None:
        return (), ()
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):  # sets have no order that stays
        raise InvalidSpaceError(f"constraints is {given!r}", 'give a list, as in constraints=["x1 + x2 <= 1"]')
    items = list(given)
    if len(items) > MAX_CONSTRAINTS:
        raise InvalidSpaceError(f"there are {len(items)} constraints", f"at most {MAX_CONSTRAINTS} can be kept")
    reader = variable_reader(design, context)
    constraints: list[Constraint] = []
    relations: list[Relation] = []
    for item in items:
        constraint, found = _read(item, reader, design, len(constraints))
        if constraint in constraints:
            raise InvalidSpaceError(f"the constraint {constraint.describe()!r} is given twice", "give it once")
        constraints.append(constraint)
        relations += found
    return tuple(constraints), tuple(relations)


def _read(
    item: Any, reader: Reader, design: Mapping[str, Variable], index: int
) -> tuple[Constraint, Sequence[Relation]]:
    if isinstance(item, Constraint):
        item = item.text if item.function is None else item.function
    if isinstance(item, str):
        try:
            text, comparisons = reader.comparisons(item)
        except InvalidSpaceError as problem:
            raise InvalidSpaceError(f"the constraint {problem.message}", problem.hint) from None
        return Constraint(text), [Relation.of(comparison, index) for comparison in comparisons]
    if not callable(item):
        raise InvalidSpaceError(f"a constraint is {item!r}", 'write it as text, "x1 + x2 <= 1", or give a function')
    text = f"function {getattr(item, '__name__', type(item).__name__)}"
    margin = FunctionMargin(item, f"the constraint {text}", dict(design))
    return Constraint(text, item), [Relation(margin, False, False, index)]


def stored_constraints(constraints: Sequence[Constraint]) -> list[str]:
    """As text; a function has none."""
    for constraint in constraints:
        if constraint.function is not None:
            raise InvalidSpaceError(
                f"the constraint {constraint.describe()} is Python code and cannot be stored",
                'write it as text, as in "x1 + x2 <= 1", to keep it in a study or in JSON',
            )
    return [constraint.text for constraint in constraints]
