"""What a fit chooses: the covariance, noise and mean of every expert."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Hyperparameters:
    """Per expert; outputs are standardized, inputs in the unit cube."""

    lengthscale: Tensor  # M × d
    outputscale: Tensor  # M
    noise: Tensor  # M: variance
    mean: Tensor  # M
    shape: Tensor  # M: α of the rational quadratic, unused by the others
    power: float = 1.0  # of the outcomes' warping, of all experts together

    def to_dict(self) -> dict[str, Any]:
        """JSON types; ``from_dict`` gives the same numbers back exactly."""
        return {name: getattr(self, name).tolist() for name in _PER_EXPERT} | {"power": self.power}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Hyperparameters:
        tensors = {name: torch.tensor(record[name], dtype=torch.float64) for name in _PER_EXPERT}
        return cls(**tensors, power=record.get("power", 1.0))  # records of earlier versions have none

    def expert(self, m: int) -> Hyperparameters:
        """Those of expert m alone, M = 1."""
        row = slice(m, m + 1 or None)
        return replace(self, **{name: getattr(self, name)[row] for name in _PER_EXPERT})


_PER_EXPERT = ("lengthscale", "outputscale", "noise", "mean", "shape")
