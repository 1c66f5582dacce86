"""Contexts seen and the points that stand for a distribution of them, coded."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.quasirandom import SobolEngine

from edrbo.contexts.compression import Compressed, compress
from edrbo.contexts.levels import Levels
from edrbo.errors import InvalidContextError, InvalidValueError


@dataclass(frozen=True, eq=False)
class ContextPoints:
    """A distribution on finitely many contexts, and points that stand for the whole context box C.

    ``compression_error`` is the Wasserstein-2 distance of the atoms from the distribution they were made from.
    """

    atoms: Tensor  # m × d_c
    weights: Tensor  # m, non-negative, sum to one
    support: Tensor  # p × d_c, p may be 0
    compression_error: float = 0.0
    levels: Levels | None = None  # None: all context variables are real

    def __post_init__(self) -> None:
        if self.atoms.ndim != 2 or self.support.ndim != 2 or self.weights.shape != self.atoms.shape[:1]:
            raise InvalidContextError(
                f"context points do not fit together: atoms {tuple(self.atoms.shape)}, "
                f"weights {tuple(self.weights.shape)}, support {tuple(self.support.shape)}",
                "atoms are m × d_c, weights m, support p × d_c",
            )
        if not bool((self.weights >= 0).all()) or abs(float(self.weights.sum()) - 1.0) > 1e-9:
            raise InvalidContextError("the weights of a distribution must be non-negative and sum to one")

    @property
    def discrete(self) -> NDArray[np.bool_] | None:
        """Which columns of a context hold levels (d_c); None: none does."""
        return None if self.levels is None else self.levels.discrete

    @cached_property
    def all(self) -> Tensor:
        """Atoms, then support: (m + p) × d_c."""
        return torch.cat([self.atoms, self.support])

    @cached_property
    def mass(self) -> Tensor:
        """The distribution's probability of every row of ``all``: weights, then zeros (m + p)."""
        return torch.cat([self.weights, self.weights.new_zeros(len(self.support))])


@dataclass(frozen=True, eq=False)
class ContextHistory:
    """What is known of the contexts, oldest first; n = 0 is allowed and then only the box is known."""

    contexts: Tensor  # n × d_c
    weights: Tensor  # n, non-negative, any scale
    lower: Tensor  # d_c
    upper: Tensor  # d_c
    levels: Levels | None = None  # None: all context variables are real

    def compressed(self, contexts: Tensor, weights: Tensor, size: int) -> Compressed:
        """A distribution of contexts like these on at most ``size`` atoms."""
        return compress(contexts, weights, size, discrete=None if self.levels is None else self.levels.discrete)

    def box(self, size: int) -> Tensor:
        """A fixed dense set over the box (size × d_c)."""
        return box_points(self.lower, self.upper, size, self.levels)

    def uniform(self, size: int, seed: int) -> tuple[Tensor, Tensor]:
        """Quasi-random points of the box (size × d_c) with equal weights (size)."""
        if self.levels is None:
            points = sobol_points(len(self.lower), size, seed)
            return self.lower + (self.upper - self.lower) * points, equal_weights(self.lower, size)
        points = sobol_points(len(self.levels.scale.blocks), size, seed)
        return self.levels.at(self.lower, self.upper, points), equal_weights(self.lower, size)

    def normalized_weights(self, half_life: float | None = None) -> Tensor:
        """Weights that sum to one, each halved for every ``half_life`` later contexts (n)."""
        weights = self.weights
        if half_life is not None:
            if not half_life > 0:
                raise InvalidValueError(f"half_life is {half_life}", "it is a positive number of contexts")
            age = torch.arange(len(weights) - 1, -1, -1, dtype=weights.dtype)
            weights = weights * torch.exp2(-age / half_life)
        return weights / weights.sum()


def box_points(lower: Tensor, upper: Tensor, size: int, levels: Levels | None = None) -> Tensor:
    """A fixed dense set over a box (size × d_c): equally spaced in one dimension, else corners and Sobol'.

    All 2^d_c corners are in it as long as they take at most half of the set; in more dimensions
    half of the set are corners, those next to the first Sobol' points. Between ``levels`` there is nothing, and all
    choices count as corners; then the set may be smaller.
    """
    dim = len(lower)
    if size == 0:
        return lower.new_zeros(0, dim)
    if levels is not None:
        return _level_points(lower, upper, size, levels)
    if dim == 1:
        unit = torch.linspace(0.0, 1.0, size, dtype=lower.dtype)[:, None]
    else:
        if 2**dim <= max(size // 2, 4):
            corners = torch.tensor(list(itertools.product((0.0, 1.0), repeat=dim)), dtype=lower.dtype)
        else:
            corners = sobol_points(dim, (size + 1) // 2).round()
        unit = torch.cat([corners, sobol_points(dim, max(size - len(corners), 0))])[:size]
    return lower + (upper - lower) * unit


def _level_points(lower: Tensor, upper: Tensor, size: int, levels: Levels) -> Tensor:
    dim = len(levels.scale.blocks)
    if dim == 1:
        unit = torch.linspace(0.0, 1.0, max(size, levels.scale.choices[0]), dtype=lower.dtype)[:, None]
    else:
        corners = levels.corners(upper, max(size // 2, 4))
        if corners is None:
            corners = sobol_points(dim, (size + 1) // 2)
            real = torch.tensor(levels.scale.choices) == 0
            corners = torch.where(real, corners.round(), corners)
        unit = torch.cat([corners, sobol_points(dim, max(size - len(corners), 0))])[:size]
    return torch.from_numpy(np.unique(levels.at(lower, upper, unit).numpy(), axis=0))


def sobol_points(dim: int, size: int, seed: int | None = None) -> Tensor:
    """Sobol' points of the unit cube (size × dim), scrambled when a seed is given."""
    make_engine: Callable[..., Any] = SobolEngine  # PyTorch leaves it untyped
    engine = make_engine(dim, scramble=seed is not None, seed=seed)
    if seed is None:
        engine.fast_forward(1)  # the first point of the plain sequence is the corner 0
    points: Tensor = engine.draw(size, dtype=torch.float64)
    return points


def equal_weights(like: Tensor, size: int) -> Tensor:
    """``size`` weights that sum to one."""
    return torch.full((size,), 1.0 / size, dtype=like.dtype)
