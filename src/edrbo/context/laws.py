"""Context laws: from the contexts seen so far to weighted atoms the acquisition can sum over.

Everything here is unit-coded, float64 and deterministic: the same history and seed give the same points,
and they are made once per maximization of the acquisition, never inside one.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from edrbo.context.compression import Compressed, compress
from edrbo.errors import InvalidContextError, InvalidValueError

__all__ = [
    "KDE",
    "Box",
    "Compressed",
    "ContextHistory",
    "ContextPoints",
    "Empirical",
    "Given",
    "Grid",
    "Law",
    "box_points",
    "compress",
]

MAX_ATOMS_LINE = 32  # atoms kept for one context variable …
MAX_ATOMS = 64  # … and for several; docs/speed.md shows that the maximizer does not move
MAX_GRID = 4096  # a product grid larger than this is refused


@dataclass(frozen=True, eq=False)
class ContextPoints:
    """A law on finitely many contexts, and points that stand for the whole context box C.

    ``compression_error`` is the Wasserstein-2 distance of the atoms from the law they were made from.
    """

    atoms: Tensor  # m × d_c
    weights: Tensor  # m, non-negative, sum to one
    support: Tensor  # p × d_c, p may be 0
    compression_error: float = 0.0

    def __post_init__(self) -> None:
        if self.atoms.ndim != 2 or self.support.ndim != 2 or self.weights.shape != self.atoms.shape[:1]:
            raise InvalidContextError(
                f"context points do not fit together: atoms {tuple(self.atoms.shape)}, "
                f"weights {tuple(self.weights.shape)}, support {tuple(self.support.shape)}",
                "atoms are m × d_c, weights m, support p × d_c",
            )
        if not bool((self.weights >= 0).all()) or abs(float(self.weights.sum()) - 1.0) > 1e-9:
            raise InvalidContextError("the weights of a law must be non-negative and sum to one")

    @property
    def all(self) -> Tensor:
        """Atoms, then support: (m + p) × d_c."""
        return torch.cat([self.atoms, self.support])

    @property
    def mass(self) -> Tensor:
        """The law's probability of every row of ``all``: weights, then zeros (m + p)."""
        return torch.cat([self.weights, self.weights.new_zeros(len(self.support))])


@dataclass(frozen=True, eq=False)
class ContextHistory:
    """What is known of the contexts, oldest first; n = 0 is allowed and then only the box is known."""

    contexts: Tensor  # n × d_c
    weights: Tensor  # n, non-negative, any scale
    lower: Tensor  # d_c
    upper: Tensor  # d_c

    def normalized_weights(self, half_life: float | None = None) -> Tensor:
        """Weights that sum to one, each halved for every ``half_life`` later contexts (n)."""
        weights = self.weights
        if half_life is not None:
            if not half_life > 0:
                raise InvalidValueError(f"half_life is {half_life}", "it is a positive number of contexts")
            age = torch.arange(len(weights) - 1, -1, -1, dtype=weights.dtype)
            weights = weights * torch.exp2(-age / half_life)
        return weights / weights.sum()


class Law(ABC):
    """How the next context is believed to be distributed.

    Before any context is known a law takes all of the box to be equally likely.
    """

    def points(self, history: ContextHistory, support_size: int, seed: int) -> ContextPoints:
        """Weighted atoms of the law, and ``support_size`` points of the whole box besides."""
        lower, upper = history.lower, history.upper
        if len(lower) == 0:  # no context variables: one empty context, for certain
            return ContextPoints(lower.new_zeros(1, 0), lower.new_ones(1), lower.new_zeros(0, 0))
        atoms, weights, error = self._atoms(history, seed)
        return ContextPoints(atoms, weights, box_points(lower, upper, support_size), error)

    @abstractmethod
    def _atoms(self, history: ContextHistory, seed: int) -> tuple[Tensor, Tensor, float]:
        """Atoms (m × d_c), weights (m) and the compression error; d_c ≥ 1."""


