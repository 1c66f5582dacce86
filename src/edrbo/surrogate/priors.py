"""Hyper-priors: part of the method, so written down and named.

All are densities of the parameter itself (BoTorch's convention: the log-normal's mode is exp(loc − scale²)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class LogNormal:
    """log θ ~ N(loc, scale²)."""

    loc: float
    scale: float

    @property
    def mode(self) -> float:
        return math.exp(self.loc - self.scale**2)

    @property
    def median(self) -> float:
        return math.exp(self.loc)


@dataclass(frozen=True)
class Priors:
    """``outputscale=None`` fixes it at one, as BoTorch's own default model does; a None prior is flat."""

    lengthscale: LogNormal | None
    noise: LogNormal | None = LogNormal(-4.0, 1.0)
    outputscale: LogNormal | None = None
    shape: LogNormal | None = LogNormal(0.0, 1.0)
    mean_sd: float = 1.0  # constant mean ~ N(0, mean_sd²) in standardized units


def dimension_scaled(d: int) -> Priors:
    """BoTorch's default since 0.12: lengthscales that grow with √d (Hvarfner et al., 2024)."""
    return Priors(lengthscale=LogNormal(math.sqrt(2.0) + 0.5 * math.log(d), math.sqrt(3.0)))


def ensemble_priors(d: int) -> Priors:
    """EDRBO's: log-normal lengthscales around 0.7 of the unit cube, log-sd 0.75, in any dimension.

    It stands in for what the published program's truncated fit did by accident (docs/methods.md).
    """
    return Priors(lengthscale=LogNormal(math.log(0.7), 0.75))
