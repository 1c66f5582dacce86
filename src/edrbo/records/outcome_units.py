"""Units of outcomes: the sign and scale between the user's values and the model's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Direction = Literal["maximize", "minimize"]


@dataclass(frozen=True)
class Units:
    """A model's value is ``sign`` · y / ``scale``: it maximizes, and its numbers are of ordinary size.

    Whatever a model says, y lies from ``lowest`` to ``highest``.
    """

    sign: float = 1.0
    scale: float = 1.0
    lowest: float = -math.inf
    highest: float = math.inf

    @classmethod
    def of(cls, direction: Direction, y: Array, ends: tuple[float, float] = (-math.inf, math.inf)) -> Units:
        """For outcomes ``y``, between ``ends``; the scale is a power of two, and 1 for outcomes of ordinary size."""
        largest = float(np.abs(y).max(initial=0.0))
        ordinary = largest == 0.0 or 1e-100 < largest < 1e100
        scale = 1.0 if ordinary else 2.0 ** (math.frexp(largest)[1] - 1)
        return cls(1.0 if direction == "maximize" else -1.0, scale, *ends)

    @property
    def limited(self) -> bool:
        return math.isfinite(self.lowest) or math.isfinite(self.highest)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest value of a model."""
        low, high = sorted((self.sign * self.lowest / self.scale, self.sign * self.highest / self.scale))
        return low, high

    def to_model(self, y: Any) -> Array:
        return self.sign * (np.asarray(y, dtype=np.float64) / self.scale)

    def variance_to_model(self, variance: Any) -> Array:
        """Of a noise variance in the user's units; two divisions, since the square of the scale may overflow."""
        return np.asarray(variance, dtype=np.float64) / self.scale / self.scale

    def to_user(self, values: Any) -> Array:
        """Values of the model in the user's units and direction, held to what they can be; and to what float64 can
        say, unless infinite."""
        return np.clip(self.sign * self._sized(values), self.lowest, self.highest)

    def spread_to_user(self, sd: Any) -> Array:
        """A standard deviation, or any difference without a direction, in the user's units."""
        return np.abs(self._sized(sd))

    def _sized(self, values: Any) -> Array:
        limit = np.finfo(np.float64).max / max(self.scale, 1.0)
        given = np.asarray(values, dtype=np.float64)
        return np.where(np.isinf(given), given, np.clip(given, -limit, limit) * self.scale)
