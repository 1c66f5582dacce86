"""The MMD worst case of many rows, each started from the most similar row solved before."""

from __future__ import annotations

import numpy as np

from edrbo.acquisition.functional.ball import Array, Ball
from edrbo.acquisition.functional.mmd_path import Index, Mask, cold_start, finish, solution, warm_start

__all__ = ["Solver"]

TIE_BREAK = 1e-12  # of a row's range: makes every minimizer and every step of a path unique
STEPS_PER_POINT = 20  # a limit on the length of a path that is not met: some two steps per point are usual
WARM_STEPS = 20  # a warm start that has not arrived by then was a bad one
MEMORY = 64  # rows remembered
SIMILAR = 0.05  # root mean square difference, of a row's range, up to which a row is a useful start


class Solver:
    """Minimizes rows over balls around one law, and remembers the last rows it solved.

    The memory makes the rows a maximizer asks for one after the other cheap. It changes the way to the
    solution but not the solution: that is unique once ties are broken, and computed from its active
    set alone.
    """

    def __init__(self, ball: Ball) -> None:
        self.ball = ball
        n = len(ball.center)
        self._scores, self._p, self._theta = np.zeros((0, n)), np.zeros((0, n)), np.zeros(0)

    def minimize(self, values: Array, radius: float) -> Array:
        """The distributions (b × n) that minimize the rows of ``values`` (b × n) within ``radius``."""
        low = values.min(1, keepdims=True)
        span = values.max(1, keepdims=True) - low
        varies = span[:, 0] > 0
        worst = np.tile(self.ball.center, (len(values), 1))
        if radius == 0.0 or not varies.any():
            return worst
        n = values.shape[1]
        scores = (values - low) / np.where(span > 0, span, 1.0)
        scores += TIE_BREAK * np.modf(np.arange(n) * 0.6180339887498949)[0]
        lowest = scores.argmin(1)
        inside = varies & (self.ball.squared_distances()[lowest] <= radius**2)
        worst[inside] = np.eye(n)[lowest[inside]]
        other = varies & ~inside
        if other.any():
            worst[other] = self._walk(scores[other], radius)
        return worst

    def _walk(self, scores: Array, radius: float) -> Array:
        """Minimizers (b × n) of rows whose minimum lies outside the ball."""
        active = np.zeros(scores.shape, dtype=np.bool_)
        warm, like = self._similar(scores)
        walk = warm_start(np.flatnonzero(warm), scores[warm], self._p[like], self._theta[like], self.ball)
        lost = finish(walk, self.ball, radius, WARM_STEPS, active)
        warm[lost] = False
        walk = cold_start(np.flatnonzero(~warm), scores[~warm])
        lost = finish(walk, self.ball, radius, STEPS_PER_POINT * scores.shape[1], active)
        # Should a walk ever not arrive: as far towards the minimum as the ball allows, a valid upper bound.
        active[lost, scores[lost].argmin(1)] = True
        p, theta = solution(scores, active, self.ball, radius)
        self._scores = np.concatenate([self._scores, scores])[-MEMORY:]
        self._p = np.concatenate([self._p, p])[-MEMORY:]
        self._theta = np.concatenate([self._theta, theta])[-MEMORY:]
        return self.ball.pull_inside(p, radius)

    def _similar(self, scores: Array) -> tuple[Mask, Index]:
        """Which rows (b) have a similar one in memory, and for those which one it is."""
        if len(self._theta) == 0:
            return np.zeros(len(scores), dtype=np.bool_), np.zeros(0, dtype=np.intp)
        square = (scores**2).sum(1)[:, None] - 2.0 * scores @ self._scores.T + (self._scores**2).sum(1)
        like = square.argmin(1)
        warm = square.min(1) <= SIMILAR**2 * scores.shape[1]
        return warm, like[warm]
