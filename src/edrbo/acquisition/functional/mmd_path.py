"""Exact minimization of a linear score over the simplex cut with an MMD ball, many rows at once.

For a multiplier θ let p(θ) minimize ½ (p − w)ᵀM(p − w) + θ sᵀp over the simplex. At θ = ∞ all mass sits on
the minimum of s; as θ falls p moves towards w, and MMD(p, w) falls with it. On a fixed active set A = {p > 0}
both p and the reduced costs g = M(p − w) + θ s − ν are affine in θ, so the path is walked from one change
of A to the next until MMD(p(θ), w) equals the radius, which is solved in closed form. The sets are small
(a smooth score touches its smooth certificate in few places), hence so are the systems. All rows take their
k-th step together.

A row like one solved before starts from that one's p and θ instead: some cost added to s makes them
optimal, the walk first takes that cost away in the same manner, and then moves θ up or down. The result
does not depend on the start, only the number of steps does: a maximizer's next row needs a few.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt

from edrbo.acquisition.functional.ball import Array, Ball

__all__ = ["Index", "Mask", "Walk", "cold_start", "finish", "solution", "warm_start"]

Mask = npt.NDArray[np.bool_]
Index = npt.NDArray[np.intp]

REPAIR: Final = 0  # τ: 1 → 0 is the share of the added cost
DOWN: Final = 1  # τ = θ falls
UP: Final = 2  # τ = −θ falls


@dataclass(eq=False)
class Walk:
    """Rows under way (r of them). Each minimizes ½ (p − w)ᵀM(p − w) + (fixed + τ moving)ᵀp as τ falls."""

    rows: Index  # r: which rows of the problem
    scores: Array  # r × n
    active: Mask  # r × n
    fixed: Array  # r × n
    moving: Array  # r × n
    tau: Array  # r
    theta: Array  # r: the multiplier of the scores while the added cost is taken away
    phase: Index  # r: REPAIR, DOWN or UP
    changed: Index  # r: the point whose status changed last, -1 when none did

    def keep(self, going: Mask) -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[going])


def cold_start(rows: Index, scores: Array) -> Walk:
    """All mass on the minimum, θ = ∞; ``scores`` (r × n) have a unique minimum each."""
    r = len(rows)
    active = np.zeros(scores.shape, dtype=np.bool_)
    active[np.arange(r), scores.argmin(1)] = True
    infinite, none = np.full(r, np.inf), np.full(r, -1, dtype=np.intp)
    return Walk(rows, scores, active, np.zeros_like(scores), scores, infinite, infinite, none + 1 + DOWN, none)


def warm_start(rows: Index, scores: Array, p: Array, theta: Array, ball: Ball) -> Walk:
    """Distributions ``p`` (r × n) and multipliers ``theta`` (r) thought to be near the solution."""
    active = p > 0
    fixed = theta[:, None] * scores
    gradient = (p - ball.center) @ ball.kernel + fixed
    price = (gradient * active).sum(1, keepdims=True) / active.sum(1, keepdims=True)
    # The cost that makes p optimal: equal gradients where p has mass, none smaller elsewhere.
    added = np.where(active, price - gradient, np.maximum(price - gradient, 0.0))
    none = np.full(len(rows), -1, dtype=np.intp)
    return Walk(rows, scores, active, fixed, added, np.ones(len(rows)), theta, none + 1 + REPAIR, none)


def finish(walk: Walk, ball: Ball, radius: float, steps: int, found: Mask) -> Index:
    """Walk at most ``steps`` steps and put the active sets of the solutions into rows of ``found`` (b × n).

    Returns the rows that have not arrived.
    """
    for _ in range(steps):
        if len(walk.rows) == 0:
            break
        _step(walk, ball, radius, found)
    return walk.rows


def solution(scores: Array, active: Mask, ball: Ball, radius: float) -> tuple[Array, Array]:
    """p (b × n) and θ (b) of the solutions with the given active sets, to the bit whatever the walk was."""
    base, slope, _ = _affine(active, np.zeros_like(scores), scores, ball)
    offset = (((base - ball.center) @ ball.kernel) * (base - ball.center)).sum(1)
    curvature = ((slope @ ball.kernel) * slope).sum(1)
    theta = np.sqrt(np.maximum(radius**2 - offset, 0.0) / np.where(curvature > 0, curvature, 1.0))
    p = np.maximum(base + theta[:, None] * slope, 0.0)
    return p / p.sum(1, keepdims=True), theta


def _step(walk: Walk, ball: Ball, radius: float, found: Mask) -> None:
    """Finish the phase of rows that end it before their active set changes; change the set of the others."""
    each = np.arange(len(walk.rows))
    base, slope, price = _affine(walk.active, walk.fixed, walk.moving, ball)  # p = base + τ slope
    pull_base, pull_slope = (base - ball.center) @ ball.kernel, slope @ ball.kernel
    # Points of A leave when p falls to zero, others enter when their reduced cost does.
    value = np.where(walk.active, base, pull_base + walk.fixed - price[:, :1])
    growth = np.where(walk.active, slope, pull_slope + walk.moving - price[:, 1:])
    falling = growth > 0  # as τ falls
    falling[each, walk.changed] &= walk.changed < 0  # it is at zero now and moves away from it
    when = np.full_like(value, -np.inf)
    np.divide(-value, growth, out=when, where=falling)
    changing = when.argmax(1)
    event = np.minimum(when[each, changing], walk.tau)
    # MMD² at τ = 0, and with τ = ±θ its growth in θ²: the cross term vanishes, base being a projection.
    offset = ((base - ball.center) * pull_base).sum(1)
    curvature = (slope * pull_slope).sum(1)
    over = _end_of_phase(walk, offset, curvature, radius) >= event
    repaired, going = over & (walk.phase == REPAIR), ~over
    done = over & ~repaired
    found[walk.rows[done]] = walk.active[done]
    walk.active[each[going], changing[going]] ^= True
    walk.tau, walk.changed = event, np.where(over, -1, changing)
    if repaired.any():
        _release(walk, repaired, offset > radius**2)
    walk.keep(going | repaired)


def _end_of_phase(walk: Walk, offset: Array, curvature: Array, radius: float) -> Array:
    """The τ at which every row's phase is over if its active set stays (r); −∞ if it never is."""
    meets = np.full(len(walk.rows), np.inf)
    solvable = (curvature > 0) & (offset <= radius**2)
    np.divide(radius**2 - offset, curvature, out=meets, where=solvable)
    np.sqrt(meets, out=meets, where=solvable)
    down = np.where(solvable, meets, -np.inf)
    return np.where(walk.phase == REPAIR, 0.0, np.where(walk.phase == DOWN, down, -meets))


