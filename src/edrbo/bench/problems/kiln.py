"""A kiln seen through noise: three settings, one load, and a measurement that is off by 5 % of the range."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from edrbo.bench.problems.oracle.distributions import AnyArray, clipped_normal, iid
from edrbo.bench.problems.oracle.shift import with_noise
from edrbo.bench.problems.problem import Problem

NOISE_SHARE = 0.05


def kiln(x: AnyArray, c: AnyArray) -> AnyArray:
    """A curved ridge in heat and time that moves with the load, and a gentle optimum of the draft."""
    heat, time, draft, load = x[..., 0], x[..., 1], x[..., 2], c[..., 0]
    ridge = 1.2 * heat + 0.8 * time - 0.9 * heat * time - 0.55 - 0.35 * load
    strength = np.exp(-12 * ridge**2) * (0.5 + heat * (1.6 - heat))
    evenness = np.cos(2.5 * (draft - 0.3 - 0.4 * load * heat)) + 0.3 * np.sin(7 * time)
    return np.asarray(2 * strength + 0.8 * evenness)


def noisy_kiln_problem() -> Problem:
    problem = Problem(
        name="noisy-kiln",
        description="Heat, time and draft of a kiln for any load, measured with noise of 5 % of the range.",
        d_x=3,
        # Wide, so that the kiln is quite often empty or full.
        context_distribution=iid(clipped_normal(0.5, 0.4)),
        objective=kiln,
    )
    return replace(with_noise(problem, NOISE_SHARE * problem.value_range), name=problem.name)
