"""Problems with a limit on a second outcome: the best average among designs that keep it in a share of contexts.

    press      1 design, 1 context    more pressure makes more and marks the sheet, in 90 % of contexts little enough
    cutting    2 designs, 1 context   cooling costs and lets one cut faster, whatever the hardness, 95 %
    gauge      2 designs, 1 context   a thickness between two ends, 90 %; measured with noise
    dryer      3 designs, 2 contexts  cheap drying that still dries nearly every load, 90 %; measured with noise

The limit binds at the best design of each. The share of contexts that keep it is exact: every limit is monotone in one
context, so it is that context's distribution function, in ``dryer`` under an integral over the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from edrbo.bench.problems.oracle.distributions import (
    AnyArray,
    Array,
    Clipped,
    JointDistribution,
    Product,
    Uniform,
    clipped_normal,
    iid,
)
from edrbo.bench.problems.oracle.maximum import polish, quasi_random_designs
from edrbo.bench.problems.problem import Objective, Problem
from edrbo.errors import UnknownNameError
from edrbo.records.outcomes import Limit

STARTS = 6
PENALTY = 1e3  # of the range, for a share of contexts that is missing


@dataclass(frozen=True)
class LimitedProblem:
    """Maximize E f(x) among designs with P(lower ≤ g(x, c) ≤ upper) ≥ probability, f and g both unknown.

    ``problem`` holds f, the distribution and the noise; ``limited`` is g; ``share(x)`` maps (n, d_x) to the exact
    probability (n,). ``limit_noise_sd`` is that of g's noise.
    """

    problem: Problem
    limited: Objective
    limit: Limit
    share_of: Callable[[Array, JointDistribution], Array]
    limit_noise_sd: float = 0.0

    @property
    def name(self) -> str:
        return self.problem.name

    @property
    def d_x(self) -> int:
        return self.problem.d_x

    def observe(self, x: Array, c: Array, rng: np.random.Generator) -> tuple[float, float]:
        """f and g at a design (d_x,) in a context (d_c,), with noise."""
        noise = self.limit_noise_sd * rng.standard_normal()
        return float(self.problem.observe(x, c, rng)), float(self.limited(x, c)) + noise

    def share(self, x: Array) -> Array:
        """The share of contexts in which the limit holds: (…, d_x) → (…)."""
        x = np.asarray(x, dtype=float)
        return self.share_of(x.reshape(-1, self.d_x), self.problem.context_distribution).reshape(x.shape[:-1])

    def keeps(self, x: Array) -> np.ndarray:
        """Whether designs (…, d_x) keep the limit in as many contexts as they must."""
        return np.asarray(self.share(x) >= self.limit.probability)

    @cached_property
    def best(self) -> tuple[Array, float]:
        """A best design (d_x,) among those that keep the limit, and E f there."""
        designs, probability = quasi_random_designs(self.d_x), self.limit.probability
        scale = float(np.ptp(self.problem.expected(designs)))

        def value(x: Array) -> Array:
            missing = np.maximum(0.0, probability - self.share(x))
            return np.asarray(self.problem.expected(x) - PENALTY * scale * missing)

        starts = designs[np.argsort(-value(designs), kind="stable")[:STARTS]]
        ends = [polish(value, start, 600 * self.d_x) for start in starts]
        x, _ = max(ends, key=lambda end: end[1])
        x, _ = polish(value, x, 600 * self.d_x, size=1e-3)  # along the limit the first simplex may have collapsed
        return x, float(self.problem.expected(x))

    @cached_property
    def value_range(self) -> float:
        """From the worst E f of any design to that of the best one that keeps the limit."""
        return self.best[1] - float(self.problem.expected(quasi_random_designs(self.d_x)).min())

    def gap(self, x: Array) -> float:
        """How much worse a design (d_x,) is on average than the best that keeps the limit, as a part of the range;
        negative for one that is better because it breaks it."""
        return (self.best[1] - float(self.problem.expected(x))) / self.value_range


# -------------------------------------------------------------------- press

MARK, PRESS = (0.6, 1.8, 0.8), 1.4


def _press(x: AnyArray, c: AnyArray) -> AnyArray:
    return np.asarray((2 * x[..., 0] + 0.25 * np.sin(7 * x[..., 0])) * (1.2 - 0.4 * c[..., 0]))


def _marks(x: AnyArray, c: AnyArray) -> AnyArray:
    base, square, moved = MARK
    return np.asarray(base + square * x[..., 0] ** 2 + moved * x[..., 0] * c[..., 0])


def _unmarked(x: Array, context_distribution: JointDistribution) -> Array:
    base, square, moved = MARK
    worst = (PRESS - base - square * x[:, 0] ** 2) / np.maximum(moved * x[:, 0], 1e-12)
    return context_distribution.components[0].cdf(worst)


def press_problem() -> LimitedProblem:
    text = "Pressure that makes as much as can be made, and marks the sheet little in 90 % of contexts."
    problem = Problem("press", text, 1, iid(clipped_normal(0.5, 0.2)), _press)
    return LimitedProblem(problem, _marks, Limit(upper=PRESS, probability=0.9), _unmarked)


# -------------------------------------------------------------------- cutting

HOTTEST = 0.7


def _cutting(x: AnyArray, c: AnyArray) -> AnyArray:
    speed, cooling, hardness = x[..., 0], x[..., 1], c[..., 0]
    return np.asarray(4 * speed - 1.4 * cooling**2 + 0.4 * speed * hardness + 0.2 * np.cos(8 * speed) * cooling)


def _heat(x: AnyArray, c: AnyArray) -> AnyArray:
    return np.asarray(x[..., 0] * (0.8 + 0.6 * c[..., 0]) * (1.3 - 0.5 * x[..., 1]))


def _cool_enough(x: Array, context_distribution: JointDistribution) -> Array:
    worst = (HOTTEST / np.maximum(x[:, 0] * (1.3 - 0.5 * x[:, 1]), 1e-12) - 0.8) / 0.6
    return context_distribution.components[0].cdf(worst)


def cutting_problem() -> LimitedProblem:
    text = "Speed and cooling of a cut that stays cool in 95 % of contexts, however hard the metal."
    problem = Problem("cutting", text, 2, iid(Clipped(Uniform(0.1, 0.9))), _cutting)
    return LimitedProblem(problem, _heat, Limit(upper=HOTTEST, probability=0.95), _cool_enough)


# -------------------------------------------------------------------- gauge

THIN, THICK = 0.35, 0.65


def _yield(x: AnyArray, c: AnyArray) -> AnyArray:
    flow, blade, warmth = x[..., 0], x[..., 1], c[..., 0]
    return np.asarray(3 * flow - 2.4 * (blade - 0.2) ** 2 + 0.5 * np.sin(5 * blade) * (warmth - 0.5))


def _thickness(x: AnyArray, c: AnyArray) -> AnyArray:
    return np.asarray(x[..., 0] * (1.2 - 0.6 * x[..., 1]) * (0.75 + 0.5 * c[..., 0]))


def _in_gauge(x: Array, context_distribution: JointDistribution) -> Array:
    base = np.maximum(x[:, 0] * (1.2 - 0.6 * x[:, 1]), 1e-12)
    high, low = ((end / base - 0.75) / 0.5 for end in (THICK, THIN))
    below = context_distribution.components[0].cdf(np.nextafter(low, -np.inf))  # the end itself is within
    return np.asarray(context_distribution.components[0].cdf(high) - below)


def gauge_problem() -> LimitedProblem:
    text = "As much flow as leaves the thickness between its two ends in 90 % of contexts."
    problem = Problem("gauge", text, 2, iid(clipped_normal(0.45, 0.15)), _yield, noise_sd=0.03)
    return LimitedProblem(problem, _thickness, Limit(THIN, THICK, probability=0.9), _in_gauge, limit_noise_sd=0.006)


# -------------------------------------------------------------------- dryer

WETTEST = 0.35


def _saved(x: AnyArray, c: AnyArray) -> AnyArray:
    heat, time, draft, load, wet = x[..., 0], x[..., 1], x[..., 2], c[..., 0], c[..., 1]
    return np.asarray(2 - 1.1 * heat - 0.7 * time**2 - 0.8 * (draft - 0.3 - 0.3 * load) ** 2 + 0.2 * wet * heat)


def _saved_on_average(x: AnyArray, context_distribution: Product) -> AnyArray:
    """f is a polynomial in the contexts, so their moments are enough."""
    (load, of_load), (wet, of_wet) = (component.quadrature() for component in context_distribution.components)
    heat, time, draft = x[..., 0], x[..., 1], x[..., 2] - 0.3
    uneven = draft**2 - 0.6 * draft * (of_load @ load) + 0.09 * (of_load @ load**2)
    return np.asarray(2 - 1.1 * heat - 0.7 * time**2 - 0.8 * uneven + 0.2 * (of_wet @ wet) * heat)


def _drying(x: AnyArray) -> AnyArray:
    return np.asarray(np.exp(-2.2 * x[..., 0] * (0.4 + x[..., 1])))


def _left_wet(x: AnyArray, c: AnyArray) -> AnyArray:
    load, wet = c[..., 0], c[..., 1]
    return np.asarray((0.4 + 0.6 * load + 0.5 * wet) * _drying(x) + 0.25 * (x[..., 2] - 0.5) ** 2)


def _dry_enough(x: Array, context_distribution: JointDistribution) -> Array:
    load, wet = context_distribution.components
    nodes, weights = wet.quadrature()
    most = (WETTEST - 0.25 * (x[:, 2] - 0.5) ** 2) / _drying(x)
    return np.asarray(load.cdf((most[:, None] - 0.4 - 0.5 * nodes) / 0.6) @ weights)


def dryer_problem() -> LimitedProblem:
    text = "The cheapest heat, time and draft that dry nine of ten loads."
    context_distribution = Product((clipped_normal(0.5, 0.25), Clipped(Uniform(0.0, 1.0))))
    problem = Problem("dryer", text, 3, context_distribution, _saved, _saved_on_average, noise_sd=0.02)
    return LimitedProblem(problem, _left_wet, Limit(upper=WETTEST, probability=0.9), _dry_enough, limit_noise_sd=0.005)


_REGISTRY: dict[str, Callable[[], LimitedProblem]] = {
    "press": cache(press_problem),
    "cutting": cache(cutting_problem),
    "gauge": cache(gauge_problem),
    "dryer": cache(dryer_problem),
}


def limited_names() -> list[str]:
    """From few to many designs."""
    return list(_REGISTRY)


def get_limited(name: str) -> LimitedProblem:
    if name not in _REGISTRY:
        raise UnknownNameError(f"There is no limited problem called {name!r}.", f"one of {', '.join(_REGISTRY)}")
    return _REGISTRY[name]()