def _release(walk: Walk, repaired: Mask, outside: Mask) -> None:
    """The added cost is gone: from now on let θ fall in rows outside the ball, and rise in those inside."""
    down = outside[repaired]
    sign = np.where(down, 1.0, -1.0)
    walk.fixed[repaired] = 0.0
    walk.moving[repaired] = sign[:, None] * walk.scores[repaired]
    walk.tau[repaired] = sign * walk.theta[repaired]
    walk.phase[repaired] = np.where(down, DOWN, UP)


def _affine(active: Mask, fixed: Array, moving: Array, ball: Ball) -> tuple[Array, Array, Array]:
    """Base and slope of p in τ (r × n each), and of the simplex multiplier ν (r × 2).

    Solves [M_AA 1; 1ᵀ 0] for the right-hand sides ((M w − fixed)_A, 1) and (−moving_A, 0), every row's set
    padded with unit equations to the size of the largest.
    """
    r, n = active.shape
    count = active.sum(1)
    k = int(count.max())
    index = np.argsort(~active, axis=1, kind="stable")[:, :k]
    used = np.arange(k) < count[:, None]
    system = np.zeros((r, k + 1, k + 1))
    system[:, :k, :k] = ball.kernel[index[:, :, None], index[:, None, :]]
    system[:, :k, :k] *= used[:, :, None] & used[:, None, :]
    system[:, :k, k] = system[:, k, :k] = used
    system[:, np.arange(k), np.arange(k)] += ~used
    right = np.zeros((r, k + 1, 2))
    right[:, :k, 0] = np.take_along_axis(ball.embedding - fixed, index, 1) * used
    right[:, k, 0] = 1.0
    right[:, :k, 1] = -np.take_along_axis(moving, index, 1) * used
    solved = np.linalg.solve(system, right).astype(np.float64, copy=False)
    base, slope = np.zeros((r, n)), np.zeros((r, n))
    np.put_along_axis(base, index, solved[:, :k, 0] * used, 1)
    np.put_along_axis(slope, index, solved[:, :k, 1] * used, 1)
    return base, slope, -solved[:, k]
