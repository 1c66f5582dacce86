"""What a fit chooses: the covariance, noise and mean of every expert.

Their hyper-priors are part of the method, so written down and named. All are densities of the parameter itself
(BoTorch's convention: the log-normal's mode is exp(loc − scale²)).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor


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
    noise_variance: LogNormal | None = LogNormal(-4.0, 1.0)
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


@dataclass(frozen=True)
class Hyperparameters:
    """Per expert; outputs are standardized, inputs in the unit cube."""

    lengthscale: Tensor  # M × d
    outputscale: Tensor  # M
    noise_variance: Tensor  # M: variance
    mean: Tensor  # M
    shape: Tensor  # M: α of the rational quadratic, unused by the others
    power: float = 1.0  # of the outcomes' warping, of all experts together

    def to_dict(self) -> dict[str, Any]:
        """JSON types; ``from_dict`` gives the same numbers back exactly."""
        return {name: getattr(self, name).tolist() for name in _PER_EXPERT} | {"power": self.power}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Hyperparameters:
        named = {"noise_variance" if name == "noise" else name: value for name, value in record.items()}  # of 0.2
        tensors = {name: torch.tensor(named[name], dtype=torch.float64) for name in _PER_EXPERT}
        return cls(**tensors, power=record.get("power", 1.0))  # records of earlier versions have none

    def expert(self, m: int) -> Hyperparameters:
        """Those of expert m alone, M = 1."""
        row = slice(m, m + 1 or None)
        return replace(self, **{name: getattr(self, name)[row] for name in _PER_EXPERT})


_PER_EXPERT = ("lengthscale", "outputscale", "noise_variance", "mean", "shape")
