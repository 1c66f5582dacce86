"""Replicates: observations at one input, as one row of a model (Binois, Gramacy and Ludkovski, 2018).

k observations y_i of f at one input, with noise variances v_i, say of f what their mean ȳ, each weighed by 1/v_i, says
with variance v = 1/Σ 1/v_i. What is left is their scatter around ȳ, which tells of the noise alone:

    Π N(y_i; f, v_i) = N(ȳ; f, v) · √(2πv) Π (2πv_i)^(−½) exp(−½ Σ (y_i − ȳ)²/v_i)

So a model of few inputs tried often is as small as these are few, and its posterior, evidence and fit are those of all
observations. Inputs that differ by less than ``SAME_INPUT`` are one: f cannot change there by more than the least
noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

SAME_INPUT = 1e-7  # of the unit cube, in every coordinate
LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True, eq=False)
class Replicates:
    """Which of n observations share a row of the k that a model has."""

    rows: Tensor  # n: the model's row of each observation
    first: Tensor  # k: the observation whose input a row has
    share: Tensor  # n: of each observation in the mean of its row; they sum to one
    known: Tensor | None  # n: known variances of the noise, NaN where not; a row holds known ones or others
    deviation: Tensor  # n: y_i − ȳ, standardized

    @classmethod
    def among(cls, x: Tensor, y: Tensor, known: Tensor | None) -> Replicates | None:
        """Those of observations at ``x`` (n × d) with standardized outcomes (n); None if all inputs differ."""
        labels = np.zeros(len(x)) if known is None else known.isnan().numpy().astype(np.float64)
        rows = same_rows(np.concatenate([x.numpy(), labels[:, None]], axis=1))
        if rows is None:
            return None
        index, first = torch.from_numpy(rows), torch.from_numpy(np.unique(rows, return_index=True)[1])
        weight = torch.ones_like(y) if known is None else torch.where(known.isnan(), 1.0, known.reciprocal())
        total = torch.zeros(len(first), dtype=y.dtype).index_add_(0, index, weight)
        return cls(index, first, weight / total[index], known, y).with_outcomes(y)

    def mean(self, y: Tensor) -> Tensor:
        """ȳ (k) of outcomes (n)."""
        return torch.zeros(len(self.first), dtype=y.dtype).index_add_(0, self.rows, self.share * y)

    def with_outcomes(self, y: Tensor) -> Replicates:
        """The same rows for other outcomes (n)."""
        return replace(self, deviation=y - self.mean(y)[self.rows])

    def and_more(self, count: int) -> Replicates:
        """With ``count`` observations more, each in a row of its own and with noise that is not known."""
        k, n = len(self.first), len(self.rows)
        none = self.deviation.new_zeros(count)
        return Replicates(
            torch.cat([self.rows, torch.arange(k, k + count)]),
            torch.cat([self.first, torch.arange(n, n + count)]),
            torch.cat([self.share, none + 1.0]),
            None if self.known is None else torch.cat([self.known, none + torch.nan]),
            torch.cat([self.deviation, none]),
        )

    @cached_property
    def count(self) -> Tensor:
        """Observations in each row (k)."""
        return torch.bincount(self.rows, minlength=len(self.first)).to(self.share.dtype)

    @cached_property
    def noise_variance(self) -> Tensor | None:
        """v of each row (k), NaN where it is not known."""
        return None if self.known is None else (self.known * self.share)[self.first]

    @cached_property
    def _unknown(self) -> Tensor:
        """Which observations have noise that is not known (n)."""
        return torch.ones_like(self.rows, dtype=torch.bool) if self.known is None else self.known.isnan()

    def log_density(self, noise_variance: Tensor, ratio: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Of the scatter, by each expert with its own variance ``noise_variance`` (M), at each row (k) ``ratio`` times
        that; its derivative by log noise and minus the second one (M each)."""
        unknown = self._unknown
        free = float(unknown.sum()) - float(unknown[self.first].sum())  # observations beyond the first of their row
        if ratio is None:
            square, level = float(self.deviation[unknown].square().sum()), 0.0
        else:
            square = float((self.deviation.square() / ratio[self.rows])[unknown].sum())
            level = float(ratio.log()[self.rows][unknown].sum()) - float(ratio.log()[unknown[self.first]].sum())
        value = -0.5 * (free * (LOG_2PI + noise_variance.log()) + level + square / noise_variance) + self._constant
        return value, 0.5 * (square / noise_variance - free), 0.5 * square / noise_variance

    @cached_property
    def _constant(self) -> float:
        unknown = self._unknown[self.first]
        constant = -0.5 * float(self.count[unknown].log().sum())
        if self.known is not None:
            noise_variance, all_noise = self.known[~self._unknown], (self.known * self.share)[self.first][~unknown]
            spread = self.deviation[~self._unknown].square() / noise_variance
            constant -= 0.5 * float((LOG_2PI + noise_variance.log() + spread).sum() - (LOG_2PI + all_noise.log()).sum())
        return constant


def same_rows(points: Array) -> Rows | None:
    """A number for each of ``points`` (n × d), shared by those within ``SAME_INPUT`` of the first of that number; None
    if all differ. Numbers count up as the points come, so that more points after them change nothing."""
    # Points that are the same are so on any line; on this one hardly any others are.
    line = 1.0 + np.sqrt(np.arange(2.0, 2.0 + points.shape[1])) % 1.0
    place = points @ line
    order = np.argsort(place, kind="stable")
    joined = np.diff(place[order]) <= SAME_INPUT * line.sum()
    if not joined.any():
        return None
    leader = np.arange(len(points))
    for run in np.split(order, np.flatnonzero(~joined) + 1):
        if len(run) > 1:
            _lead(points, np.sort(run), leader)
    if (leader == np.arange(len(points))).all():
        return None
    numbers: Rows = np.cumsum(leader == np.arange(len(points)))[leader] - 1
    return numbers


def _lead(points: Array, run: Rows, leader: Rows) -> None:
    """Write down for each point of ``run`` the first one it is the same as."""
    left = run
    while len(left) > 1:
        same = (np.abs(points[left] - points[left[0]]) <= SAME_INPUT).all(axis=1)
        leader[left[same]] = left[0]
        left = left[~same]
