"""The lower tail of the score: conditional value at risk and value at risk, exactly; and tails and minima without
kinks, for searching: every score is spread out by a small part of the row's deviation.

The atoms stand for a continuous distribution, whose tail has no kinks in x. A score s_j becomes a logistic variable
around s_j of scale τ = softness · sd of the row. The value is then a smooth function of the row with v(a + b s) = a + b
v(s) for b ≥ 0, so by Euler's theorem it is Σ_j p_j s_j with its own gradient p as the weights. They sum to one but may
be slightly negative.

In NumPy, which starts its operations several times faster than torch: rows are short.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.risk.base import DEFAULT_SUPPORT, Field, Functional, WorstCaseFunctional, lowest_points
from edrbo.contexts.distributions import ContextPoints
from edrbo.errors import InvalidValueError

__all__ = ["CVaRFunctional", "SoftCVaR", "SoftMinimum", "SoftVaR", "VaR"]


def check_alpha(alpha: float) -> None:
    if not 0.0 < alpha <= 1.0:
        raise InvalidValueError(f"alpha is {alpha}", "it is the probability of the worst tail, in (0, 1]")


@dataclass(frozen=True)
class CVaRFunctional(WorstCaseFunctional):
    """Mean of the worst ``alpha`` of the distribution: min { pᵀs : 0 ≤ p ≤ w / alpha }. ``alpha`` = 1: expectation."""

    alpha: float
    support_size: int = 0
    locally_linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def worst_case(self, values: Tensor, points: ContextPoints) -> Tensor:
        order = values.argsort(dim=-1, stable=True)
        mass = points.mass.expand_as(values).gather(-1, order)
        below = mass.cumsum(-1) - mass
        kept = torch.minimum((self.alpha - below).clamp_min(0.0), mass)
        kept = kept / kept.sum(-1, keepdim=True)
        return torch.zeros_like(values).scatter_(-1, order, kept)


@dataclass(frozen=True)
class VaR(Functional):
    """The ``alpha``-quantile: the least atom v with P(s ≤ v) ≥ ``alpha``. Not concave in the score."""

    alpha: float
    support_size: int = 0
    multimodal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def __call__(self, values: Tensor, points: ContextPoints, slope: Tensor | None = None) -> Tensor:
        ordered, order = values.sort(dim=-1, stable=True)
        reached = points.mass.expand_as(values).gather(-1, order).cumsum(-1)
        # Eight weights of 0.1 must reach 0.8, though their floating-point sum does not. The greatest
        # sum may itself fall short of one, so it serves as the highest level that can be asked for.
        level = torch.clamp(reached[..., -1:], max=self.alpha) * (1.0 - 1e-12)
        index = (reached < level).sum(-1, keepdim=True)
        return ordered.gather(-1, index).squeeze(-1)


Array = NDArray[np.float64]

SOFTNESS = 0.06  # half the distance of neighbors when 32 atoms spread over a row
MAX_STEPS = 60  # a limit that is not met: ten are usual
PROBABILITY_TOLERANCE = 1e-11  # of a probability


class _Soft(WorstCaseFunctional):
    """A smooth value of a row, by its gradient in the scores and in their spread."""

    softness: float
    has_kinks: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.softness > 0:
            raise InvalidValueError(f"softness is {self.softness}", "it must be positive")

    @abstractmethod
    def _slopes(self, scores: Array, mass: Array) -> tuple[Array, Array]:
        """Of standardized scores (b × n) under ``mass`` (n): ∂v/∂s (b × n), and −∂v/∂ln τ (b × 1)."""

    def worst_case(self, values: Tensor, points: ContextPoints) -> Tensor:
        mass = points.mass.numpy()
        rows = values.reshape(-1, values.shape[-1]).numpy()
        centered = rows - (rows @ mass)[:, None]
        sd = np.sqrt((centered * centered) @ mass)[:, None]
        largest = np.abs(centered).max(axis=1, keepdims=True, initial=0.0)
        unit = np.where(sd > 1e-12 * largest, sd, largest)  # without spread over the distribution any unit will do
        scores = centered / np.where(unit > 0, unit, 1.0)
        weights, loss = self._slopes(scores, mass)
        return torch.from_numpy(weights - loss * mass * scores).reshape(values.shape)


@dataclass(frozen=True)
class SoftVaR(_Soft):
    """The ``alpha``-quantile t of the spread-out distribution: Σ_j w_j σ((t − s_j)/τ) = alpha, σ the logistic
    function."""

    alpha: float
    softness: float = SOFTNESS
    support_size: int = 0
    multimodal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_alpha(self.alpha)
        if self.alpha == 1.0:
            raise InvalidValueError(
                "alpha is 1", "the largest score of a spread-out distribution has no bound; use VaR"
            )

    def _slopes(self, scores: Array, mass: Array) -> tuple[Array, Array]:
        z, below = _tail(scores, mass, self.alpha, self.softness)
        density = mass * below * (1.0 - below)
        near = density / density.sum(axis=1, keepdims=True)
        return near, -self.softness * (near * z).sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class SoftCVaR(_Soft):
    """The mean of the worst ``alpha`` of the spread-out distribution."""

    alpha: float
    softness: float = SOFTNESS
    support_size: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_alpha(self.alpha)

    def _slopes(self, scores: Array, mass: Array) -> tuple[Array, Array]:
        if self.alpha == 1.0:
            return np.broadcast_to(mass, scores.shape), np.zeros((len(scores), 1))
        z, below = _tail(scores, mass, self.alpha, self.softness)
        # t − Σ_j w_j τ ln(1 + exp z_j)/alpha is greatest at t: only s and τ need be differentiated
        excess = np.logaddexp(0.0, z) - z * below
        share = mass / self.alpha
        return share * below, self.softness * (share * excess).sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class SoftMinimum(_Soft):
    """−τ ln Σ_j exp(−s_j/τ) over atoms and support, whatever their weight: a little below the minimum."""

    softness: float = 0.03
    support_size: int = DEFAULT_SUPPORT

    def _slopes(self, scores: Array, mass: Array) -> tuple[Array, Array]:
        low = scores.min(axis=1, keepdims=True)
        unscaled = np.exp((low - scores) / self.softness)
        total = unscaled.sum(axis=1, keepdims=True)
        share = unscaled / total
        value = low - self.softness * np.log(total)
        return share, (share * scores).sum(axis=1, keepdims=True) - value

    def refine(self, field: Field, points: ContextPoints) -> Tensor:
        return lowest_points(field, points)


def _tail(scores: Array, mass: Array, alpha: float, softness: float) -> tuple[Array, Array]:
    """z_j = (t − s_j)/softness and σ(z_j) (b × n) at the t where Σ_j w_j σ(z_j) = alpha.

    By Newton's method, and by bisection where that leaves the bracket. It begins at the quantile of the atoms.
    """
    order = scores.argsort(axis=1)
    reached = mass[order].cumsum(axis=1)
    index = np.minimum((reached < alpha).sum(axis=1), scores.shape[1] - 1)[:, None]
    t = np.take_along_axis(scores, np.take_along_axis(order, index, axis=1), axis=1)
    margin = softness * (50.0 - np.log(alpha) - np.log1p(-min(alpha, 1.0 - 1e-16)))
    low, high = scores.min(axis=1, keepdims=True) - margin, scores.max(axis=1, keepdims=True) + margin
    for _ in range(MAX_STEPS):
        z = (t - scores) / softness
        below = 0.5 + 0.5 * np.tanh(0.5 * z)
        excess = below @ mass - alpha
        if np.abs(excess).max(initial=0.0) < PROBABILITY_TOLERANCE:
            break
        over = (excess >= 0.0)[:, None]
        low, high = np.where(over, low, t), np.where(over, t, high)
        density = (below * (1.0 - below)) @ mass
        newton = t - (excess * softness / np.maximum(density, 1e-300))[:, None]
        t = np.where((newton >= low) & (newton <= high), newton, 0.5 * (low + high))
    return z, below
