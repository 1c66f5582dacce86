"""Context distributions: from the contexts seen so far to weighted atoms that the acquisition sums over.

Everything here is unit-coded, float64 and deterministic: the same history and seed give the same points, and they are
made once per maximization of the acquisition, never inside one. No distribution and no worst case puts mass between the
levels of discrete contexts (choices, whole numbers).
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.quasirandom import SobolEngine

from edrbo.errors import InvalidContextError, InvalidValueError
from edrbo.records.context_log import Compressed
from edrbo.records.context_log import compress as compress_atoms
from edrbo.space.context_scale import ContextScale

__all__ = [
    "KDE",
    "Box",
    "ContextDistribution",
    "ContextHistory",
    "ContextPoints",
    "Empirical",
    "Given",
    "Grid",
    "box_points",
    "compress",
    "smoothed",
    "sobol_points",
]


def compress(
    atoms: Tensor, weights: Tensor, size: int, seed: int = 0, discrete: NDArray[np.bool_] | None = None
) -> Compressed[Tensor]:
    """At most ``size`` weighted atoms for the distribution (``atoms``: n × d_c, ``weights``: n); ``discrete`` columns
    (d_c) keep their levels."""
    points, mass = (part.detach().to(torch.float64).numpy() for part in (atoms, weights))
    small = compress_atoms(points, mass, size, seed, discrete)
    return Compressed(torch.from_numpy(small.atoms), torch.from_numpy(small.weights), small.error, small.w1)


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

    def compressed(self, contexts: Tensor, weights: Tensor, size: int) -> Compressed[Tensor]:
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


MAX_ATOMS_LINE = 32  # atoms kept for one context variable …
MAX_ATOMS = 64  # … and for several; research/speed.md shows that the maximizer does not move
# atoms of a distribution that is spread out, and its share of a kernel density's bandwidth
SMOOTH_ATOMS, SMOOTHING = 256, 0.5
DISTINCT = 0.5  # share of contexts that differ, from which on they count as drawn from a density
MAX_GRID = 4096  # a product grid larger than this is refused


class ContextDistribution(ABC):
    """How the next context is believed to be distributed. One of your own is a frozen dataclass with ``atoms``.

    Before any context is known a distribution takes all of the box to be equally likely. A ``half_life``, if there is
    one, says that later contexts count more; answers follow it too.
    """

    half_life: float | None = None

    def points(self, history: ContextHistory, support_size: int, seed: int) -> ContextPoints:
        """Weighted atoms of the distribution, and ``support_size`` points of the whole box besides."""
        lower = history.lower
        if len(lower) == 0:  # no context variables: one empty context, for certain
            return ContextPoints(lower.new_zeros(1, 0), lower.new_ones(1), lower.new_zeros(0, 0))
        atoms, weights, error = self.atoms(history, seed)
        return ContextPoints(atoms, weights, history.box(support_size), error, history.levels)

    @abstractmethod
    def atoms(self, history: ContextHistory, seed: int) -> tuple[Tensor, Tensor, float]:
        """Atoms (m × d_c), weights (m) that sum to one, and how far they are from what they stand for (0: they are it).

        Args:
            history: The contexts so far, coded, with their weights and the box; there may be none yet.
            seed: Of whatever is drawn.
        """


@dataclass(frozen=True)
class Empirical(ContextDistribution):
    """The observed contexts themselves, with their weights, compressed when there are many."""

    half_life: float | None = None
    max_atoms: int | None = None  # None: MAX_ATOMS_LINE for one context variable, MAX_ATOMS for several

    def atoms(self, history: ContextHistory, seed: int) -> tuple[Tensor, Tensor, float]:
        size = self.max_atoms or _default_size(history.contexts)
        if len(history.contexts) == 0:
            return *history.uniform(size, seed), 0.0
        small = history.compressed(history.contexts, history.normalized_weights(self.half_life), size)
        return small.atoms, small.weights, small.error


@dataclass(frozen=True)
class KDE(ContextDistribution):
    """A sample of the Gaussian kernel density estimate of the observed contexts, clamped to the box.

    The bandwidth of variable k is σ̂_k (4 / ((d_c + 2) t))^(1 / (d_c + 4)) with the population standard
    deviation σ̂_k. With unequal weights t is their effective number 1 / Σ w². The sample is compressed as in
    ``Empirical``.
    """

    samples: int = 512
    half_life: float | None = None
    max_atoms: int | None = None

    def atoms(self, history: ContextHistory, seed: int) -> tuple[Tensor, Tensor, float]:
        if len(history.contexts) == 0:
            return *history.uniform(self.samples, seed), 0.0
        drawn = _kernel_sample(history, self.half_life, self.samples, 1.0, seed)
        size = self.max_atoms or _default_size(history.contexts)
        small = history.compressed(drawn, equal_weights(history.lower, self.samples), size)
        return small.atoms, small.weights, small.error


@dataclass(frozen=True)
class Box(ContextDistribution):
    """A dense set over mean ± ``width`` · standard deviation of the observed contexts, cut to C.

    The standard deviation has ddof 1 (with weights, Σ w (c − c̄)² / (1 − Σ w²)). With fewer than two
    contexts it does not exist and the box is all of C. The set includes the corners of the box.
    """

    width: float = 1.0
    size: int = 64
    half_life: float | None = None

    def atoms(self, history: ContextHistory, seed: int) -> tuple[Tensor, Tensor, float]:
        lower, upper = self.bounds(history)
        atoms = box_points(lower, upper, self.size, history.levels)
        return atoms, equal_weights(lower, len(atoms)), 0.0

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
        low, high = (mean - reach).clamp(lower, upper), (mean + reach).clamp(lower, upper)
        if history.levels is None:
            return low, high
        unordered, met = history.levels.unordered, (mean > 0.0).to(mean.dtype)  # the choices that were met
        return torch.where(unordered, 0.0, low), torch.where(unordered, met, high)


@dataclass(frozen=True)
class Grid(ContextDistribution):
    """A product grid over C, ends included; every observed context gives its weight to the nearest point.

    Every axis has round(size^(1/d_c)) points, and at least two.
    """

    size: int = 100
    half_life: float | None = None

    def atoms(self, history: ContextHistory, seed: int) -> tuple[Tensor, Tensor, float]:
        if history.levels is not None:
            return self._between_levels(history, history.levels)
        lower, upper = history.lower, history.upper
        dim = len(lower)
        count = max(2, round(self.size ** (1.0 / dim)))
        if count**dim > MAX_GRID:
            raise _too_many(dim, count**dim)
        axis = torch.linspace(0.0, 1.0, count, dtype=lower.dtype)
        grid = lower + (upper - lower) * torch.cartesian_prod(*[axis] * dim).reshape(-1, dim)
        if len(history.contexts) == 0:
            return grid, equal_weights(lower, len(grid)), 0.0
        width = (upper - lower).where(upper > lower, torch.ones_like(lower))
        index = ((history.contexts - lower) / width * (count - 1)).round().clamp(0, count - 1).long()
        place = count ** torch.arange(dim - 1, -1, -1)
        weights = torch.zeros(len(grid), dtype=lower.dtype)
        weights.index_add_(0, index @ place, history.normalized_weights(self.half_life))
        return grid, weights, 0.0

    def _between_levels(self, history: ContextHistory, levels: Levels) -> tuple[Tensor, Tensor, float]:
        axes = levels.grid(history.lower, history.upper, self.size)
        total = math.prod(len(axis) for axis in axes)
        if total > MAX_GRID:
            raise _too_many(len(axes), total)
        places = torch.cartesian_prod(*(torch.arange(len(axis)) for axis in axes)).reshape(total, len(axes))
        grid = torch.cat([axis[places[:, k]] for k, axis in enumerate(axes)], dim=1)
        if len(history.contexts) == 0:
            return grid, equal_weights(grid, total), 0.0
        nearest = torch.cat([torch.cdist(some, grid).argmin(1) for some in torch.split(history.contexts, 1024)])
        weights = grid.new_zeros(total).index_add_(0, nearest, history.normalized_weights(self.half_life))
        return grid, weights, 0.0


def _too_many(dim: int, total: int) -> InvalidValueError:
    return InvalidValueError(
        f"a grid over {dim} context variables needs {total} points",
        f"take a smaller size, or Empirical or KDE; at most {MAX_GRID} points are allowed",
    )


@dataclass(frozen=True, eq=False)
class Given(ContextDistribution):
    """A distribution the user knows, for instance a forecast: unit-coded samples, with weights or equal ones.

    Long samples are compressed as in ``Empirical``. The history is not used.
    """

    samples: Tensor  # n × d_c
    weights: Tensor | None = None  # n, any scale
    max_atoms: int | None = None

    def __post_init__(self) -> None:
        if self.samples.ndim != 2 or len(self.samples) == 0:
            raise InvalidContextError("a given distribution needs samples", "give a tensor of shape n × d_c, n ≥ 1")
        if not bool(self.samples.isfinite().all()):
            raise InvalidContextError("a given distribution has samples that are not finite")
        weights = self.weights
        if weights is None:
            return
        if weights.shape != self.samples.shape[:1]:
            raise InvalidValueError(f"{len(self.samples)} samples, weights of shape {tuple(weights.shape)}")
        if not bool(((weights >= 0) & weights.isfinite()).all()) or not float(weights.sum()) > 0:
            raise InvalidValueError("weights must be finite, non-negative, and not all zero")

    def atoms(self, history: ContextHistory, seed: int) -> tuple[Tensor, Tensor, float]:
        if self.samples.shape[1] != len(history.lower):
            raise InvalidContextError(
                f"the given distribution has {self.samples.shape[1]} context variables, the space {len(history.lower)}"
            )
        weights = equal_weights(history.lower, len(self.samples)) if self.weights is None else self.weights
        small = history.compressed(self.samples, weights, self.max_atoms or _default_size(self.samples))
        return small.atoms, small.weights, small.error


def _default_size(contexts: Tensor) -> int:
    return MAX_ATOMS_LINE if contexts.shape[1] == 1 else MAX_ATOMS


def smoothed(context_distribution: ContextDistribution, history: ContextHistory, seed: int) -> ContextPoints | None:
    """What ``context_distribution`` takes for the contexts' own distribution, spread out a little; None where it is not
    ``Empirical``, without a context, and where contexts have levels or repeat: those are what they are.

    Of a few atoms the share of good contexts is a step function of the design, and its best design the one that happens
    to suit them; contexts near those seen are as likely.
    """
    contexts = history.contexts
    if not isinstance(context_distribution, Empirical) or not contexts.numel() or history.levels is not None:
        return None
    if len(np.unique(contexts.numpy(), axis=0)) < DISTINCT * len(contexts):
        return None
    atoms = _kernel_sample(history, context_distribution.half_life, SMOOTH_ATOMS, SMOOTHING, seed)
    return ContextPoints(atoms, equal_weights(history.lower, SMOOTH_ATOMS), atoms[:0])


def _kernel_sample(history: ContextHistory, half_life: float | None, size: int, share: float, seed: int) -> Tensor:
    """``size`` contexts of the Gaussian kernel density estimate with a share of its bandwidth, clamped to the box."""
    contexts, weights = history.contexts, history.normalized_weights(half_life)
    dim, effective = contexts.shape[1], 1.0 / weights.square().sum()
    spread = (weights @ (contexts - weights @ contexts).square()).sqrt()
    bandwidth = share * spread * (4.0 / ((dim + 2) * effective)) ** (1.0 / (dim + 4))
    # One coordinate picks the observation, the others its Gaussian noise.
    quantiles = sobol_points(dim + 1, size, seed)
    centers = torch.searchsorted(weights.cumsum(0), quantiles[:, 0].contiguous())
    noise = torch.special.ndtri(quantiles[:, 1:].clamp(1e-12, 1.0 - 1e-12))
    if history.levels is not None:  # a choice is not smoothed into another
        bandwidth = bandwidth.masked_fill(history.levels.unordered, 0.0)
    drawn = (contexts[centers.clamp(max=len(contexts) - 1)] + bandwidth * noise).clamp(history.lower, history.upper)
    return drawn if history.levels is None else history.levels.snap(drawn)


@dataclass(frozen=True, eq=False)
class Levels:
    """What coded contexts can be, as ``scale`` codes them. A choice without order has a column for each level."""

    scale: ContextScale

    @classmethod
    def of(cls, scale: ContextScale) -> Levels | None:
        """None if all variables are real."""
        return cls(scale) if any(scale.whole) else None

    @property
    def discrete(self) -> NDArray[np.bool_]:
        """The columns that hold levels."""
        return self.scale.discrete

    @cached_property
    def unordered(self) -> Tensor:
        """The columns of choices that have no order: there is no way from one to the next."""
        widths = [block.stop - block.start for block in self.scale.blocks]
        return torch.from_numpy(np.repeat(np.array(self.scale.choices) > 0, widths))

    def snap(self, coded: Tensor) -> Tensor:
        """The nearest contexts (... × d_c) that can be met."""
        flat = coded.reshape(-1, coded.shape[-1]).numpy()
        return torch.from_numpy(self.scale.snap(flat)).reshape(coded.shape)

    def at(self, lower: Tensor, upper: Tensor, unit: Tensor) -> Tensor:
        """Points of the unit cube, a coordinate for each variable (n × k), as contexts of a box (n × d_c).

        Of a choice without order the box holds the levels whose column reaches up to one.
        """
        found = lower.new_zeros(len(unit), self.scale.width)
        for k, block in enumerate(self.scale.blocks):
            if self.scale.choices[k]:
                held = torch.nonzero(upper[block] > 0.5).flatten()
                place = (unit[:, k] * len(held)).long().clamp_max(len(held) - 1)
                found[torch.arange(len(unit)), block.start + held[place]] = 1.0
            else:
                found[:, block] = (lower[block] + (upper[block] - lower[block]) * unit[:, k : k + 1]).to(found.dtype)
        return self.snap(found)

    def corners(self, upper: Tensor, most: int) -> Tensor | None:
        """Unit points (n × k) of all corners of a box, that is ends or choices; None if more than ``most``."""
        sides = []
        for k, block in enumerate(self.scale.blocks):
            held = int((upper[block] > 0.5).sum())
            sides.append([(i + 0.5) / held for i in range(held)] if self.scale.choices[k] else [0.0, 1.0])
        if np.prod([float(len(side)) for side in sides]) > most:
            return None
        return torch.tensor(list(itertools.product(*sides)), dtype=upper.dtype)

    def neighbors(self, contexts: Tensor) -> Tensor:
        """Contexts (k × d_c) one level from one of ``contexts`` (n × d_c): another choice, one more or one less."""
        raw = self.scale.decode(contexts.numpy())
        found = []
        for k in np.flatnonzero(self.scale.whole):
            count, own = self.scale.choices[k], raw[:, k]
            others = [(own + step) % count for step in range(1, count)] if count else [own - 1, own + 1]
            found += [np.where(np.arange(raw.shape[1]) == k, other[:, None], raw) for other in others]
        moved = self.snap(torch.from_numpy(self.scale.encode(np.concatenate(found))))
        return torch.from_numpy(np.unique(moved.numpy(), axis=0))

    def grid(self, lower: Tensor, upper: Tensor, size: int) -> list[Tensor]:
        """For each variable its coded levels or points (n_k × width), such that about ``size`` are in all of them."""
        numeric = sum(count == 0 for count in self.scale.choices)
        combinations = float(np.prod([count or 1 for count in self.scale.choices]))
        count = max(2, round((size / combinations) ** (1.0 / max(numeric, 1))))
        axes = []
        for k, block in enumerate(self.scale.blocks):
            number = self.scale.choices[k] or count
            unit = torch.full((number, len(self.scale.blocks)), 0.5, dtype=lower.dtype)
            unit[:, k] = torch.linspace(0.0, 1.0, number, dtype=lower.dtype)
            if self.scale.choices[k]:
                axes.append(torch.eye(number, dtype=lower.dtype))
            else:
                axes.append(torch.unique(self.at(lower, upper, unit)[:, block], dim=0))
        return axes
