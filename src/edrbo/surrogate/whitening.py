"""Kernels between pairs and data, and what takes such a correlation to one with independent unit values.

The latter is W with WᵀW = s_f² (K + noise)⁻¹. Of a Gaussian process on all its data it is (L / s_f)⁻¹ and stays a
triangular system; of one with the first k of its rows as inducing points (``sparse``) it is a small matrix, and
looks at no others. M experts, n rows, N columns.

``product_gram`` has kernels at sums of squared distances r² = a_i + b_j: every design with every context. What belongs
to the contexts is prepared once (``context_parts``) and used for all designs. Everything is at unit variance and
outside of autograd: the outputscale is a matter of those who use it.

    a        M × N × n    of N designs from n observations, for each of M experts
    b        M × k × n    of k contexts
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from edrbo.surrogate.kernels import Kernel

SEPARABLE_SLOPE = -0.5  # of a separable kernel: its slope in r² is this times its value


def context_parts(kernels: tuple[Kernel, ...], b: Tensor, shape: Tensor) -> tuple[Tensor, ...]:
    """Of each expert what the gram of a sum needs of ``b`` (k × n each): g(b) of a separable kernel, else b."""
    return tuple(kernel.value(b[m], shape[m]) if kernel.separable else b[m] for m, kernel in enumerate(kernels))


def slope_factors(kernels: tuple[Kernel, ...], like: Tensor) -> Tensor:
    """By what the slopes that the functions below give are to be multiplied (M)."""
    return like.new_tensor([SEPARABLE_SLOPE if kernel.separable else 1.0 for kernel in kernels])


def product_gram(
    kernels: tuple[Kernel, ...], a: Tensor, parts: tuple[Tensor, ...], shape: Tensor, *, slope: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """g(a_i + b_j) of all experts (M × (N·k) × n, j running fastest), and if wanted what gives g', times
    ``slope_factors``, of each ((N·k) × n): of a separable kernel the value itself, which costs nothing."""
    value = a.new_empty(len(kernels), a.shape[1], len(parts[0]), a.shape[2])
    slopes = []
    for m, kernel in enumerate(kernels):
        if kernel.separable:  # the exponential of a sum: no exponential of the large array
            torch.mul(kernel.value(a[m], shape[m]).unsqueeze(1), parts[m], out=value[m])
            slopes.append(value[m])
        elif slope:
            value[m], derivative = kernel.value_and_slope(a[m].unsqueeze(1) + parts[m], shape[m])
            slopes.append(derivative)
        else:
            value[m] = kernel.value(a[m].unsqueeze(1) + parts[m], shape[m])
    return value.flatten(1, 2), tuple(one.flatten(0, 1) for one in slopes) if slope else ()


def averaged_gram(
    kernels: tuple[Kernel, ...], a: Tensor, parts: tuple[Tensor, ...], weights: Tensor, shape: Tensor, *, slope: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Σ_j w_j g(a_i + b_j), M × N × n, and if wanted what gives its slope, as in ``product_gram`` (N × n each).

    ``weights`` is k, or N × k for those of each row's own.
    """
    value = torch.empty_like(a)
    row = weights.unsqueeze(-2)
    slopes = []
    for m, kernel in enumerate(kernels):
        if kernel.separable:  # what is averaged does not depend on a: k numbers fewer for every i
            torch.mul(kernel.value(a[m], shape[m]), weights @ parts[m], out=value[m])
            slopes.append(value[m])
        elif slope:
            g, derivative = kernel.value_and_slope(a[m].unsqueeze(1) + parts[m], shape[m])
            value[m] = (row @ g).squeeze(-2)
            slopes.append((row @ derivative).squeeze(-2))
        else:
            value[m] = (row @ kernel.value(a[m].unsqueeze(1) + parts[m], shape[m])).squeeze(-2)
    return value, tuple(slopes) if slope else ()


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
