"""Worst case over a ball in maximum mean discrepancy around a distribution on n points: exactly, many rows at once, and
as the midpoint of two bounds.

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

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from edrbo.acquisition.risk.base import Functional, WorstCaseFunctional, check_radius
from edrbo.contexts.distributions import ContextPoints
from edrbo.errors import InvalidValueError

__all__ = ["MMD", "Array", "MMDBall", "MMDMidpoint", "Solver", "descend", "first_guess"]


Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MMDBall:
    """The center w of the ball (n), its kernel matrix M (n × n), M w (n) and wᵀM w."""

    center: Array
    kernel: Array
    embedding: Array
    squared_norm: float

    @classmethod
    def around(cls, center: Array, kernel: Array) -> MMDBall:
        embedding = kernel @ center
        return cls(center, kernel, embedding, float(center @ embedding))

    @cached_property
    def bordered(self) -> Array:
        """M, a row and a column of ones after it, and then one of zeros (n + 2 × n + 2)."""
        bordered = np.pad(self.kernel, (0, 2))
        bordered[-2, :-2] = bordered[:-2, -2] = 1.0
        return bordered

    @cached_property
    def squared_distances(self) -> Array:
        """MMD²(δ_k, w) of every point k (n)."""
        square = np.diagonal(self.kernel) - 2.0 * self.embedding + self.squared_norm
        return np.maximum(square, 0.0)

    def pull_inside(self, p: Array, radius: float) -> Array:
        """Distributions ``p`` (b × n), those outside by rounding drawn back along the line to w."""
        away = p - self.center
        distance = np.sqrt(np.maximum(((away @ self.kernel) * away).sum(1), 0.0))
        share = np.minimum(1.0, radius / np.where(distance > 0, distance, 1.0))
        pulled: Array = self.center + share[:, None] * away
        return pulled


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


TIE_BREAK = 1e-12  # of a row's range: makes every minimizer and every step towards it unique
MEMORY = 64  # rows remembered


class Solver:
    """Minimizes rows over balls around one distribution, and remembers the last rows it solved.

    The memory makes the rows a maximizer asks for one after the other cheap. It changes the way to the
    solution but not the solution: that is unique once ties are broken.
    """

    def __init__(self, ball: MMDBall) -> None:
        self.ball = ball
        n = len(ball.center)
        self._ties = TIE_BREAK * np.modf(np.arange(n) * 0.6180339887498949)[0]
        self._scores, self._p = np.zeros((0, n)), np.zeros((0, n))

    def minimize(self, values: Array, radius: float) -> Array:
        """The distributions (b × n) that minimize the rows of ``values`` (b × n) within ``radius``."""
        low = values.min(1, keepdims=True)
        span = values.max(1, keepdims=True) - low
        varies = span[:, 0] > 0
        worst = np.tile(self.ball.center, (len(values), 1))
        if radius == 0.0 or not varies.any():
            return worst
        scores = (values - low) / np.where(span > 0, span, 1.0) + self._ties
        lowest = scores.argmin(1)
        inside = varies & (self.ball.squared_distances[lowest] <= radius**2)
        worst[inside] = _all_on(lowest[inside], values.shape[1])
        other = varies & ~inside
        if other.any():
            worst[other] = self._descend(scores[other], radius)
        return worst

    def _descend(self, scores: Array, radius: float) -> Array:
        """Minimizers (b × n) of rows whose minimum lies outside the ball."""
        p = descend(scores, self._start(scores, radius), self.ball, radius)
        self._scores = np.concatenate([self._scores, scores])[-MEMORY:]
        self._p = np.concatenate([self._p, p])[-MEMORY:]
        return self.ball.pull_inside(p, radius)

    def _start(self, scores: Array, radius: float) -> Array:
        """The solutions of the most similar rows in memory; without any, a guess (b × n)."""
        if len(self._p) == 0:
            return first_guess(scores, self.ball, radius)
        like = ((self._scores**2).sum(1) - 2.0 * scores @ self._scores.T).argmin(1)
        start: Array = self._p[like]
        return start


def _all_on(points: npt.NDArray[np.intp], n: int) -> Array:
    """Distributions on ``n`` points, each with all its mass on one of ``points``."""
    distributions: Array = np.eye(n)[points]
    return distributions


JITTER = 1e-8  # added to the diagonal of the kernel matrix


@dataclass(frozen=True)
class MMD(WorstCaseFunctional):
    """min { pᵀs : (p − w)ᵀ M (p − w) ≤ radius² }, p on the atoms and the support.

    M is the squared-exponential kernel of the contexts with ``lengthscale`` in unit coding.
    """

    radius: float
    lengthscale: float = 0.2
    support_size: int = 0
    has_kinks: ClassVar[bool] = False
    multimodal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_radius(self.radius)
        _check_lengthscale(self.lengthscale)

    def worst_case(self, values: Tensor, points: ContextPoints) -> Tensor:
        rows = values.reshape(-1, values.shape[-1])
        worst = _solver(points, self.lengthscale).minimize(rows.numpy(), self.radius)
        return torch.from_numpy(worst).reshape(values.shape)

    def rough(self) -> Functional:
        return _Segment(self.radius, self.lengthscale)


@dataclass(frozen=True)
class _Segment(Functional):
    """The least expectation on the way from the distribution to its worst point, as far as the ball goes: above
    ``MMD``."""

    radius: float
    lengthscale: float
    support_size: int = 0

    def __call__(self, values: Tensor, points: ContextPoints, slope: Tensor | None = None) -> Tensor:
        distances = np.sqrt(_solver(points, self.lengthscale).ball.squared_distances)
        mean = (points.mass * values).sum(-1)
        low, where = values.min(-1)
        share = (self.radius / torch.from_numpy(distances)[where].clamp_min(1e-300)).clamp_max(1.0)
        return mean + share * (low - mean)


@dataclass(frozen=True)
class MMDMidpoint(Functional):
    """The midpoint of a lower and an upper bound on ``MMD``'s worst case; far cheaper on large grids.

    With V₀ = wᵀs, m = min s, ε₁ = MMD(δ_argmin, w), τ = (m − V₀)/ε₁, S = √(Σs² − (Σs)²/n) and
    ε′ = (V₀ − m)/S, at radius ε: V₀ + ε(τ − S)/2 up to ε′, then (V₀ + ετ + m)/2, and m from ε₁ on
    (also where ε₁ ≤ ε′, for there m is the exact worst case).

    S grows with the number n of grid points, so n is part of the definition. ``grid_points`` is that n when
    the row is evaluated on fewer points that stand for such a grid; None takes the points as they are.
    """

    radius: float
    lengthscale: float = 0.2
    grid_points: int | None = None
    support_size: int = 0

    def __post_init__(self) -> None:
        check_radius(self.radius)
        _check_lengthscale(self.lengthscale)

    def __call__(self, values: Tensor, points: ContextPoints, slope: Tensor | None = None) -> Tensor:
        ball = _solver(points, self.lengthscale).ball
        mean = (points.mass * values).sum(-1)
        low, where = values.min(-1)
        reach = torch.from_numpy(np.sqrt(ball.squared_distances))[where]  # ε₁
        count = self.grid_points or values.shape[-1]
        square = count * (values - values.mean(-1, keepdim=True)).square().mean(-1)
        spread = torch.where(square > 0, square, 1.0).sqrt() * (square > 0)  # S; its root must not see 0
        rate = (low - mean) / reach.clamp_min(1e-300)  # τ
        near = mean + self.radius * (rate - spread) / 2.0
        far = (mean + self.radius * rate + low) / 2.0
        # ε ≤ ε′ as ε S ≤ V₀ − m: no division by the spread of a constant row.
        between = torch.where(self.radius * spread <= mean - low, near, far)
        # Select before the far branches can spoil the gradient: reach 0 means the distribution sits on the minimum.
        return torch.where(self.radius >= reach, low, between)

    def value_and_slopes(
        self, values: Tensor, points: ContextPoints, slope: Tensor | None = None
    ) -> tuple[Tensor, Tensor, None]:
        """In NumPy, which starts its operations faster than torch: rows are short. The value is c_V V₀ + c_m m + c_S S
        with coefficients that depend on the row by ε₁ alone, which is constant where the minimizer is."""
        mass, rows = points.mass.numpy(), values.reshape(-1, values.shape[-1]).numpy()
        each, where = np.arange(len(rows)), rows.argmin(axis=1)
        mean, low = rows @ mass, rows[each, where]
        reach = np.sqrt(_solver(points, self.lengthscale).ball.squared_distances)[where]
        centered = rows - rows.mean(axis=1, keepdims=True)
        stretch = (self.grid_points or rows.shape[1]) / rows.shape[1]
        spread = np.sqrt(stretch * (centered * centered).sum(axis=1))
        share = np.minimum(self.radius / np.maximum(reach, 1e-300), 1.0)
        near, inside = self.radius * spread <= mean - low, self.radius >= reach
        of_mean = np.where(inside, 0.0, np.where(near, 1.0 - 0.5 * share, 0.5 * (1.0 - share)))
        of_spread = np.where(near & ~inside, -0.5 * self.radius, 0.0)
        by_row = of_mean[:, None] * mass
        by_row += (of_spread * stretch / np.where(spread > 0, spread, 1.0))[:, None] * centered
        by_row[each, where] += 1.0 - of_mean
        value = low + of_mean * (mean - low) + of_spread * spread
        shape = values.shape
        return torch.from_numpy(value).reshape(shape[:-1]), torch.from_numpy(by_row).reshape(shape), None


def _check_lengthscale(lengthscale: float) -> None:
    if not lengthscale > 0:
        raise InvalidValueError(f"lengthscale is {lengthscale}", "it must be positive")


@lru_cache(maxsize=4)
def _solver(points: ContextPoints, lengthscale: float) -> Solver:
    """Kernel matrix, distribution and solved rows of ``points``, which one maximization asks for many times."""
    contexts = points.all / lengthscale
    square = (contexts[:, None] - contexts[None]).square().sum(-1)
    kernel = torch.exp(-0.5 * square) + JITTER * torch.eye(len(contexts), dtype=contexts.dtype)
    return Solver(MMDBall.around(points.mass.numpy(), kernel.numpy()))
