"""The log of all contexts seen, in order of arrival, with or without an outcome; and ``compress``, which replaces a
distribution of many weighted contexts by one of few and says how far the two are apart.

An acquisition evaluates its score at every atom of the distribution, so its cost is linear in their number, while
a stream of contexts has no limit. The distance is Wasserstein: a score that is L-Lipschitz in the
context has an expectation that moves by at most L · W₁.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import InvalidValueError
from edrbo.records.validation import read_floats
from edrbo.space import Space
from edrbo.space.context_scale import ContextScale

__all__ = ["Compressed", "compress"]


Array = NDArray[np.float64]
ArrayOrTensor = TypeVar("ArrayOrTensor")

SAMPLE_ROWS = 8192  # rows k-means sees; the whole distribution is still assigned, weighed and measured at the end
LLOYD_STEPS = 25
ASSIGN_CHUNK = 4096  # rows whose distances to all centers are held at once: fits a CPU cache


@dataclass(frozen=True, eq=False)
class Compressed(Generic[ArrayOrTensor]):
    """A small distribution and its distance from the one it stands for.

    ``error`` is the Wasserstein-2 distance and ``w1`` the Wasserstein-1 distance: both exact for
    one context variable, and above that the cost of moving every context to the atom of its cell, which
    bounds the distance from above.
    """

    atoms: ArrayOrTensor  # k × d_c
    weights: ArrayOrTensor  # k
    error: float
    w1: float


def compress(
    atoms: Array, weights: Array, size: int, seed: int = 0, discrete: NDArray[np.bool_] | None = None
) -> Compressed[Array]:
    """At most ``size`` weighted atoms for the distribution (``atoms``: n × d_c, ``weights``: n).

    A distribution that has no more than ``size`` distinct atoms is kept without error. Otherwise one context
    variable is cut into ``size`` bins of exactly equal mass, each replaced by its mean; several are
    clustered by weighted k-means, which places its centers by at most ``SAMPLE_ROWS`` rows (so in a longer
    distribution a rare atom may join its neighbor). ``seed`` only matters there; the same seed gives the same atoms.
    Columns that are ``discrete`` hold levels, of which there is no mean: atoms have levels that were there, and every
    combination keeps its mass, as long as there are no more of them than ``size``.
    """
    if size < 1:
        raise InvalidValueError(f"cannot compress a distribution to {size} atoms", "ask for at least one atom")
    mass = weights / weights.sum()
    points, mass = atoms[mass > 0], mass[mass > 0]
    if discrete is not None and discrete.any():
        return _between_levels(points, mass, size, seed, discrete)
    if points.shape[1] == 1:
        small, small_mass, w2, w1 = _equal_mass_bins(points[:, 0], mass, size)
        return Compressed(small[:, None], small_mass, w2, w1)
    if len(points) <= SAMPLE_ROWS:
        points, mass = _merged(points, mass)
    if len(points) <= size:
        return Compressed(points, mass, 0.0, 0.0)
    centers = _k_means(*_sample(points, mass, seed), size, seed)
    cells, small_mass, w2, w1 = _to_cell_means(points, mass, centers)
    return Compressed(cells, small_mass, w2, w1)


def _between_levels(points: Array, mass: Array, size: int, seed: int, discrete: NDArray[np.bool_]) -> Compressed[Array]:
    """Each combination of levels is compressed by itself, to a share of the atoms by its mass; if there are too many
    combinations, cells of k-means are replaced by the context nearest to their mean."""
    points, mass = _merged(points, mass)
    if len(points) <= size:
        return Compressed(points, mass, 0.0, 0.0)
    _, first, label = np.unique(points[:, discrete], axis=0, return_index=True, return_inverse=True)
    label = label.reshape(-1)
    if len(first) > size:
        return _medoids(points, mass, _k_means(*_sample(points, mass, seed), size, seed))
    counts = np.bincount(label)
    shares = _shares(np.bincount(label, mass).astype(np.float64, copy=False), counts, size)
    parts, squares, distances = [], 0.0, 0.0
    for k, share in enumerate(shares):
        chosen = label == k
        total = float(mass[chosen].sum())
        small = compress(points[chosen][:, ~discrete], mass[chosen], share, seed) if share < counts[k] else None
        if small is None:
            parts.append((points[chosen], mass[chosen]))
            continue
        rows = np.repeat(points[first[k]][None], len(small.weights), axis=0)
        rows[:, ~discrete] = small.atoms
        parts.append((rows, total * small.weights))
        squares, distances = squares + total * small.error**2, distances + total * small.w1
    rows, weights = (np.concatenate(both) for both in zip(*parts, strict=True))
    return Compressed(rows, weights, squares**0.5, distances)


def _shares(mass: Array, counts: NDArray[np.intp], size: int) -> list[int]:
    """``size`` atoms among groups of ``counts`` contexts: one each, and then where the most mass is for an atom."""
    shares = np.ones(len(mass), dtype=np.intp)
    for _ in range(size - len(mass)):
        shares[np.argmax(np.where(shares < counts, mass / shares, -1.0))] += 1
    found: list[int] = np.minimum(shares, counts).tolist()
    return found


def _medoids(points: Array, mass: Array, centers: Array) -> Compressed[Array]:
    cell = _nearest(points, centers)
    means = _cell_means(points, mass, cell, centers)
    away = ((points - means[cell]) ** 2).sum(1)
    order = np.lexsort((away, cell))
    kept = order[np.concatenate(([True], cell[order][1:] != cell[order][:-1]))]  # the nearest of every cell
    total = np.bincount(cell, mass, len(centers)).astype(np.float64, copy=False)
    place = np.zeros(len(centers), dtype=np.intp)
    place[cell[kept]] = kept
    square = ((points - points[place[cell]]) ** 2).sum(1)
    return Compressed(points[kept], total[cell[kept]], float(mass @ square) ** 0.5, float(mass @ np.sqrt(square)))


def _equal_mass_bins(x: Array, mass: Array, size: int) -> tuple[Array, Array, float, float]:
    """Atoms, weights and exact W₂, W₁ of the bins of equal mass of a distribution on the line."""
    order = np.argsort(x, kind="stable")
    x, mass = x[order], mass[order]
    first = np.concatenate(([True], x[1:] != x[:-1]))
    if first.sum() <= size:
        merged = np.add.reduceat(mass, np.flatnonzero(first))
        return x[first], merged, 0.0, 0.0
    # level → ∫₀^level of the quantile function: piecewise linear between atoms, so interpolation is exact
    # and an atom across a bin's edge is split in the right proportion. Centering keeps it accurate.
    origin = float(mass @ x)
    level = np.concatenate(([0.0], np.cumsum(mass)))
    level /= level[-1]
    moment = np.concatenate(([0.0], np.cumsum(mass * (x - origin))))
    edges = np.linspace(0.0, 1.0, size + 1)
    at_edges = np.interp(edges, level, moment)
    mean = np.diff(at_edges) * size
    spread = float(mass @ (x - origin) ** 2) - float(mean @ mean) / size
    # Within a bin the mass below the mean and the mass above it move equally far in total.
    crossing = level[np.searchsorted(x - origin, mean)].clip(edges[:-1], edges[1:])
    below = mean * (crossing - edges[:-1]) - (np.interp(crossing, level, moment) - at_edges[:-1])
    w1 = 2.0 * float(below.clip(0.0).sum())
    return mean + origin, np.full(size, 1.0 / size), max(spread, 0.0) ** 0.5, w1


def _merged(points: Array, mass: Array) -> tuple[Array, Array]:
    """Equal rows made one, in the order of their first appearance."""
    _, first, label = np.unique(points, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    total = np.bincount(label.reshape(-1), mass).astype(np.float64, copy=False)
    return points[first[order]], total[order]


def _sample(points: Array, mass: Array, seed: int) -> tuple[Array, Array]:
    """The distribution itself, or when it is long one row from each of ``SAMPLE_ROWS`` slices of equal mass."""
    if len(points) <= SAMPLE_ROWS:
        return points, mass
    # A random place in each slice, for a regular one could fall in step with a daily cycle.
    place = (np.arange(SAMPLE_ROWS) + np.random.default_rng(seed).random(SAMPLE_ROWS)) / SAMPLE_ROWS
    rows = np.searchsorted(np.cumsum(mass), place).clip(0, len(points) - 1)
    return points[rows], np.full(SAMPLE_ROWS, 1.0 / SAMPLE_ROWS)


def _k_means(points: Array, mass: Array, size: int, seed: int) -> Array:
    """Centers (at most size × d) of weighted k-means: k-means++ start, then Lloyd steps until they rest."""
    rng = np.random.default_rng(seed)
    chosen = [int(rng.choice(len(points), p=mass))]
    nearest = ((points - points[chosen[0]]) ** 2).sum(1)
    while len(chosen) < size and (odds := mass * nearest).sum() > 0:
        chosen.append(int(rng.choice(len(points), p=odds / odds.sum())))
        np.minimum(nearest, ((points - points[chosen[-1]]) ** 2).sum(1), out=nearest)
    centers = points[chosen]
    for _ in range(LLOYD_STEPS):
        cell = _nearest(points, centers)
        moved = _cell_means(points, mass, cell, centers)
        if np.array_equal(moved, centers):
            break
        centers = moved
    return centers


def _nearest(points: Array, centers: Array) -> NDArray[np.intp]:
    """Index of the nearest center of every point (n)."""
    half_norm = 0.5 * (centers**2).sum(1)
    cell = np.empty(len(points), dtype=np.intp)
    for start in range(0, len(points), ASSIGN_CHUNK):
        chunk = slice(start, start + ASSIGN_CHUNK)
        cell[chunk] = (half_norm - points[chunk] @ centers.T).argmin(1)
    return cell


def _cell_means(points: Array, mass: Array, cell: NDArray[np.intp], centers: Array) -> Array:
    """Mean of every cell; a cell that lost all its points keeps its center."""
    total = np.bincount(cell, mass, len(centers))
    sums = np.stack([np.bincount(cell, mass * column, len(centers)) for column in points.T], 1)
    return np.where(total[:, None] > 0, sums / np.where(total > 0, total, 1.0)[:, None], centers)


def _to_cell_means(points: Array, mass: Array, centers: Array) -> tuple[Array, Array, float, float]:
    """Means and masses of the non-empty cells, and what moving every point to its cell's mean costs."""
    cell = _nearest(points, centers)
    means = _cell_means(points, mass, cell, centers)
    square = ((points - means[cell]) ** 2).sum(1)
    total = np.bincount(cell, mass, len(centers)).astype(np.float64, copy=False)
    kept = total > 0
    return means[kept], total[kept], float(mass @ square) ** 0.5, float(mass @ np.sqrt(square))


