"""Where the variables of a design stand among its coded columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from edrbo.space.point_tables import Array
from edrbo.space.variable import Variable

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
