"""Problems made from problems: observation noise, a shifted context distribution, a distribution that drifts over time.

What was learned under P is judged under P′ with ``shifted(problem, …).expected(x)`` and its ``optimum``.
Shifted distributions draw from the same uniforms as P, so runs under P and P′ share their random numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from edrbo.bench.problems.oracle.distributions import (
    Affine,
    Array,
    Clipped,
    Distribution,
    JointDistribution,
    Mixture,
    MonteCarlo,
    Product,
    Scenarios,
)
from edrbo.bench.problems.problem import Problem
from edrbo.errors import InvalidValueError


def with_noise(problem: Problem, sd: float) -> Problem:
    """The same problem, observed with normal noise of standard deviation ``sd``; oracles do not change."""
    return replace(problem, name=f"{problem.name}+noise={sd:g}", noise_sd=sd)


def shift_distribution(
    context_distribution: JointDistribution,
    mean_shift: float = 0.0,
    spread: float = 1.0,
    unseen_mode: Distribution | None = None,
    unseen_weight: float = 0.0,
) -> JointDistribution:
    """``context_distribution`` with every component moved, spread about its median, and mixed with a mode P does not
    have.

    All of it happens before clipping, so mass that moves past an end becomes part of its atom. Contexts of a list, or
    draws, are moved and spread one by one.
    """
    if not 0 <= unseen_weight <= 1:
        raise InvalidValueError(f"unseen_weight must lie in [0, 1], got {unseen_weight}.")
    if (unseen_mode is None) != (unseen_weight == 0):
        raise InvalidValueError("unseen_mode and unseen_weight go together.", "give both or neither")

    if isinstance(context_distribution, Scenarios | MonteCarlo):
        if unseen_mode is not None:
            raise InvalidValueError("only independent contexts get an unseen mode", "add it to the list of contexts")
        return _moved_points(context_distribution, mean_shift, spread)

    def moved(component: Clipped) -> Clipped:
        base = component.base
        if mean_shift != 0 or spread != 1:
            median = float(base.quantile(np.array(0.5)))
            base = Affine(base, mean_shift, spread, median)
        if unseen_mode is not None:
            base = Mixture((base, unseen_mode), (1 - unseen_weight, unseen_weight))
        return Clipped(base)

    return Product(tuple(moved(component) for component in context_distribution.components))


def _moved_points(
    context_distribution: Scenarios | MonteCarlo, mean_shift: float, spread: float
) -> Scenarios | MonteCarlo:
    points, weights = context_distribution.quadrature()
    middle = np.array([_weighted_median(column, weights) for column in points.T])

    def move(points: Array) -> Array:
        return np.asarray(np.clip(middle + mean_shift + spread * (points - middle), 0.0, 1.0))

    if isinstance(context_distribution, Scenarios):
        return Scenarios(move(points), weights)
    draw = context_distribution.draw
    return replace(context_distribution, draw=lambda n, rng: move(draw(n, rng)))


def _weighted_median(values: Array, weights: Array) -> float:
    order = np.argsort(values, kind="stable")
    return float(values[order][np.searchsorted(np.cumsum(weights[order]), 0.5 * weights.sum())])


def shifted(
    problem: Problem,
    mean_shift: float = 0.0,
    spread: float = 1.0,
    unseen_mode: Distribution | None = None,
    unseen_weight: float = 0.0,
) -> Problem:
    """The same f under the distribution P′ of :func:`shift_distribution`; its x* and optimum are those of P′."""
    context_distribution = shift_distribution(
        problem.context_distribution, mean_shift, spread, unseen_mode, unseen_weight
    )
    changes = [f"shift={mean_shift:g}"] if mean_shift else []
    changes += [f"spread={spread:g}"] if spread != 1 else []
    changes += [f"unseen={unseen_weight:g}"] if unseen_weight else []
    return replace(problem, name="+".join([problem.name, *changes]), context_distribution=context_distribution)


@dataclass(frozen=True)
class Drift:
    """How far the mean of the contexts has moved at a step, counted from 0.

    ``linear`` reaches ``amplitude`` at step ``period`` and stays there; ``sine`` swings by ±``amplitude``
    once per ``period`` steps, as a day or a season does.
    """

    amplitude: float
    period: int
    kind: Literal["linear", "sine"] = "linear"

    def __post_init__(self) -> None:
        if self.period < 1:
            raise InvalidValueError(f"period must be at least one step, got {self.period}.")
        if not np.isfinite(self.amplitude):
            raise InvalidValueError(f"amplitude must be finite, got {self.amplitude}.")

    def mean_shift(self, step: int) -> float:
        phase = step / self.period
        share = min(max(phase, 0.0), 1.0) if self.kind == "linear" else float(np.sin(2 * np.pi * phase))
        return self.amplitude * share


@dataclass(frozen=True)
class DriftingProblem:
    """A problem whose context distribution moves over time; at any one step it is an ordinary problem."""

    problem: Problem
    drift: Drift

    def at(self, step: int) -> Problem:
        """The problem as it stands at ``step``, with that step's distribution, x* and optimum."""
        shift = self.drift.mean_shift(step)
        return shifted(self.problem, mean_shift=shift) if shift else self.problem

    def sample_contexts(self, n: int, rng: np.random.Generator, start: int = 0) -> Array:
        """Contexts of the steps start, …, start + n − 1, one each: shape (n, d_c)."""
        draws = [self.at(start + i).sample_contexts(1, rng) for i in range(n)]
        return np.concatenate([np.zeros((0, self.problem.d_c)), *draws])