LARGEST_WEIGHT = 1e100  # so that sums over any number of batches are numbers
KEPT_ROWS = 5_000  # a longer batch of context-only samples is summarized by fewer weighted ones
SUMMARY_LINE, SUMMARY = 2_048, 128  # atoms of the summary for one context variable, and for several


@dataclass(frozen=True, eq=False)
class ContextBatch:
    """Contexts that arrived together: ``rows`` (n × d_c, the user's units), ``weights`` (n).

    ``count`` is how many contexts the batch stands for. In a summary the weights already hold the forgetting inside
    the batch, and all rows have the age of its end. ``one_run`` marks the contexts that a single run met: those are
    alike, so they tell less of the distribution than as many from different runs.
    """

    rows: Array
    weights: Array
    count: int
    summary: bool = False
    one_run: bool = False


def _rows_of(batches: Sequence[ContextBatch]) -> Array:
    return np.concatenate([batch.rows for batch in batches])


def _weights_of(batches: Sequence[ContextBatch]) -> Array:
    return np.concatenate([batch.weights for batch in batches])


@dataclass(frozen=True)
class ContextLog:
    """Batches in order of arrival; immutable, so that a failed call leaves nothing behind."""

    batches: tuple[ContextBatch, ...] = field(default=())

    def followed_by(self, more: tuple[ContextBatch, ...]) -> ContextLog:
        """With batches that came after; what was put together is gone on from."""
        if not more:
            return self
        after = ContextLog(self.batches + more)
        if "_joined" in vars(self) and self.batches:
            parts = zip(self._joined, (_rows_of(more), _weights_of(more)), strict=True)
            vars(after)["_joined"] = tuple(np.concatenate(pair) for pair in parts)
        return after

    @cached_property
    def _joined(self) -> tuple[Array, Array]:
        """All rows (N × d_c) and the weights (N) that they came with."""
        return _rows_of(self.batches), _weights_of(self.batches)

    def __len__(self) -> int:
        return sum(batch.count for batch in self.batches)

    def weighted(self, d_c: int, half_life: float | None) -> tuple[Array, Array]:
        """All rows (N × d_c) and their weights (N), each halved per ``half_life`` later contexts."""
        if not self.batches:
            return np.empty((0, d_c)), np.empty(0)
        rows, weights = (part.copy() for part in self._joined)
        if half_life is None:
            return rows, weights
        ages, later = [], 0
        for batch in reversed(self.batches):
            inside = np.zeros(len(batch.rows)) if batch.summary else np.arange(batch.count)[::-1]
            ages.append(later + inside)
            later += batch.count
        age = np.concatenate(ages[::-1])
        with np.errstate(over="ignore"):  # an infinite number of half-lives is no weight
            forgotten = weights * np.exp2(-age / half_life)
        if not forgotten.sum() > 0:  # all too old for float64: the youngest are the least forgotten
            forgotten = np.where((weights > 0) & (age == age[weights > 0].min()), weights, 0.0)
        return rows, forgotten

    def effective(self, half_life: float | None) -> float:
        """How many equal and independent contexts would tell as much: (Σ w)² / Σ w² where each came by itself.

        Contexts of one run are alike. With ρ, their correlation within a run, a run's part in the variance of a mean is
        (1 − ρ) Σ w² + ρ (Σ w)² (Kish's design effect). Of a summary the contexts count one by one, as if they had come
        with equal weights. Those that are known in part do not count, unless there are no others.
        """
        if not self.batches:
            return 0.0
        rows, weights = self.weighted(self.batches[0].rows.shape[1], half_life)
        known = ~np.isnan(rows).any(axis=1) & (weights > 0)
        if known.any():  # one that is known in part tells less than one: of what it lacks nothing
            weights = np.where(known, weights, 0.0)
        ends = np.cumsum([len(batch.rows) for batch in self.batches])[:-1]
        inverse, alike = 0.0, self.correlation_within_runs
        for batch, part in zip(self.batches, np.split(weights / weights.sum(), ends), strict=True):
            if part.any():
                number = _faded_number(batch.count, half_life) if batch.summary else _number(part)
                shared = alike if batch.one_run else 0.0
                inverse += float(part.sum()) ** 2 * ((1.0 - shared) / number + shared)
        return 1.0 / inverse

    @property
    def correlation_within_runs(self) -> float:
        """ρ, that of two contexts of one run: between 0 and 1, 1 where runs with several rows cannot be compared.

        The largest over the context variables, of their ranks, since no function of them can be more alike than that.
        By one-way analysis of variance; F is divided by its median without correlation, so that few runs are no reason
        to believe in none.
        """
        runs = [rows for batch in self.batches if batch.one_run for rows in [_known(batch.rows)] if len(rows)]
        sizes = np.array([len(rows) for rows in runs])
        if not (sizes > 1).any():
            return 0.0
        if len(runs) < 2:
            return 1.0
        ranked = _ranks(np.concatenate(runs))
        return max(_intraclass_correlation(column, sizes) for column in ranked.T)


