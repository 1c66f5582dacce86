"""Protocol of risk functionals: the scores s(x, c_1..c_n) of a design go in, one number comes out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from edrbo.contexts.distributions import ContextPoints, Levels
from edrbo.errors import InvalidValueError
from edrbo.surrogate.quasi_newton import Array, minimize_lbfgs

__all__ = ["Expectation", "Functional", "Minimum", "WorstCaseFunctional"]


@dataclass(frozen=True)
class Field:
    """The scores of ``count`` designs as functions of the context, for many pairs of the two at once.

    ``values`` takes the designs' numbers (r) and contexts (r × d_c) to scores (r), the other one also to slopes
    (r × d_c).
    """

    count: int
    values: Callable[[Tensor, Tensor], Tensor]
    values_and_slopes: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]

    def everywhere(self, contexts: Tensor) -> Tensor:
        """Scores (count × p) at contexts that are each design's own (count × p × d_c)."""
        return self.values(self._each(contexts), contexts.flatten(0, 1)).reshape(contexts.shape[:-1])

    def slopes_everywhere(self, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """The same with slopes (count × p × d_c)."""
        values, slopes = self.values_and_slopes(self._each(contexts), contexts.flatten(0, 1))
        return values.reshape(contexts.shape[:-1]), slopes.reshape(contexts.shape)

    def _each(self, contexts: Tensor) -> Tensor:
        return torch.arange(self.count).repeat_interleave(contexts.shape[1])


DEFAULT_SUPPORT = 64  # points of the context box a worst case may move mass to, besides the atoms
DESCENTS, DESCENT_STEPS = 4, 10  # to the lowest context: how many, and iterations of each
LOWEST = 16  # contexts kept beside them: as the design moves, another may become the lowest


class Functional(ABC):
    """Reduces scores at ``points.all`` to one number per design.

    ``support_size`` is how many points of the whole context box, besides the atoms of the distribution, the
    functional wants. With ``needs_slope`` the caller also passes max_c ‖∇_c s(x, c)‖.
    """

    support_size: int
    needs_slope: ClassVar[bool] = False
    # As a function of x, where one piece of a worst case takes over from another: gradients stall there, and the
    # maximizer adds direct search. Off where that gained nothing (at most 1e-4 of the range in 18 states).
    has_kinks: ClassVar[bool] = True
    # Whether the worst-case weights stay the same under small changes of the row, so that an integrated score under
    # them has an exact gradient.
    locally_linear: ClassVar[bool] = False
    # Whether hills of nearly one height are usual (benchmarks/search_misses.py)
    multimodal: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, values: Tensor, points: ContextPoints, slope: Tensor | None = None) -> Tensor:
        """``values`` (... × (m + p)) at ``points.all``, differentiable; returns (...)."""

    def value_and_slopes(
        self, values: Tensor, points: ContextPoints, slope: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """The value (...) and its derivatives by ``values`` and by ``slope``, without a graph. By autograd, unless a
        functional knows better."""
        inputs = [part.detach().requires_grad_() for part in (values, slope) if part is not None]
        with torch.enable_grad():
            value = self(inputs[0], points, *inputs[1:])
            by_values, *by_slope = torch.autograd.grad(value.sum(), inputs)
        return value.detach(), by_values, by_slope[0] if by_slope else None

    def refine(self, field: Field, points: ContextPoints) -> Tensor:
        """The support (p × d_c) that matters for the designs whose scores are ``field``; by default the general one."""
        return points.support

    def rough(self) -> Functional:
        """A cheap approximation that ranks designs much alike, for screening many of them."""
        return self


class WorstCaseFunctional(Functional):
    """The least expectation over a set of distributions on ``points.all``."""

    @abstractmethod
    def worst_case(self, values: Tensor, points: ContextPoints) -> Tensor:
        """The minimizing distribution of every row (... × (m + p)), without gradient."""

    def __call__(self, values: Tensor, points: ContextPoints, slope: Tensor | None = None) -> Tensor:
        # Envelope theorem: the gradient of the minimum is that of the expectation under the minimizer.
        return (self.worst_case(values.detach(), points) * values).sum(-1)

    def value_and_slopes(
        self, values: Tensor, points: ContextPoints, slope: Tensor | None = None
    ) -> tuple[Tensor, Tensor, None]:
        worst = self.worst_case(values, points)
        return (worst * values).sum(-1), worst, None


@dataclass(frozen=True)
class Expectation(WorstCaseFunctional):
    """Σ_j w_j s_j: the worst case when the distribution is known for certain."""

    support_size: int = 0
    has_kinks: ClassVar[bool] = False
    locally_linear: ClassVar[bool] = True

    def worst_case(self, values: Tensor, points: ContextPoints) -> Tensor:
        return points.mass.expand_as(values)

    def value_and_slopes(
        self, values: Tensor, points: ContextPoints, slope: Tensor | None = None
    ) -> tuple[Tensor, Tensor, None]:
        return values @ points.mass, points.mass.expand_as(values), None


@dataclass(frozen=True)
class Minimum(WorstCaseFunctional):
    """min_j s_j over the atoms, whatever their weight, and the support: any distribution is possible."""

    support_size: int = 0
    locally_linear: ClassVar[bool] = True

    def worst_case(self, values: Tensor, points: ContextPoints) -> Tensor:
        return all_on_minimum(values)

    def refine(self, field: Field, points: ContextPoints) -> Tensor:
        return lowest_points(field, points)


def all_on_minimum(values: Tensor) -> Tensor:
    """All mass on the first minimizer of every row (... × n)."""
    return torch.zeros_like(values).scatter_(-1, values.argmin(-1, keepdim=True), 1.0)


def held_choices(field: Field, levels: Levels | None) -> Field:
    """``field`` without slopes where there is no way to go: between choices that have no order."""
    if levels is None:
        return field
    unordered = levels.unordered

    def values_and_slopes(designs: Tensor, contexts: Tensor) -> tuple[Tensor, Tensor]:
        values, slopes = field.values_and_slopes(designs, contexts)
        return values, slopes.masked_fill(unordered, 0.0)

    return replace(field, values_and_slopes=values_and_slopes)


def lowest_points(field: Field, points: ContextPoints) -> Tensor:
    """For each design the lowest of ``points``, and the ends of descents from them in the box that holds them all; each
    once (k × d_c), and no atom, which is there anyway."""
    contexts, atoms = points.all, len(points.atoms)
    lower, upper = contexts.amin(0), contexts.amax(0)
    if lower.numel() == 0:
        return points.support
    order = field.everywhere(contexts.expand(field.count, -1, -1)).argsort(dim=-1, stable=True)
    starts = order[:, :DESCENTS]
    field = held_choices(field, points.levels)
    designs = torch.arange(field.count).repeat_interleave(starts.shape[1])

    def scores(places: Array, rows: list[int]) -> tuple[Array, Array]:
        value, slope = field.values_and_slopes(designs[rows], torch.from_numpy(places))
        return value.numpy(), slope.numpy()

    start, box = contexts[starts.flatten()].numpy(), (lower.numpy(), upper.numpy())
    ends, _ = minimize_lbfgs(scores, start, *box, max_iterations=DESCENT_STEPS, ftol=1e-4, max_line_search=5)
    ends = ends if points.levels is None else points.levels.scale.snap(ends)
    low = order[:, :LOWEST].flatten()
    found = np.concatenate([ends, contexts[low[low >= atoms]].numpy()])
    return torch.from_numpy(np.unique(found, axis=0))


def check_radius(radius: float) -> None:
    if not (math.isfinite(radius) and radius >= 0):
        raise InvalidValueError(f"radius is {radius}", "it must be a finite number ≥ 0")
