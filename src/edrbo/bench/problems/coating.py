"""A coating line: four settings of the machine, the humidity of the day and the temperature of the hall.

Designs: line speed, oven heat, pump flow, blade angle. The faster the line, the more it earns and the wetter the
coat leaves the oven; a hot oven in a hot hall blisters; a thinner paste, in a warm hall, flows more.
"""

from __future__ import annotations

import numpy as np

from edrbo.bench.problems.oracle.distributions import AnyArray, Clipped, Mixture, Normal, Product, Uniform
from edrbo.bench.problems.problem import Problem

TARGET_THICKNESS = 0.45
WET_HUMIDITY, BLISTER_HEAT = 1.5, 2.0
# Thickness per flow at the hall's temperature r: 1 + THINNING·(r − ½).
THINNING = 0.4


def _thickness(x: AnyArray) -> AnyArray:
    """Thickness at a temperature of one half."""
    return np.asarray(x[..., 2] * (1.4 - 0.6 * x[..., 3]) / (0.8 + 0.6 * x[..., 0]))


def _wetness(x: AnyArray) -> AnyArray:
    return np.asarray(np.exp(3 * (1.2 * x[..., 0] - x[..., 1] - 0.2)))


def _blisters(x: AnyArray) -> AnyArray:
    return np.asarray(np.exp(5 * (x[..., 1] - 0.9)))


def coating(x: AnyArray, c: AnyArray) -> AnyArray:
    humidity, temperature = c[..., 0], c[..., 1]
    thinning = 1 + THINNING * (temperature - 0.5)
    wet = _wetness(x) * np.exp(WET_HUMIDITY * humidity)
    blistered = _blisters(x) * np.exp(BLISTER_HEAT * temperature)
    uneven = 12 * (_thickness(x) * thinning - TARGET_THICKNESS) ** 2
    streaks = 8 * (x[..., 3] - 0.2 - 0.6 * humidity) ** 2
    return np.asarray(8 * x[..., 0] - wet - blistered - uneven - streaks)


def expected_coating(x: AnyArray, context_distribution: Product) -> AnyArray:
    """f is a sum of products of a factor in x and one in a single context, whose mean is one number."""
    (h, of_h), (r, of_r) = (component.quadrature() for component in context_distribution.components)
    thinning = 1 + THINNING * (r - 0.5)
    angle, thickness = x[..., 3] - 0.2, _thickness(x)
    wet = _wetness(x) * (of_h @ np.exp(WET_HUMIDITY * h))
    blistered = _blisters(x) * (of_r @ np.exp(BLISTER_HEAT * r))
    off_target = thickness**2 * (of_r @ thinning**2) - 2 * TARGET_THICKNESS * thickness * (of_r @ thinning)
    streaks = angle**2 - 1.2 * angle * (of_h @ h) + 0.36 * (of_h @ h**2)
    return np.asarray(8 * x[..., 0] - wet - blistered - 12 * (off_target + TARGET_THICKNESS**2) - 8 * streaks)


def coating_problem() -> Problem:
    dry_and_wet_days = Mixture((Normal(0.25, 0.12), Normal(0.85, 0.1)), (0.7, 0.3))
    return Problem(
        name="coating",
        description="Settings of a coating line for dry and wet days, in a hall that is never at one temperature.",
        d_x=4,
        context_distribution=Product((Clipped(dry_and_wet_days), Clipped(Uniform(0.2, 0.9)))),
        objective=coating,
        expectation=expected_coating,
    )