@dataclass(frozen=True)
class Empirical(Law):
    """The observed contexts themselves, with their weights, compressed when there are many."""

    half_life: float | None = None
    max_atoms: int | None = None  # None: MAX_ATOMS_LINE for one context variable, MAX_ATOMS for several

    def _atoms(self, history: ContextHistory, seed: int) -> tuple[Tensor, Tensor, float]:
        size = self.max_atoms or _default_size(history.contexts)
        if len(history.contexts) == 0:
            return *_uniform(history.lower, history.upper, size, seed), 0.0
        small = compress(history.contexts, history.normalized_weights(self.half_life), size)
        return small.atoms, small.weights, small.error


@dataclass(frozen=True)
class KDE(Law):
    """A sample of the Gaussian kernel density estimate of the observed contexts, clamped to the box.

    The bandwidth of variable k is σ̂_k (4 / ((d_c + 2) t))^(1 / (d_c + 4)) with the population standard
    deviation σ̂_k. With unequal weights t is their effective number 1 / Σ w². The sample is compressed as in
    ``Empirical``.
    """

    samples: int = 512
    half_life: float | None = None
    max_atoms: int | None = None

    def _atoms(self, history: ContextHistory, seed: int) -> tuple[Tensor, Tensor, float]:
        contexts, lower, upper = history.contexts, history.lower, history.upper
        if len(contexts) == 0:
            return *_uniform(lower, upper, self.samples, seed), 0.0
        weights = history.normalized_weights(self.half_life)
        dim = contexts.shape[1]
        effective = 1.0 / weights.square().sum()
        spread = (weights @ (contexts - weights @ contexts).square()).sqrt()
        bandwidth = spread * (4.0 / ((dim + 2) * effective)) ** (1.0 / (dim + 4))
        # One coordinate picks the observation, the others its Gaussian noise.
        quantiles = sobol_points(dim + 1, self.samples, seed)
        centers = torch.searchsorted(weights.cumsum(0), quantiles[:, 0].contiguous())
        noise = torch.special.ndtri(quantiles[:, 1:].clamp(1e-12, 1.0 - 1e-12))
        drawn = contexts[centers.clamp(max=len(contexts) - 1)] + bandwidth * noise
        small = compress(
            drawn.clamp(lower, upper), _equal(lower, self.samples), self.max_atoms or _default_size(contexts)
        )
        return small.atoms, small.weights, small.error


@dataclass(frozen=True)
class Box(Law):
    """A dense set over mean ± ``width`` · standard deviation of the observed contexts, cut to C.

    The standard deviation has ddof 1 (with weights, Σ w (c − c̄)² / (1 − Σ w²)). With fewer than two
    contexts it does not exist and the box is all of C. The set includes the corners of the box.
    """

    width: float = 1.0
    size: int = 64
    half_life: float | None = None

    def _atoms(self, history: ContextHistory, seed: int) -> tuple[Tensor, Tensor, float]:
        lower, upper = self.bounds(history)
        atoms = box_points(lower, upper, self.size)
        return atoms, _equal(lower, len(atoms)), 0.0

    def bounds(self, history: ContextHistory) -> tuple[Tensor, Tensor]:
        """Lower and upper end of the box (d_c each)."""
        lower, upper = history.lower, history.upper
        if len(history.contexts) < 2:
            return lower, upper
        weights = history.normalized_weights(self.half_life)
        freedom = 1.0 - weights.square().sum()
        if freedom <= 0:  # all weight on one context
            return lower, upper
        mean = weights @ history.contexts
        reach = self.width * (weights @ (history.contexts - mean).square() / freedom).sqrt()
        return (mean - reach).clamp(lower, upper), (mean + reach).clamp(lower, upper)


@dataclass(frozen=True)
class Grid(Law):
    """A product grid over C, ends included; every observed context gives its weight to the nearest point.

    Every axis has round(size^(1/d_c)) points, and at least two.
    """

    size: int = 100
    half_life: float | None = None

    def _atoms(self, history: ContextHistory, seed: int) -> tuple[Tensor, Tensor, float]:
        lower, upper = history.lower, history.upper
        dim = len(lower)
        count = max(2, round(self.size ** (1.0 / dim)))
        if count**dim > MAX_GRID:
            raise InvalidValueError(
                f"a grid over {dim} context variables needs {count**dim} points",
                f"take a smaller size, or Empirical or KDE; at most {MAX_GRID} points are allowed",
            )
        axis = torch.linspace(0.0, 1.0, count, dtype=lower.dtype)
        grid = lower + (upper - lower) * torch.cartesian_prod(*[axis] * dim).reshape(-1, dim)
        if len(history.contexts) == 0:
            return grid, _equal(lower, len(grid)), 0.0
        width = (upper - lower).where(upper > lower, torch.ones_like(lower))
        index = ((history.contexts - lower) / width * (count - 1)).round().clamp(0, count - 1).long()
        place = count ** torch.arange(dim - 1, -1, -1)
        weights = torch.zeros(len(grid), dtype=lower.dtype)
        weights.index_add_(0, index @ place, history.normalized_weights(self.half_life))
        return grid, weights, 0.0