def _known(rows: Array) -> Array:
    """Those contexts that are wholly known."""
    found: Array = rows[~np.isnan(rows).any(axis=1)]
    return found


def _ranks(rows: Array) -> Array:
    """Mean ranks within each column."""
    ranks = np.empty_like(rows)
    for k, column in enumerate(rows.T):
        _, place, counts = np.unique(column, return_inverse=True, return_counts=True)
        ranks[:, k] = (np.cumsum(counts) - 0.5 * (counts - 1))[place]
    return ranks


def _intraclass_correlation(values: Array, sizes: NDArray[np.intp]) -> float:
    """Of ``values`` (n) in groups of ``sizes`` that follow each other."""
    from scipy.special import fdtri

    groups, n = len(sizes), len(values)
    total = float(np.square(values - values.mean()).sum())
    means = np.add.reduceat(values, np.concatenate([[0], np.cumsum(sizes)[:-1]])) / sizes
    between = float(sizes @ np.square(means - values.mean()))
    within = total - between
    if within <= 1e-12 * total:  # constant within every run
        return 1.0 if total > 0.0 else 0.0
    ratio = (between / (groups - 1)) / (within / (n - groups)) / float(fdtri(groups - 1, n - groups, 0.5))
    typical = (n - float(np.square(sizes).sum()) / n) / (groups - 1)
    return float(np.clip((ratio - 1.0) / (ratio - 1.0 + typical), 0.0, 1.0)) if ratio > 1.0 else 0.0


