"""W with WᵀW = s_f² (K + noise)⁻¹: what takes a correlation with the data to that with independent unit values.

Of a Gaussian process on all its data it is (L / s_f)⁻¹ and stays a triangular system; of one that is told by few rows
(``condensed``) it is a small matrix. M experts, n rows, N columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class Whitening(Protocol):
    """Of M experts (M × n × n), or of one of them (n × n)."""

    def __getitem__(self, m: int) -> Whitening:
        """That of expert m alone."""

    def of(self, right: Tensor, *, spent: bool = False) -> Tensor:
        """W right (... × n × N), in the place of ``right`` if that is ``spent``."""

    def back(self, half: Tensor) -> Tensor:
        """Wᵀ half (... × n × N)."""


@dataclass(frozen=True, eq=False)
class Triangular:
    """W = factor⁻¹, lower triangular."""

    factor: Tensor

    def __getitem__(self, m: int) -> Triangular:
        return Triangular(self.factor[m])

    def of(self, right: Tensor, *, spent: bool = False) -> Tensor:
        return torch.linalg.solve_triangular(self.factor, right, upper=False, out=right if spent else None)

    def back(self, half: Tensor) -> Tensor:
        return torch.linalg.solve_triangular(self.factor.mT, half, upper=True)


@dataclass(frozen=True, eq=False)
class Product:
    """W itself."""

    matrix: Tensor

    def __getitem__(self, m: int) -> Product:
        return Product(self.matrix[m])

    def of(self, right: Tensor, *, spent: bool = False) -> Tensor:
        return self.matrix @ right

    def back(self, half: Tensor) -> Tensor:
        return self.matrix.mT @ half
