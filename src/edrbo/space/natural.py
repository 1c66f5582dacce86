"""Coded designs in the user's units as smooth functions of the code, and the way back to values that can be set."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from edrbo.space.columns import Column
from edrbo.space.tables import Array
from edrbo.space.variables import Categorical, Integer, Real, Variable

Design = Sequence[tuple[str, Variable]]


def natural_values(design: Design, columns: Sequence[Column], coded: Array) -> tuple[Array, Array]:
    """Values (n × k) of coded designs (n × d_x) and the slopes of the numeric ones by their column (n × k).

    Between the levels of an integer its value is fractional; a categorical counts as the index of its choice, slope 0.
    """
    values, slopes = np.empty((len(coded), len(design))), np.zeros((len(coded), len(design)))
    for k, ((_, variable), column) in enumerate(zip(design, columns, strict=True)):
        code = coded[:, column.start]
        if isinstance(variable, Categorical):
            values[:, k] = variable.positions(coded[:, column.start : column.stop])
            continue
        start, end = _ends(variable)
        if variable.log:
            start, end = math.log(start), math.log(end)
            values[:, k] = np.exp(start + code * (end - start))
            slopes[:, k] = values[:, k] * (end - start)
        else:
            values[:, k], slopes[:, k] = start + code * (end - start), end - start
    return values, slopes


def _ends(variable: Real | Integer) -> tuple[float, float]:
    """The values at the codes 0 and 1; an integer's are half a unit outside."""
    return variable.bounds() if isinstance(variable, Real) else (variable.lower - 0.5, variable.upper + 0.5)


def snap(design: Design, columns: Sequence[Column], coded: Array) -> Array:
    """The nearest coded designs (n × d_x) to suggest."""
    parts = [v.snap(coded[:, c.start : c.stop]) for (_, v), c in zip(design, columns, strict=True)]
    return np.concatenate(parts, axis=1)


def is_discrete(variable: Variable) -> bool:
    return not isinstance(variable, Real) or variable.step is not None


def one_step(variable: Real | Integer, code: Array) -> Array:
    """How far the code (n) moves from level to level there."""
    start, end = _ends(variable)
    step = 1.0 if isinstance(variable, Integer) else variable.step or 0.0
    if not variable.log:
        return np.full(code.shape, step / (end - start))
    width = math.log(end) - math.log(start)
    moved: Array = np.log1p(step / np.exp(math.log(start) + code * width)) / width
    return moved
