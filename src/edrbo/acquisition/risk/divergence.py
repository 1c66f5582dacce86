"""Worst cases over balls in f-divergences: Kullback–Leibler, χ² and total variation.

The first two only re-weigh the atoms that have mass, so support points and atoms of weight zero get none, and
the largest ball gives the minimum over the atoms with mass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.risk.base import (
    DEFAULT_SUPPORT,
    Field,
    WorstCaseFunctional,
    all_on_minimum,
    check_radius,
    lowest_points,
)
from edrbo.contexts.distributions import ContextPoints

__all__ = ["KL", "ChiSquare", "TotalVariation"]


@dataclass(frozen=True)
class TotalVariation(WorstCaseFunctional):
    """min { pᵀs : Σ|p − w| ≤ radius }, the un-halved L1 distance, p on the atoms and the support.

    Mass radius/2 leaves the top of the row and goes to its minimum over the whole context box.
    """

    radius: float
    support_size: int = DEFAULT_SUPPORT
    has_kinks: ClassVar[bool] = False
    locally_linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_radius(self.radius)

    def worst_case(self, values: Tensor, points: ContextPoints) -> Tensor:
        if self.radius >= 2.0:
            return all_on_minimum(values)
        # Only atoms have mass to give, and only so many of the highest that even the lightest would do.
        m = len(points.weights)
        moved = self.radius / 2.0
        count = min(m, 1 + int((points.weights.sort().values.cumsum(0) < moved).sum()))
        highest = values[..., :m].topk(count, dim=-1).indices
        weights = points.weights[highest]
        above = weights.cumsum(-1) - weights
        taken = torch.minimum((moved - above).clamp_min(0.0), weights)
        worst = points.mass.expand_as(values).clone()
        worst.scatter_add_(-1, highest, -taken)
        return worst.scatter_add_(-1, values.argmin(-1, keepdim=True), taken.sum(-1, keepdim=True))

    def refine(self, field: Field, points: ContextPoints) -> Tensor:
        return lowest_points(field, points)


Array = NDArray[np.float64]

MAX_STEPS = 200  # a limit that is not met: Newton needs about ten steps, bisection alone about a hundred


@dataclass(frozen=True)
class KL(WorstCaseFunctional):
    """min { pᵀs : Σ p ln(p/w) ≤ radius }: p ∝ w exp(−θ s), with the θ that spends the radius."""

    radius: float
    support_size: int = 0
    has_kinks: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_radius(self.radius)

    def worst_case(self, values: Tensor, points: ContextPoints) -> Tensor:
        scores, mass = _unit_scores(values, points)
        if self.radius == 0.0:
            return _pad(mass.expand_as(scores), values)
        lowest = _given_minimum(scores, mass)
        at_minimum = (mass * (lowest > 0)).sum(-1)
        # in NumPy, which starts its operations faster than torch: rows are short
        rows, context_distribution = scores.reshape(-1, scores.shape[-1]).numpy(), mass.numpy()
        theta = _spend(rows, context_distribution, at_minimum.reshape(-1).numpy(), self.radius)
        tilted = torch.from_numpy(_tilt(rows, context_distribution, theta)[0]).reshape(scores.shape)
        everything = (self.radius >= -at_minimum.log()).unsqueeze(-1)
        return _pad(torch.where(everything, lowest, tilted), values)


@dataclass(frozen=True)
class ChiSquare(WorstCaseFunctional):
    """min { pᵀs : Σ (p − w)²/w ≤ radius }: p ∝ w (η − s)₊, with the η that spends the radius."""

    radius: float
    support_size: int = 0
    has_kinks: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_radius(self.radius)

    def worst_case(self, values: Tensor, points: ContextPoints) -> Tensor:
        scores, mass = _unit_scores(values, points)
        lowest = _given_minimum(scores, mass)
        if self.radius == 0.0:
            return _pad(mass.expand_as(scores), values)
        active = _below_threshold(scores, mass, self.radius)
        kept = mass * active
        total = kept.sum(-1, keepdim=True)
        mean = (kept * scores).sum(-1, keepdim=True) / total
        variance = (kept * (scores - mean).square()).sum(-1, keepdim=True) / total
        # On the active set Σ w (η−s)² = (1 + radius) (Σ w (η−s))² is quadratic in η − mean.
        room = (1.0 + self.radius) * total - 1.0
        threshold = mean + (variance / room.clamp_min(1e-300)).sqrt()
        worst = mass * (threshold - scores).clamp_min(0.0)
        spent = worst.sum(-1, keepdim=True)
        at_minimum = (mass * (lowest > 0)).sum(-1, keepdim=True)
        everything = (self.radius >= 1.0 / at_minimum - 1.0) | (spent <= 0) | (room <= 0)
        worst = torch.where(everything, lowest, worst / torch.where(everything, 1.0, spent))
        return _pad(worst, values)


def _unit_scores(values: Tensor, points: ContextPoints) -> tuple[Tensor, Tensor]:
    """Scores at the atoms with mass, every row shifted and scaled to [0, 1] (... × m), and their mass (m).

    Atoms without mass get score 0.5 and stay at mass 0.
    """
    m = len(points.weights)
    has_mass = points.weights > 0
    scores = values[..., :m]
    low = scores.masked_fill(~has_mass, math.inf).amin(-1, keepdim=True)
    high = scores.masked_fill(~has_mass, -math.inf).amax(-1, keepdim=True)
    span = torch.where(high > low, high - low, 1.0)
    return torch.where(has_mass, (scores - low) / span, 0.5), points.weights


def _given_minimum(scores: Tensor, mass: Tensor) -> Tensor:
    """The distribution given that the score is minimal (... × m); scores from ``_unit_scores``."""
    lowest = mass * (scores == 0.0)
    return lowest / lowest.sum(-1, keepdim=True)


def _pad(worst: Tensor, values: Tensor) -> Tensor:
    """Zeros for the support (... × (m + p))."""
    return torch.nn.functional.pad(worst, (0, values.shape[-1] - worst.shape[-1]))


def _tilt(scores: Array, mass: Array, theta: Array) -> tuple[Array, Array, Array]:
    """p ∝ w exp(−θ s) (b × m), its divergence KL(p‖w) (b) and variance of the score (b)."""
    tilted = np.exp(-theta[:, None] * scores)
    tilted *= mass
    total = tilted.sum(axis=1)
    tilted /= total[:, None]
    mean = np.einsum("bm,bm->b", tilted, scores)
    away = scores - mean[:, None]
    variance = np.einsum("bm,bm,bm->b", tilted, away, away)
    return tilted, np.maximum(-theta * mean - np.log(total), 0.0), variance


def _spend(scores: Array, mass: Array, at_minimum: Array, radius: float) -> Array:
    """θ with KL(p_θ‖w) = radius (b), where it exists, for scores (b × m); KL increases with θ.

    Newton on √KL, which is nearly linear in θ at first, kept inside a bracket. Most rows are done after a few steps;
    those that must be bisected go on by themselves.
    """
    variance = _tilt(scores, mass, np.zeros(len(scores)))[2]
    found = np.minimum(np.sqrt(2.0 * radius / np.maximum(variance, 1e-300)), 1e18)
    left = np.flatnonzero((radius < -np.log(at_minimum)) & (variance > 0))
    scores, theta = scores[left], found[left]
    low, high = np.zeros_like(theta), np.full_like(theta, math.inf)
    for _ in range(MAX_STEPS):
        _, spent, variance = _tilt(scores, mass, theta)
        low = np.where(spent <= radius, theta, low)
        high = np.where(spent > radius, theta, high)
        root = np.sqrt(spent)
        newton = theta + (math.sqrt(radius) - root) * 2.0 * root / np.maximum(theta * variance, 1e-300)
        middle = np.where(np.isfinite(high), 0.5 * (low + high), 4.0 * theta)
        # The first of these steps that stays inside the bracket and makes real progress.
        inside = (newton > low) & (newton < high) & (newton < 16.0 * theta)
        proposed = np.where(inside, newton, middle)
        # a step within rounding has arrived, also where rounding puts it outside: to bisect would start from afar
        arrived = (spent > 0) & (np.abs(newton - theta) <= 1e-12 * theta)
        moving = ~arrived & (np.abs(proposed - theta) > 1e-13 * theta)
        found[left] = np.where(moving, proposed, theta)
        if not moving.any():
            break
        if not moving.all():
            left, scores, low, high = left[moving], scores[moving], low[moving], high[moving]
        theta = proposed[moving]
    return found


def _below_threshold(scores: Tensor, mass: Tensor, radius: float) -> Tensor:
    """Which atoms lie below the threshold η of the χ² worst case (... × m).

    The divergence of w (η − s)₊ falls as η grows; it is known in closed form at every η = s_j, so the
    atoms below the solution are those at which it still exceeds the radius.
    """
    ordered, order = scores.sort(dim=-1, stable=True)
    weights = mass.expand_as(scores).gather(-1, order)
    zeroth = weights.cumsum(-1)
    first = (weights * ordered).cumsum(-1)
    second = (weights * ordered.square()).cumsum(-1)
    linear = ordered * zeroth - first
    quadratic = ordered.square() * zeroth - 2.0 * ordered * first + second
    exceeds = quadratic > (1.0 + radius) * linear.square()
    exceeds |= linear <= 0.0  # the atoms at the minimum, where the divergence has no finite value
    # Divergence is monotone: everything before the last atom that exceeds is below the threshold too.
    count = (exceeds * torch.arange(1, scores.shape[-1] + 1)).amax(-1, keepdim=True)
    return torch.zeros_like(scores, dtype=torch.bool).scatter_(
        -1, order, torch.arange(scores.shape[-1]).expand_as(scores) < count
    )