def _number(weights: Array) -> float:
    """(Σ w)² / Σ w² of weights that are not all zero."""
    relative = weights / weights.max()
    return float(relative.sum() ** 2 / np.square(relative).sum())


def _faded_number(count: int, half_life: float | None) -> float:
    """The same of 1, q, q², … with q = 2^(−1/half_life), ``count`` of them: two geometric series."""
    if half_life is None:
        return float(count)
    rate = math.log(2.0) / half_life
    return math.tanh(0.5 * count * rate) / math.tanh(0.5 * rate)


def read_weights(weights: Any, n: int) -> Array:
    if weights is None:
        return np.ones(n)
    array = read_floats(weights)
    if array is None:
        raise InvalidValueError("weights must be numbers", "one non-negative number per context")
    if array.shape != (n,):
        raise InvalidValueError(f"{n} contexts but weights of shape {array.shape}", "give one weight per context")
    if not np.isfinite(array).all() or (array < 0).any():
        raise InvalidValueError("a weight is negative or not finite", "weights are finite numbers ≥ 0")
    if n and not array.max() > 0:
        raise InvalidValueError("all weights are zero", "leave the weights out, or give some context weight")
    if n and not 1 / LARGEST_WEIGHT <= array.max() <= LARGEST_WEIGHT:
        raise InvalidValueError(f"the largest weight is {array.max():g}", "give weights of ordinary size")
    return array


def summarized(space: Space, batch: ContextBatch, half_life: float | None) -> ContextBatch:
    """The batch itself, or if it is long fewer weighted contexts that stand for it."""
    if batch.count <= KEPT_ROWS or batch.summary or np.isnan(batch.rows).any():
        return batch
    weights = batch.weights
    if half_life is not None:
        weights = weights * np.exp2(-np.arange(batch.count)[::-1] / half_life)
    scale: ContextScale = space.context_scale(batch.rows)
    size = SUMMARY_LINE if space.d_c == 1 else SUMMARY
    total = float(weights.sum())
    small = compress(scale.encode(batch.rows), weights / total, size, discrete=scale.discrete)
    return ContextBatch(scale.decode(small.atoms), total * small.weights, batch.count, True)
