"""Points spread over a region: each walks along random directions, with steps that shrink until they stay inside.

Every second direction leads from one of the points to another, so that walks are as long as the region is: along a thin
one a direction at random leads out at once (an adaptive direction sampler; Gilks, Roberts and George, 1994).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edrbo.space.point_tables import Array
from edrbo.space.projection import Relations, project

ROUNDS = 24  # directions
SHRINKS = 10  # lengths tried along each
DRAWN_IN = 0.1  # of the way to the middle, before the first step
Mask = NDArray[np.bool_]


class Place(Relations, Protocol):
    free: Mask

    def inside(self, coded: Array) -> Mask: ...


def mix(place: Place, points: Array, seed: int) -> Array:
    """``points`` (n × d) inside, moved at random in the free columns; what was inside stays so."""
    random = np.random.default_rng(seed)
    if not place.free.any():
        return points.copy()
    points = _drawn_in(place, points)
    for turn in range(ROUNDS):
        direction = random.standard_normal(points.shape)
        if turn % 2:
            one, other = (points[random.permutation(len(points))] for _ in range(2))
            direction = np.where((one == other).all(axis=1, keepdims=True), direction, other - one)
        direction = _along(place, points, direction * place.free)
        low, high = _box_interval(points, direction)
        rows = np.arange(len(points))
        for _ in range(SHRINKS):
            length = low[rows] + (high[rows] - low[rows]) * random.random(len(rows))
            tried = np.clip(points[rows] + length[:, None] * direction[rows], 0.0, 1.0)
            ok: Mask = np.ones(len(rows), dtype=np.bool_)
            if place.equal.any():
                # what is outside must not be brought to the wall, where points would gather
                ok = np.asarray((place.margins(tried)[0][:, ~place.equal] <= 0.0).all(axis=1))
                tried = project(place, tried, place.free)
            ok = ok & place.inside(tried)
            points[rows[ok]] = tried[ok]
            left = rows[~ok]
            short = length[~ok]
            low[left], high[left] = np.where(short < 0, short, low[left]), np.where(short < 0, high[left], short)
            rows = left
            if not len(rows):
                break
    return points


def _drawn_in(place: Place, points: Array) -> Array:
    """``points`` (n × d) a little toward their middle, those that are inside there too: where several walls meet, most
    directions lead out, and a walk might never leave the corner."""
    nearer = points + DRAWN_IN * (points.mean(axis=0) - points) * place.free
    return np.where(place.inside(nearer)[:, None], nearer, points)


def _along(place: Place, points: Array, direction: Array) -> Array:
    """The part of ``direction`` (n × d) along which the equalities stay what they are."""
    if not place.equal.any():
        return direction
    gradient = place.margins(points)[1][:, place.equal] * place.free
    gradient = np.where(np.isfinite(gradient), gradient, 0.0)
    across = np.linalg.pinv(gradient, rcond=1e-10) @ (gradient @ direction[..., None])
    along: Array = direction - across[..., 0]
    return along


def _box_interval(points: Array, direction: Array) -> tuple[Array, Array]:
    """How far (n each) one can go backward and forward without leaving the unit box."""
    with np.errstate(all="ignore"):
        ends = np.stack([-points / direction, (1.0 - points) / direction])
    flat = np.abs(direction) < 1e-12
    low = np.where(flat, -np.inf, ends.min(axis=0)).max(axis=1)
    high = np.where(flat, np.inf, ends.max(axis=0)).min(axis=1)
    stuck = ~(np.isfinite(low) & np.isfinite(high))
    return np.where(stuck, 0.0, low), np.where(stuck, 0.0, high)
