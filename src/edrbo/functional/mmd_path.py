"""Exact minimization of a linear score over the simplex cut with an MMD ball, many rows at once.

For a multiplier θ let p(θ) minimize ½ (p − w)ᵀM(p − w) + θ sᵀp over the simplex. At θ = ∞ all mass sits on
the minimum of s; as θ falls p moves towards w, and MMD(p, w) falls with it. On a fixed active set A = {p > 0}
both p and the reduced costs g = M(p − w) + θ s − ν are affine in θ, so the path is walked from one change
of A to the next until MMD(p(θ), w) equals the radius, which is solved in closed form. The sets are small
(a smooth score touches its smooth certificate in few places), hence so are the systems. All rows take their
k-th step together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Ball", "minimize"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Index = npt.NDArray[np.intp]

TIE_BREAK = 1e-12  # of a row's range: makes every minimizer and every step of the path unique
STEPS_PER_POINT = 20  # a limit on the length of the path that is not met: some two steps per point are usual


@dataclass(frozen=True, eq=False)
class Ball:
    """The center w of the ball (n), its kernel matrix M (n × n), M w (n) and wᵀM w."""

    center: Array
    kernel: Array
    embedding: Array
    squared_norm: float

    @classmethod
    def around(cls, center: Array, kernel: Array) -> Ball:
        embedding = kernel @ center
        return cls(center, kernel, embedding, float(center @ embedding))

    def squared_distances(self) -> Array:
        """MMD²(δ_k, w) of every point k (n)."""
        square = np.diagonal(self.kernel) - 2.0 * self.embedding + self.squared_norm
        return np.maximum(square, 0.0)


@dataclass(eq=False)
class _Walk:
    """The rows still under way (r of them): where each one stands on its path."""

    rows: Index  # r: which rows of the problem
    scores: Array  # r × n, range one
    active: Mask  # r × n
    theta: Array  # r
    changed: Index  # r: the point whose status changed last, -1 at the start

    def keep(self, going: Mask) -> None:
        self.rows, self.scores, self.active = self.rows[going], self.scores[going], self.active[going]
        self.theta, self.changed = self.theta[going], self.changed[going]


def minimize(values: Array, ball: Ball, radius: float) -> Array:
    """The distributions (b × n) that minimize the rows of ``values`` (b × n) over the ball."""
    low = values.min(1, keepdims=True)
    span = values.max(1, keepdims=True) - low
    varies = span[:, 0] > 0
    worst = np.tile(ball.center, (len(values), 1))
    if radius == 0.0 or not varies.any():
        return worst
    n = values.shape[1]
    scores = (values - low) / np.where(span > 0, span, 1.0)
    scores += TIE_BREAK * np.modf(np.arange(n) * 0.6180339887498949)[0]
    lowest = scores.argmin(1)
    inside = varies & (ball.squared_distances()[lowest] <= radius**2)
    worst[inside] = np.eye(n)[lowest[inside]]
    rows = np.flatnonzero(varies & ~inside)
    active = np.zeros((len(rows), n), dtype=np.bool_)
    active[np.arange(len(rows)), lowest[rows]] = True
    start = np.full(len(rows), np.inf), np.full(len(rows), -1, dtype=np.intp)
    walk = _Walk(rows, scores[rows], active, *start)
    for _ in range(STEPS_PER_POINT * n):
        if len(walk.rows) == 0:
            break
        _step(walk, ball, radius, worst)
    return _pulled_inside(worst, ball, radius)


def _step(walk: _Walk, ball: Ball, radius: float, worst: Array) -> None:
    """Finish the rows that meet the radius before their active set changes; change it in the others."""
    each = np.arange(len(walk.rows))
    base, slope, price = _affine(walk, ball)  # p = base + θ slope
    pull_base, pull_slope = (base - ball.center) @ ball.kernel, slope @ ball.kernel
    # Points of A leave when p falls to zero, others enter when their reduced cost does.
    value = np.where(walk.active, base, pull_base - price[:, :1])
    growth = np.where(walk.active, slope, pull_slope + walk.scores - price[:, 1:])
    falling = growth > 0  # as θ falls
    falling[each, walk.changed] &= walk.changed < 0  # it is at zero now and moves away from it
    when = np.full_like(value, -np.inf)
    np.divide(-value, growth, out=when, where=falling)
    changing = when.argmax(1)
    event = np.minimum(when[each, changing], walk.theta)
    # MMD² = offset + θ² curvature: the cross term vanishes, for base is the projection at θ = 0.
    offset = ((base - ball.center) * pull_base).sum(1)
    curvature = (slope * pull_slope).sum(1)
    meets = np.full(len(each), -np.inf)
    solvable = (curvature > 0) & (offset <= radius**2)
    np.divide(radius**2 - offset, curvature, out=meets, where=solvable)
    np.sqrt(meets, out=meets, where=solvable)
    at = np.where(meets >= event, np.minimum(meets, walk.theta), event)
    p = np.maximum(base + np.where(np.isfinite(at), at, 0.0)[:, None] * slope, 0.0)
    worst[walk.rows] = p / p.sum(1, keepdims=True)
    walk.active[each, changing] ^= True
    walk.theta, walk.changed = event, changing
    walk.keep(meets < event)


def _affine(walk: _Walk, ball: Ball) -> tuple[Array, Array, Array]:
    """Base and slope of p in θ (r × n each), and of the simplex multiplier ν (r × 2).

    Solves [M_AA 1; 1ᵀ 0] for the right-hand sides ((M w)_A, 1) and (−s_A, 0), every row's set padded with
    unit equations to the size of the largest.
    """
    r, n = walk.active.shape
    count = walk.active.sum(1)
    k = int(count.max())
    index = np.argsort(~walk.active, axis=1, kind="stable")[:, :k]
    used = np.arange(k) < count[:, None]
    system = np.zeros((r, k + 1, k + 1))
    system[:, :k, :k] = ball.kernel[index[:, :, None], index[:, None, :]]
    system[:, :k, :k] *= used[:, :, None] & used[:, None, :]
    system[:, :k, k] = system[:, k, :k] = used
    system[:, np.arange(k), np.arange(k)] += ~used
    right = np.zeros((r, k + 1, 2))
    right[:, :k, 0] = ball.embedding[index] * used
    right[:, k, 0] = 1.0
    right[:, :k, 1] = -np.take_along_axis(walk.scores, index, 1) * used
    solved = np.linalg.solve(system, right).astype(np.float64, copy=False)
    base, slope = np.zeros((r, n)), np.zeros((r, n))
    np.put_along_axis(base, index, solved[:, :k, 0] * used, 1)
    np.put_along_axis(slope, index, solved[:, :k, 1] * used, 1)
    return base, slope, -solved[:, k]


def _pulled_inside(worst: Array, ball: Ball, radius: float) -> Array:
    """Rows outside the ball by rounding (or by an unfinished path), drawn back along the line to w."""
    away = worst - ball.center
    distance = np.sqrt(np.maximum(((away @ ball.kernel) * away).sum(1), 0.0))
    share = np.minimum(1.0, radius / np.where(distance > 0, distance, 1.0))
    pulled: Array = ball.center + share[:, None] * away
    return pulled
