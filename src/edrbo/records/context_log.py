"""The log of all contexts seen, in order of arrival, with or without an outcome."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import InvalidValueError
from edrbo.records.compression import compress
from edrbo.records.validation import read_floats
from edrbo.space import Space
from edrbo.space.context_scale import ContextScale

Array = NDArray[np.float64]

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


@dataclass(frozen=True)
class ContextLog:
    """Batches in order of arrival; immutable, so that a failed call leaves nothing behind."""

    batches: tuple[ContextBatch, ...] = field(default=())

    def __len__(self) -> int:
        return sum(batch.count for batch in self.batches)

    def weighted(self, d_c: int, half_life: float | None) -> tuple[Array, Array]:
        """All rows (N × d_c) and their weights (N), each halved per ``half_life`` later contexts."""
        if not self.batches:
            return np.empty((0, d_c)), np.empty(0)
        rows = np.concatenate([batch.rows for batch in self.batches])
        weights = np.concatenate([batch.weights for batch in self.batches])
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
