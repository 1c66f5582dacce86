"""A ball in maximum mean discrepancy around a distribution on n points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "MMDBall"]

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
