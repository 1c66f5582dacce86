"""Worst case over a ball in maximum mean discrepancy, exactly and as the midpoint of two bounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from edrbo.acquisition.risk.base import Functional, WorstCaseFunctional, check_radius
from edrbo.acquisition.risk.mmd_ball import MMDBall
from edrbo.acquisition.risk.mmd_solver import Solver
from edrbo.contexts.distributions import ContextPoints
from edrbo.errors import InvalidValueError

__all__ = ["MMD", "MMDMidpoint"]

JITTER = 1e-8  # added to the diagonal of the kernel matrix


@dataclass(frozen=True)
class MMD(WorstCaseFunctional):
    """min { pᵀs : (p − w)ᵀ M (p − w) ≤ radius² }, p on the atoms and the support.

    M is the squared-exponential kernel of the contexts with ``lengthscale`` in unit coding.
    """

    radius: float
    lengthscale: float = 0.2
    support_size: int = 0
    has_kinks: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_radius(self.radius)
        _check_lengthscale(self.lengthscale)

    def worst_case(self, values: Tensor, points: ContextPoints) -> Tensor:
        rows = values.reshape(-1, values.shape[-1])
        worst = _solver(points, self.lengthscale).minimize(rows.numpy(), self.radius)
        return torch.from_numpy(worst).reshape(values.shape)

    def rough(self) -> Functional:
        return _Segment(self.radius, self.lengthscale)


@dataclass(frozen=True)
class _Segment(Functional):
    """The least expectation on the way from the distribution to its worst point, as far as the ball goes: above
    ``MMD``."""

    radius: float
    lengthscale: float
    support_size: int = 0

    def __call__(self, values: Tensor, points: ContextPoints, slope: Tensor | None = None) -> Tensor:
        distances = np.sqrt(_solver(points, self.lengthscale).ball.squared_distances)
        mean = (points.mass * values).sum(-1)
        low, where = values.min(-1)
        share = (self.radius / torch.from_numpy(distances)[where].clamp_min(1e-300)).clamp_max(1.0)
        return mean + share * (low - mean)


@dataclass(frozen=True)
class MMDMidpoint(Functional):
    """The midpoint of a lower and an upper bound on ``MMD``'s worst case; far cheaper on large grids.

    With V₀ = wᵀs, m = min s, ε₁ = MMD(δ_argmin, w), τ = (m − V₀)/ε₁, S = √(Σs² − (Σs)²/n) and
    ε′ = (V₀ − m)/S, at radius ε: V₀ + ε(τ − S)/2 up to ε′, then (V₀ + ετ + m)/2, and m from ε₁ on
    (also where ε₁ ≤ ε′, for there m is the exact worst case).

    S grows with the number n of grid points, so n is part of the definition. ``grid_points`` is that n when
    the row is evaluated on fewer points that stand for such a grid; None takes the points as they are.
    """

    radius: float
    lengthscale: float = 0.2
    grid_points: int | None = None
    support_size: int = 0

    def __post_init__(self) -> None:
        check_radius(self.radius)
        _check_lengthscale(self.lengthscale)

    def __call__(self, values: Tensor, points: ContextPoints, slope: Tensor | None = None) -> Tensor:
        ball = _solver(points, self.lengthscale).ball
        mean = (points.mass * values).sum(-1)
        low, where = values.min(-1)
        reach = torch.from_numpy(np.sqrt(ball.squared_distances))[where]  # ε₁
        count = self.grid_points or values.shape[-1]
        square = count * (values - values.mean(-1, keepdim=True)).square().mean(-1)
        spread = torch.where(square > 0, square, 1.0).sqrt() * (square > 0)  # S; its root must not see 0
        rate = (low - mean) / reach.clamp_min(1e-300)  # τ
        near = mean + self.radius * (rate - spread) / 2.0
        far = (mean + self.radius * rate + low) / 2.0
        # ε ≤ ε′ as ε S ≤ V₀ − m: no division by the spread of a constant row.
        between = torch.where(self.radius * spread <= mean - low, near, far)
        # Select before the far branches can spoil the gradient: reach 0 means the distribution sits on the minimum.
        return torch.where(self.radius >= reach, low, between)

    def value_and_slopes(
        self, values: Tensor, points: ContextPoints, slope: Tensor | None = None
    ) -> tuple[Tensor, Tensor, None]:
        """In NumPy, which starts its operations faster than torch: rows are short. The value is c_V V₀ + c_m m + c_S S
        with coefficients that depend on the row by ε₁ alone, which is constant where the minimizer is."""
        mass, rows = points.mass.numpy(), values.reshape(-1, values.shape[-1]).numpy()
        each, where = np.arange(len(rows)), rows.argmin(axis=1)
        mean, low = rows @ mass, rows[each, where]
        reach = np.sqrt(_solver(points, self.lengthscale).ball.squared_distances)[where]
        centered = rows - rows.mean(axis=1, keepdims=True)
        stretch = (self.grid_points or rows.shape[1]) / rows.shape[1]
        spread = np.sqrt(stretch * (centered * centered).sum(axis=1))
        share = np.minimum(self.radius / np.maximum(reach, 1e-300), 1.0)
        near, inside = self.radius * spread <= mean - low, self.radius >= reach
        of_mean = np.where(inside, 0.0, np.where(near, 1.0 - 0.5 * share, 0.5 * (1.0 - share)))
        of_spread = np.where(near & ~inside, -0.5 * self.radius, 0.0)
        by_row = of_mean[:, None] * mass
        by_row += (of_spread * stretch / np.where(spread > 0, spread, 1.0))[:, None] * centered
        by_row[each, where] += 1.0 - of_mean
        value = low + of_mean * (mean - low) + of_spread * spread
        shape = values.shape
        return torch.from_numpy(value).reshape(shape[:-1]), torch.from_numpy(by_row).reshape(shape), None


def _check_lengthscale(lengthscale: float) -> None:
    if not lengthscale > 0:
        raise InvalidValueError(f"lengthscale is {lengthscale}", "it must be positive")


@lru_cache(maxsize=4)
def _solver(points: ContextPoints, lengthscale: float) -> Solver:
    """Kernel matrix, distribution and solved rows of ``points``, which one maximization asks for many times."""
    contexts = points.all / lengthscale
    square = (contexts[:, None] - contexts[None]).square().sum(-1)
    kernel = torch.exp(-0.5 * square) + JITTER * torch.eye(len(contexts), dtype=contexts.dtype)
    return Solver(MMDBall.around(points.mass.numpy(), kernel.numpy()))
