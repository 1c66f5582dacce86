"""Observations of earlier sources: other machines, campaigns or a simulator, related to f but not the same.

Intrinsic coregionalization (Bonilla, Chai and Williams, 2008; Swersky, Snoek and Adams, 2013) with one correlation per
source. Each expert believes of the s-th source, standardized by itself,

    f_s = mean_s + ρ_s f/√s_f + √(1 − ρ_s²) g_s,   f ~ GP(mean, s_f k),  g_s ~ GP(0, k) independent,

so that with R = ρρᵀ off a diagonal of ones, ρ_0 = 1, and a_0 = √s_f, a_s = 1

    cov(f_s(ξ), f_t(ξ')) = a_s a_t R_st k(ξ, ξ').

An unrelated source has ρ_s = 0 and says nothing of f. θ has two columns more for each source:

    u_s = artanh ρ_s   a priori normal: related, you said, so ρ is near 0.8 and seldom below zero
    log noise_s        a priori as the noise of f

The outputscale s_f is learned too: few outcomes of a good region tell little of the spread of f.
All queries are of f. So whoever asks needs only the weight of each row, R_0s a_s / √s_f (``row_factor``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from edrbo.surrogate.kernels import Hyperparameters, LogNormal, Priors
from edrbo.surrogate.paired_gp import Whitening

RELATED, RELATED_SD = 1.1, 1.0  # mean and standard deviation of u before any outcome: ρ = 0.8
TRANSFORMED_BOUNDS = (-2.5, 3.8)  # of u: ρ from −0.987 to 0.999
SPREAD = LogNormal(0.5, 0.7)  # of the outputscale; its mode is one
MEAN_SD = 3.0  # of the constant mean, where outcomes are of good designs from the first on
PSEUDO_OUTCOMES = 8  # as many outcomes as the sources' spread counts for that of f
MOST_EARLIER = 400  # rows that are learned from; of more, representative ones


@dataclass(frozen=True, eq=False)
class EarlierRows:
    """Inputs (k × d) in the coding of f's, outcomes (k), known noise variances (k, NaN where not), and of which source
    each is (k), from 1 on; all in the units of f's outcomes."""

    x: Tensor
    y: Tensor
    noise_variance: Tensor
    source: Tensor

    @property
    def sources(self) -> int:
        return int(self.source.max())

    def of(self, source: int) -> Tensor:
        """The outcomes of one source."""
        return self.y[self.source == source]

    def pseudo_outcomes(self, Y: Tensor) -> Tensor:
        """``Y`` (n), and around their mean a few outcomes as far apart as the sources' are: for a scale."""
        largest = max(range(1, self.sources + 1), key=lambda s: len(self.of(s)))
        known = self.of(largest)
        levels = torch.from_numpy((np.arange(PSEUDO_OUTCOMES) + 0.5) / PSEUDO_OUTCOMES)
        few = torch.quantile(known, levels.to(known))
        center = known.mean() if not len(Y) else Y.mean()
        return torch.cat([Y, few - few.mean() + center])


def beside_priors(priors: Priors) -> Priors:
    """``priors`` of f where there are earlier sources."""
    return priors if priors.outputscale is not None else replace(priors, outputscale=SPREAD)


def between_sources(hyper: Hyperparameters) -> Tensor:
    """cov(f_s, f_t) in units of s_f k, M × (S+1) × (S+1); f itself is the first."""
    assert hyper.correlation is not None
    experts = len(hyper.outputscale)
    related = torch.cat([hyper.correlation.new_ones(experts, 1), hyper.correlation], dim=-1)
    matrix = related.unsqueeze(-1) * related.unsqueeze(-2)
    matrix.diagonal(dim1=-2, dim2=-1).fill_(1.0)
    own = hyper.outputscale.rsqrt()[:, None].expand(-1, hyper.sources)
    amplitude = torch.cat([own.new_ones(experts, 1), own], dim=-1)
    return matrix * amplitude.unsqueeze(-1) * amplitude.unsqueeze(-2)


def row_factor(hyper: Hyperparameters, source: Tensor) -> Tensor:
    """Covariance of f with what each row measured, in units of s_f k: M × n."""
    return between_sources(hyper)[:, 0][:, source]


def row_mean(hyper: Hyperparameters, source: Tensor) -> Tensor:
    """M × n."""
    assert hyper.source_mean is not None
    return torch.cat([hyper.mean[:, None], hyper.source_mean], dim=-1)[:, source]


def row_noise(hyper: Hyperparameters, source: Tensor) -> Tensor:
    """M × n."""
    assert hyper.source_noise is not None
    return torch.cat([hyper.noise_variance[:, None], hyper.source_noise], dim=-1)[:, source]


@dataclass(frozen=True, eq=False)
class Weighed:
    """The ``Whitening`` ``base`` of rows that have ``factor`` (... × n) times the covariance that it is given."""

    base: Whitening
    factor: Tensor

    def __getitem__(self, m: int) -> Weighed:
        return Weighed(self.base[m], self.factor[m])

    @property
    def rows(self) -> int:
        return self.base.rows

    def of(self, right: Tensor, *, spent: bool = False) -> Tensor:
        return self.base.of(right * self.factor.unsqueeze(-1), spent=True)

    def back(self, half: Tensor) -> Tensor:
        return self.base.back(half) * self.factor[..., : self.rows].unsqueeze(-1)
