"""Gauss-Newton steps onto violated constraints, for many points at once."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edrbo.space.point_tables import Array

AIM = 1e-12  # how far inside an inequality to stop, in its range
MAX_STEPS = 40
DAMPINGS = (1.0, 0.4)  # of the steps, in a first and a second attempt
RIDGE = 1e-12
Mask = NDArray[np.bool_]


class Relations(Protocol):
    """At most zero or, where ``equal`` (J), zero."""

    equal: Mask

    def margins(self, coded: Array) -> tuple[Array, Array]: ...


def project(relations: Relations, coded: Array, movable: Mask) -> Array:
    """Points (n × d) of the unit box near ``coded`` that violate less, as far as it is found; only ``movable`` columns
    (d) differ. A point that violates nothing stays."""
    coded = np.array(coded)
    if not movable.any() or not len(relations.equal):
        return coded
    for damping in DAMPINGS:
        rows = np.flatnonzero(_missed(relations, relations.margins(coded)[0]) > 0.0)
        if not len(rows):
            break
        # what was violated once is kept level, which ends the zigzag between two; not so in the second attempt
        coded[rows] = _descend(relations, coded[rows], movable, damping, sticky=damping == 1.0)
    return coded


def _missed(relations: Relations, margin: Array) -> Array:
    """By how much each point (n) misses the aim; zero if it is reached."""
    missed = np.where(relations.equal, np.abs(margin), np.maximum(margin + AIM, 0.0))
    worst: Array = np.where(np.isfinite(margin), missed, np.inf).max(axis=1)
    return np.where(worst <= 0.5 * AIM, 0.0, worst)


def _descend(relations: Relations, start: Array, movable: Mask, damping: float, *, sticky: bool) -> Array:
    point, best = start.copy(), start.copy()
    least = np.full(len(start), np.inf)
    held = np.zeros((len(start), len(relations.equal)), dtype=bool)
    rows = np.arange(len(start))
    for _ in range(MAX_STEPS):
        margin, gradient = relations.margins(point[rows])
        missed = _missed(relations, margin)
        better = missed < least[rows]
        best[rows[better]], least[rows[better]] = point[rows[better]], missed[better]
        going = (missed > 0.0) & np.isfinite(missed)
        rows, margin, gradient = rows[going], margin[going], gradient[going]
        if not len(rows):
            break
        active = relations.equal | (margin > -AIM)
        held[rows] = active | held[rows] if sticky else active
        step = _newton(point[rows], margin, gradient * movable, held[rows], relations.equal)
        moved = np.clip(point[rows] + damping * step, 0.0, 1.0)
        changed = np.abs(moved - point[rows]).max(axis=1) > 1e-15  # where it leads nowhere it ends
        point[rows], rows = moved, rows[changed]
    return best


def _newton(point: Array, margin: Array, gradient: Array, active: Mask, equal: Mask) -> Array:
    """The shortest step (n × d) that meets the active relations to first order without leaving the box at once."""
    wanted = np.where(active, np.where(equal, margin, np.maximum(margin + AIM, 0.0)), 0.0)[..., None]
    gradient = np.where(np.isfinite(gradient), gradient, 0.0) * active[..., None]
    blocked = np.zeros(point.shape, dtype=bool)
    step = np.zeros(point.shape)
    for _ in range(3):
        open_columns = gradient * ~blocked[:, None, :]
        gram = open_columns @ open_columns.swapaxes(1, 2)
        diagonal = np.einsum("njj->nj", gram)
        diagonal += np.where(active, RIDGE * (1.0 + diagonal), 1.0)
        step = -(open_columns.swapaxes(1, 2) @ np.linalg.solve(gram, wanted))[..., 0]
        outward = ((point <= 0.0) & (step < 0.0)) | ((point >= 1.0) & (step > 0.0))
        if not outward.any():
            break
        blocked |= outward
    return step
