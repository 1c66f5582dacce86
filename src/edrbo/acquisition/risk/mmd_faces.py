"""Exact minimization of a linear score over the simplex cut with an MMD ball, many rows at once.

On a face of the simplex, p zero outside a set A of points, the least score within the ball and without regard to signs
has a closed form: it is where the multiplier θ of the score in ½ (p − w)ᵀM(p − w) + θ sᵀp, 1ᵀp = 1, takes p to the edge
of the ball. A row goes from face to face as in Lawson and Hanson's non-negative least squares:

- If that target has no negative entry, p moves there, and the point with the most negative reduced cost
  M(p − w) + θ s − ν joins A. If no cost is negative p is the minimizer, for the problem is convex.
- Else p moves towards it until an entry is zero, and that point leaves A.

Simplex and ball are convex, so p stays in both and sᵀp falls with every move: no face comes twice. A p outside the ball
first comes nearer with every move; a face that does not meet the ball has the target nearest to w. The sets are small
(a smooth score touches its smooth certificate in few places), hence so are the systems. All rows take their k-th step
together. The result does not depend on the start, only the number of steps does: a maximizer's next row needs a few.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from edrbo.acquisition.risk.mmd_ball import Array, MMDBall

__all__ = ["descend", "first_guess"]

Mask = npt.NDArray[np.bool_]
Index = npt.NDArray[np.intp]

STEPS_PER_POINT: Final = 20  # a limit that is not met: less than one step per point is usual
FLAT: Final = 1e-30  # scores that curve a face less are equal on it but for rounding: there θ is as good as infinite


def descend(scores: Array, start: Array, ball: MMDBall, radius: float) -> Array:
    """Minimizers (b × n) of ``scores`` (b × n), whose minima are unique and outside, from distributions ``start``.

    To the bit the same whatever the start: all rows stay to the last step, which is on the faces of the solutions.
    Should a row ever not arrive, it is the best distribution on its way.
    """
    each, p, active = np.arange(len(scores)), start, start > 0
    joined = np.full(len(scores), -1)  # the point that joined a row's face last, -1 when one left since
    settled = np.zeros(len(scores), dtype=np.bool_)
    for _ in range(STEPS_PER_POINT * scores.shape[1]):
        target, cost = _target(active, scores, ball, radius)
        p, left = _move(p, target)
        cost[active] = np.inf
        joins = cost.argmin(1)
        there = left < 0
        settled |= there & (cost[each, joins] >= 0)
        if settled.all():
            break
        # A point that joins at a negative cost gets mass. If it does not, the cost was a rounding error.
        changes = np.flatnonzero(~settled)
        active[changes, np.where(there, joins, left)[changes]] = there[changes]
        settled |= ~there & (left == joined)
        joined = np.where(there, joins, -1)
    minimizers: Array = p / p.sum(1, keepdims=True)
    return minimizers


def first_guess(scores: Array, ball: MMDBall, radius: float) -> Array:
    """Distributions (b × n) from which ``descend`` has a short way, where nothing like ``scores`` (b × n) was solved.

    On the face of the distribution and the minimum, all points that the target has below zero leave at once, until
    there are none. That alone need not lead to the solution, but it is near.
    """
    active = np.tile(ball.center > 0, (len(scores), 1))
    active[np.arange(len(scores)), scores.argmin(1)] = True
    while True:
        target, _ = _target(active, scores, ball, radius)
        below = target < 0
        if not below.any():
            return target
        active &= ~below


def _move(p: Array, target: Array) -> tuple[Array, Index]:
    """``p`` at ``target``, or on the way there where its first entry is zero; and which that is (r), -1 if none."""
    below = target < 0
    blocked = below.any(1)
    if not blocked.any():
        return target, np.full(len(p), -1)
    share = np.full_like(p, np.inf)
    np.divide(p, p - target, out=share, where=below)
    first = share.argmin(1)
    each = np.arange(len(p))
    moved = p + np.where(blocked, share[each, first], 1.0)[:, None] * (target - p)
    np.maximum(moved, 0.0, out=moved)
    moved[each[blocked], first[blocked]] = 0.0
    return moved, np.where(blocked, first, -1)


def _target(active: Mask, scores: Array, ball: MMDBall, radius: float) -> tuple[Array, Array]:
    """Where the score is least within the ball on every row's face, signs aside, and the reduced costs (r × n each)."""
    base, slope, price = _affine(active, scores, ball)
    away = base - ball.center
    pull, pull_slope = away @ ball.kernel, slope @ ball.kernel
    # MMD² at θ = 0, and its growth in θ²: the cross term vanishes, the base being a projection.
    offset, curvature = (away * pull).sum(1), (slope * pull_slope).sum(1)
    slope[curvature < FLAT] = 0.0
    theta = np.sqrt(np.maximum(radius**2 - offset, 0.0) / np.maximum(curvature, FLAT))[:, None]
    return base + theta * slope, pull + theta * (pull_slope + scores) - (price[:, :1] + theta * price[:, 1:])


def _affine(active: Mask, scores: Array, ball: MMDBall) -> tuple[Array, Array, Array]:
    """Base and slope of p in θ (r × n each), and of the simplex multiplier ν (r × 2).

    Solves [M_AA 1; 1ᵀ 0] for the right-hand sides ((M w)_A, 1) and (−s_A, 0), every row's set padded with unit
    equations to the size of the largest.
    """
    r, n = active.shape
    row, point = active.nonzero()
    count = np.bincount(row, minlength=r)
    k = int(count.max())
    used = np.arange(k) < count[:, None]
    index = np.full((r, k + 1), n)
    index[:, :k] = n + 1
    index[:, :k][used] = point
    system = ball.bordered[index[:, :, None], index[:, None, :]]
    system[:, np.arange(k), np.arange(k)] += ~used
    right = np.zeros((r, k + 1, 2))
    right[:, :k, 0][used] = ball.embedding[point]
    right[:, :k, 1][used] = -scores[row, point]
    right[:, k, 0] = 1.0
    solved = np.linalg.solve(system, right)
    base, slope = np.zeros((r, n)), np.zeros((r, n))
    base[row, point] = solved[:, :k, 0][used]
    slope[row, point] = solved[:, :k, 1][used]
    return base, slope, -solved[:, k]
