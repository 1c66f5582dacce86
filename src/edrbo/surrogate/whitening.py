"""W with WᵀW = s_f² (K + noise)⁻¹: what takes a correlation with the data to that with independent unit values.

Of a Gaussian process on all its data it is (L / s_f)⁻¹ and stays a triangular system; of one whose variance is told by
the first k of its rows (``condensed``) it is a small matrix, and looks at no others. M experts, n rows, N columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class Whitening(Protocol):
    """Of M experts (M × k × k), or of one of them (k × k); k ≤ n."""

    def __getitem__(self, m: int) -> Whitening:
        """That of expert m alone."""

    @property
    def rows(self) -> int:
        """k: of how many of the n rows it looks at, the first ones."""

    def of(self, right: Tensor, *, spent: bool = False) -> Tensor:
        """W right (... × k × N) of ``right`` (... × n × N), in its place if that is ``spent`` and can be."""

    def back(self, half: Tensor) -> Tensor:
        """Wᵀ half (... × k × N)."""


@dataclass(frozen=True, eq=False)
class Triangular:
    """W = factor⁻¹, lower triangular; k = n."""

    factor: Tensor

    def __getitem__(self, m: int) -> Triangular:
        return Triangular(self.factor[m])

    @property
    def rows(self) -> int:
        return self.factor.shape[-1]

    def of(self, right: Tensor, *, spent: bool = False) -> Tensor:
        half: Tensor = torch.linalg.solve_triangular(self.factor, right, upper=False, out=right if spent else None)
        return half

    def back(self, half: Tensor) -> Tensor:
        right: Tensor = torch.linalg.solve_triangular(self.factor.mT, half, upper=True)
        return right


@dataclass(frozen=True, eq=False)
class Product:
    """W itself."""

    matrix: Tensor

    def __getitem__(self, m: int) -> Product:
        return Product(self.matrix[m])

    @property
    def rows(self) -> int:
        return self.matrix.shape[-1]

    def of(self, right: Tensor, *, spent: bool = False) -> Tensor:
        return (right.mT[..., : self.rows] @ self.matrix.mT).mT  # each column in one piece, as the other has it

    def back(self, half: Tensor) -> Tensor:
        return (half.mT @ self.matrix).mT
