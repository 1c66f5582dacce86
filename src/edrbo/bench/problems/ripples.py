"""Ripples: a bowl with cosine ripples that slide with a skewed context, thirty local maxima on average."""

from __future__ import annotations

import numpy as np

from edrbo.bench.problems.oracle.distributions import AnyArray, Product, clipped_burr, iid
from edrbo.bench.problems.problem import Problem

SCALE = 5.0
CENTER = np.array([0.37, 0.58])
# How far the ripples slide in each design, in wavelengths, from context 0 to context 1.
SLIDE = np.array([0.5, -0.9])
BOWL_SLIDE = np.array([1.0, 0.6])
RIPPLE = 2.0


def _place(x: AnyArray) -> AnyArray:
    return np.asarray(SCALE * (x - CENTER))


def ripples(x: AnyArray, c: AnyArray) -> AnyArray:
    place = _place(x)
    bowl = ((place - BOWL_SLIDE * c) ** 2).sum(-1)
    waves = (1 - np.cos(2 * np.pi * (place - SLIDE * c))).sum(-1)
    return np.asarray(-bowl - RIPPLE * waves)


def expected_ripples(x: AnyArray, context_distribution: Product) -> AnyArray:
    """Moments for the bowl; cos(a − b) splits into products of a factor in x and one in c."""
    nodes, weights = context_distribution.quadrature()
    place, angle = _place(x), 2 * np.pi * SLIDE * nodes
    bowl = (place**2 - 2 * place * BOWL_SLIDE * (weights @ nodes) + BOWL_SLIDE**2 * (weights @ nodes**2)).sum(-1)
    cosine, sine = weights @ np.cos(angle), weights @ np.sin(angle)
    waves = (1 - np.cos(2 * np.pi * place) * cosine - np.sin(2 * np.pi * place) * sine).sum(-1)
    return np.asarray(-bowl - RIPPLE * waves)


def ripples_problem() -> Problem:
    return Problem(
        name="ripples",
        description="A bowl full of ripples that slide with a skewed context.",
        d_x=2,
        context_distribution=iid(clipped_burr(2, 5)),
        objective=ripples,
        expectation=expected_ripples,
    )
