"""What a run of a design costs: arithmetic in the names of the variables, or a function of a design's values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edrbo.errors import InvalidSpaceError, InvalidValueError, NotStorableError
from edrbo.space.expressions import Expression, FunctionMargin, Number, Operation, variable_reader
from edrbo.space.point_tables import Array
from edrbo.space.space import Space
from edrbo.space.variables import natural_values

PROBES = 512  # designs within, and as many corners, at which a cost must be above zero
PROHIBITIVE = 1e300
HOW = 'write it as "10 + 2 * dose", or give a function of a design'
Function = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Cost:
    """``text`` for people, or the name of a ``function``; and what it says of the designs of ``space``."""

    text: str
    function: Function | None
    space: Space = field(compare=False, repr=False)
    expression: Expression = field(compare=False, repr=False)

    def of(self, coded: Array) -> Array:
        """The cost of coded designs (n × d_x), n."""
        return self.and_slope(coded)[0]

    def and_slope(self, coded: Array) -> tuple[Array, Array]:
        """The cost (n) and its gradient by the coded columns (n × d_x); where it is no cost, more than anybody has."""
        cost, gradient = self._raw(coded)
        sound = np.isfinite(cost) & (cost > 0)
        return np.where(sound, cost, PROHIBITIVE), np.where(sound[:, None] & np.isfinite(gradient), gradient, 0.0)

    def _raw(self, coded: Array) -> tuple[Array, Array]:
        design, columns = list(self.space.design.items()), self.space.columns
        values, slopes = natural_values(design, columns, coded)
        cost, by_value = self.expression.evaluate(values)
        gradient = np.zeros(coded.shape)
        gradient[:, [column.start for column in columns]] = by_value * slopes
        return cost, gradient

    def to_text(self) -> str:
        """For people."""
        return self.text

    def stored(self) -> str:
        """As it is kept; a function has no text."""
        if self.function is not None:
            raise NotStorableError(
                f"the cost is {self.text}, which is Python code and cannot be stored",
                'write it as text, as in "10 + 2 * dose", to keep it in a study or in JSON',
            )
        return self.text


def as_cost(given: Any, space: Space) -> Cost | None:
    """A cost that is a finite number above zero wherever it was looked at; None for none."""
    if isinstance(given, Cost):
        if given.space == space:  # it was looked at already
            return given
        given = given.text if given.function is None else given.function
    if given is None or (isinstance(given, str) and given.strip().lower() in ("", "none")):
        return None
    cost = _of_text(given, space) if isinstance(given, str) else _of_function(given, space)
    inside = np.random.default_rng(0).random((PROBES, space.d_x))
    corners = np.round(np.random.default_rng(1).random((PROBES, space.d_x)))
    probes = space.admit(np.concatenate([inside, corners]) if cost.function is None else inside[: PROBES // 8])
    found = cost._raw(probes)[0]
    wrong = ~(np.isfinite(found) & (found > 0))
    if wrong.any():
        place = int(wrong.argmax())
        (design,) = space.decode_designs(probes[place])
        message = f"the cost {cost.text!r} is {found[place]:.6g} at {design}"
        raise InvalidSpaceError(message, "a run costs more than nothing, whatever its design")
    return cost


def _of_text(text: str, space: Space) -> Cost:
    try:
        text, expression = variable_reader(space.design, space.context, "10 + 2 * dose").number(text)
    except InvalidSpaceError as problem:
        raise InvalidSpaceError(f"the cost {problem.message}", problem.hint) from None
    return Cost(text, None, space, expression)


def _of_function(given: Any, space: Space) -> Cost:
    if not callable(given):
        raise InvalidValueError(f"the cost is {given!r}", HOW)
    text = f"function {getattr(given, '__name__', type(given).__name__)}"

    def number(design: dict[str, Any]) -> float:
        answer = given(design)
        if isinstance(answer, bool | np.bool_ | str):
            raise TypeError(f"it returned {answer!r}, and a cost is a number")
        return float(answer)

    minus = FunctionMargin(number, f"the cost {text}", space.design)
    return Cost(text, given, space, Operation("-", (Number(0.0), minus)))
