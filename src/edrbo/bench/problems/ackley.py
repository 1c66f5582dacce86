"""Ackley's function in three inputs: two designs and one context. Hundreds of local maxima."""

from __future__ import annotations

import numpy as np

from edrbo.bench.problems.oracle.context_distributions import Product, clipped_normal, iid
from edrbo.bench.problems.oracle.distributions import AnyArray
from edrbo.bench.problems.problem import Problem, in_chunks

# At x = (0.5, 0.5) f has a cusp at c = 0.5, and nearby designs curve as sharply: panels shrink towards it.
BREAKS = (0.5, *(0.5 + sign * 2.0**-k for sign in (-1, 1) for k in range(7, 20)))


def _coordinates(inputs: AnyArray) -> AnyArray:
    return np.asarray(65.536 * inputs - 32.768)


def ackley(x: AnyArray, c: AnyArray) -> AnyArray:
    z_x, z_c = _coordinates(x), _coordinates(c)
    mean_square = ((z_x**2).sum(-1) + (z_c**2).sum(-1)) / 3
    mean_cosine = (np.cos(2 * np.pi * z_x).sum(-1) + np.cos(2 * np.pi * z_c).sum(-1)) / 3
    return np.asarray(20 * np.exp(-0.2 * np.sqrt(mean_square)) + np.exp(mean_cosine) - 20 - np.e)


def expected_ackley(x: AnyArray, context_distribution: Product) -> AnyArray:
    """The cosine term is a product of a factor in x and one in c; the other term depends on ‖z_x‖² alone."""
    nodes, weights = context_distribution.quadrature(BREAKS)
    z_x, z_c = _coordinates(x), _coordinates(nodes[:, 0])
    cosine_c = weights @ np.exp(np.cos(2 * np.pi * z_c) / 3)
    cosine_x = np.exp(np.cos(2 * np.pi * z_x).sum(-1) / 3)
    square_c = z_c**2
    bowl = in_chunks(
        lambda square_x: np.exp(-0.2 * np.sqrt((square_x[:, None] + square_c) / 3)) @ weights,
        (z_x**2).sum(-1),
        len(weights),
    )
    return np.asarray(20 * bowl + cosine_x * cosine_c - 20 - np.e)


def ackley_problem() -> Problem:
    return Problem(
        name="ackley",
        description="A needle in a field of ripples; the context blurs the needle.",
        d_x=2,
        context_distribution=iid(clipped_normal(0.5, 0.2)),
        objective=ackley,
        expectation=expected_ackley,
        breaks=BREAKS,
        landmark=(0.5, 0.5),
    )
