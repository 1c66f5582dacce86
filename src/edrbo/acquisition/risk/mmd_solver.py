"""The MMD worst case of many rows, each started from the most similar row solved before."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edrbo.acquisition.risk.mmd_ball import Array, MMDBall
from edrbo.acquisition.risk.mmd_faces import descend, first_guess

__all__ = ["Solver"]

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
