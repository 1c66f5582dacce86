"""Whether linear constraints can be met at all, exactly: a program of real and integer variables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edrbo.space.columns import Column, Design
from edrbo.space.point_tables import Array

INFEASIBLE = 2  # what SciPy calls a proof that there is no solution
LONGEST = 5.0  # seconds


def solve_linear(
    design: Design, columns: Sequence[Column], affine: Array, equal: NDArray[np.bool_], held: Array
) -> tuple[Array | None, bool]:
    """A coded design (d_x) with slopes · values + constant at most zero, or zero where ``equal`` (J), and whether the
    question was settled: None if none was found, for sure or for want of time.

    ``affine`` is J × (k + 1), the constants last; ``held`` (d_x) has the codes that are given, NaN elsewhere.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    base, unit, low, high, whole = (np.zeros(len(design)) for _ in range(5))
    for k, ((_, variable), column) in enumerate(zip(design, columns, strict=True)):
        if not variable.numeric:
            continue
        base[k], unit[k], high[k], whole[k] = variable.lattice()
        if not np.isnan(held[column.start]):
            (value,) = variable.decode(held[column.start : column.stop][None])
            low[k] = high[k] = (float(value) - base[k]) / unit[k]
            whole[k] = 0
    slopes, constants = affine[:, :-1] * unit, affine[:, :-1] @ base + affine[:, -1]
    size = np.abs(slopes).max(axis=1, initial=1e-300)
    limits = LinearConstraint(slopes / size[:, None], np.where(equal, -constants, -np.inf) / size, -constants / size)
    found = milp(
        np.zeros(len(design)),
        integrality=whole.astype(np.int64),
        bounds=Bounds(low, high),
        constraints=limits,
        options={"time_limit": LONGEST},
    )
    if found.x is None:
        return None, found.status == INFEASIBLE
    values = base + unit * found.x
    row = np.zeros(columns[-1].stop)
    for value, (_, variable), column in zip(values, design, columns, strict=True):
        row[column.start : column.stop] = variable.nearest(float(value))
    return np.where(np.isnan(held), row, held), True
