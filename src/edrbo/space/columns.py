"""Where the variables of a design stand among its coded columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from edrbo.space.variables import Categorical, Real, Variable


@dataclass(frozen=True)
class Column:
    """Where a design variable stands in a coded design: columns ``start`` to ``stop`` (excluded).

    ``kind`` is "real", "integer" or "categorical"; ``size`` the number of values, 0 for a real. Ordered choices count
    as an integer.
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
        size = 0 if isinstance(variable, Real) else variable.size
        kind = "integer" if isinstance(variable, Categorical) and variable.ordered else variable.kind
        columns.append(Column(name, start, start + variable.width, kind, size))
        start += variable.width
    return tuple(columns)