@dataclass(frozen=True, eq=False)
class Given(Law):
    """A law the user knows, for instance a forecast: unit-coded samples, with weights or equal ones.

    Long samples are compressed as in ``Empirical``. The history is not used.
    """

    samples: Tensor  # n × d_c
    weights: Tensor | None = None  # n, any scale
    max_atoms: int | None = None

    def __post_init__(self) -> None:
        if self.samples.ndim != 2 or len(self.samples) == 0:
            raise InvalidContextError("a given law needs samples", "give a tensor of shape n × d_c, n ≥ 1")
        if not bool(self.samples.isfinite().all()):
            raise InvalidContextError("a given law has samples that are not finite")
        weights = self.weights
        if weights is None:
            return
        if weights.shape != self.samples.shape[:1]:
            raise InvalidValueError(f"{len(self.samples)} samples, weights of shape {tuple(weights.shape)}")
        if not bool(((weights >= 0) & weights.isfinite()).all()) or not float(weights.sum()) > 0:
            raise InvalidValueError("weights must be finite, non-negative, and not all zero")

    def _atoms(self, history: ContextHistory, seed: int) -> tuple[Tensor, Tensor, float]:
        if self.samples.shape[1] != len(history.lower):
            raise InvalidContextError(
                f"the given law has {self.samples.shape[1]} context variables, the space {len(history.lower)}"
            )
        weights = _equal(history.lower, len(self.samples)) if self.weights is None else self.weights
        small = compress(self.samples, weights, self.max_atoms or _default_size(self.samples))
        return small.atoms, small.weights, small.error


def box_points(lower: Tensor, upper: Tensor, size: int) -> Tensor:
    """A fixed dense set over a box (size × d_c): equally spaced in one dimension, else corners and Sobol'.

    All 2^d_c corners are in it as long as they take at most half of the set; in more dimensions
    half of the set are corners, those next to the first Sobol' points.
    """
    dim = len(lower)
    if size == 0:
        return lower.new_zeros(0, dim)
    if dim == 1:
        unit = torch.linspace(0.0, 1.0, size, dtype=lower.dtype)[:, None]
    else:
        if 2**dim <= max(size // 2, 4):
            corners = torch.tensor(list(itertools.product((0.0, 1.0), repeat=dim)), dtype=lower.dtype)
        else:
            corners = sobol_points(dim, (size + 1) // 2).round()
        unit = torch.cat([corners, sobol_points(dim, max(size - len(corners), 0))])[:size]
    return lower + (upper - lower) * unit


def sobol_points(dim: int, size: int, seed: int | None = None) -> Tensor:
    """Sobol' points of the unit cube (size × dim), scrambled when a seed is given."""
    make_engine: Callable[..., Any] = SobolEngine  # PyTorch leaves it untyped
    engine = make_engine(dim, scramble=seed is not None, seed=seed)
    if seed is None:
        engine.fast_forward(1)  # the first point of the plain sequence is the corner 0
    points: Tensor = engine.draw(size, dtype=torch.float64)
    return points


def _uniform(lower: Tensor, upper: Tensor, size: int, seed: int) -> tuple[Tensor, Tensor]:
    """Quasi-random points of the box (size × d_c) with equal weights (size)."""
    return lower + (upper - lower) * sobol_points(len(lower), size, seed), _equal(lower, size)


def _equal(like: Tensor, size: int) -> Tensor:
    return torch.full((size,), 1.0 / size, dtype=like.dtype)


def _default_size(contexts: Tensor) -> int:
    return MAX_ATOMS_LINE if contexts.shape[1] == 1 else MAX_ATOMS
