"""Ten problems that nothing in edrbo was chosen on, and what is true of them under every goal; NumPy and SciPy alone.

A problem is f(x, c) on unit cubes and a distribution of c given by what it makes of uniform numbers. Values under a
goal are sums over 4,096 contexts: the midpoints of equal shares for one context variable, a Sobol' sequence for two.
The worst mean in a Wasserstein ball is the dual's maximum over its multiplier, with a grid of the context box as
targets; the best design that of a dense search, by the same sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtri
from scipy.stats import qmc

CONTEXTS, SOURCES = 4096, 256
TARGETS = {1: 401, 2: 33}  # points of the context box along each variable
DESIGNS, ROUNDS, AROUND = 2048, 8, 96
FEW = 256  # contexts in the search for the best design
RADIUS, TAIL, LEVEL = 0.1, 0.2, 0.1
GOALS = ("mean", "robust", "reach", "cvar", "quantile", "worst", "meansd", "hit")

Array = Any


@dataclass(frozen=True)
class Unseen:
    name: str
    d_x: int
    d_c: int
    f: Callable[[Array, Array], Array]  # (... × d_x), (... × d_c) → ...
    contexts: Callable[[Array], Array]  # n × d_u uniform numbers → n × d_c
    d_u: int

    def goal_text(self, goal: str) -> str:
        spec = "" if goal not in ("reach", "hit") else f":{self.specification!r}"
        texts = {"mean": "expected", "robust": f"robust:{RADIUS}", "cvar": f"cvar:{TAIL}"}
        texts |= {"quantile": f"quantile:{LEVEL}", "worst": "worst-case", "meansd": "mean-sd:1"}
        return texts.get(goal, goal) + spec

    @property
    def specification(self) -> float:
        """Of Reach and Hit: what the design that is best on average reaches in seven of ten contexts."""
        return specification_of(self)

    def noise_sd(self, noise: str, x: Array) -> Array:
        if noise == "uneven":
            return 0.1 * self.range("mean") * (0.3 + 1.4 * x[..., 0])
        return float(noise) * self.range("mean") + 0.0 * x[..., 0]

    def truth(self, goal: str, x: Array) -> float:
        return float(values(self, goal, x[None], fine=True)[0])

    def best(self, goal: str) -> float:
        return optimum(self, goal)[0]

    def range(self, goal: str) -> float:
        """Of the goal's value over designs."""
        return optimum(self, goal)[1]


@cache
def sample(problem: Unseen, count: int) -> Array:
    if problem.d_u == 1:
        return problem.contexts((np.arange(count)[:, None] + 0.5) / count)
    return problem.contexts(np.clip(qmc.Sobol(problem.d_u, seed=36).random(count), 1e-9, 1 - 1e-9))


@cache
def grid(d_c: int, fine: bool) -> Array:
    count = TARGETS[d_c] if fine else {1: 101, 2: 13}[d_c]
    axes = np.meshgrid(*[np.linspace(0.0, 1.0, count)] * d_c, indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=-1)


@cache
def distances(problem: Unseen, fine: bool) -> Array:
    c = sample(problem, SOURCES if fine else 64)
    return np.sqrt(((c[:, None] - np.concatenate([c, grid(problem.d_c, fine)])) ** 2).sum(-1))


def values(problem: Unseen, goal: str, x: Array, fine: bool = False) -> Array:
    """Of designs (n × d_x)."""
    c = sample(problem, CONTEXTS if fine else FEW)
    if goal == "robust":
        c = np.concatenate([sample(problem, SOURCES if fine else 64), grid(problem.d_c, fine)])
    elif goal == "worst":
        c = grid(problem.d_c, True)
    y = np.concatenate([problem.f(some[:, None], c[None]) for some in np.array_split(x, max(1, len(x) // 64))])
    if goal == "mean":
        return y.mean(-1)
    if goal == "robust":
        return np.array([worst_mean(row, distances(problem, fine)) for row in y])
    if goal == "worst":
        return y.min(-1)
    if goal == "reach":
        return (y >= problem.specification).mean(-1)
    if goal == "hit":
        return ((y - problem.specification) ** 2).mean(-1)
    if goal == "meansd":
        return y.mean(-1) - y.std(-1)
    ordered = np.sort(y, axis=-1)
    size = y.shape[-1]
    if goal == "quantile":
        return ordered[:, math.ceil(LEVEL * size) - 1]
    return ordered[:, : round(TAIL * size)].mean(-1)  # whole numbers of contexts, nearly


def worst_mean(row: Array, distance: Array) -> float:
    """max over λ ≥ 0 of mean_j min_k (f_k + λ d_jk) − λ RADIUS, which is concave in λ."""
    sources = len(distance)

    def dual(rate: float) -> float:
        return RADIUS * rate - float((row + rate * distance).min(-1).mean())

    steepest = float(row[:sources].max() - row.min()) / RADIUS + 1e-12
    found = minimize_scalar(dual, bounds=(0.0, steepest), method="bounded", options={"xatol": 1e-4 * steepest})
    return -float(min(found.fun, dual(0.0)))


@cache
def specification_of(problem: Unseen) -> float:
    x = best_design(problem, "mean")
    return float(f"{np.quantile(problem.f(x, sample(problem, CONTEXTS)), 0.3):.4g}")


@cache
def best_design(problem: Unseen, goal: str) -> Array:
    return _search(problem, goal)[0]


@cache
def optimum(problem: Unseen, goal: str) -> tuple[float, float]:
    x, spread = _search(problem, goal)
    best = problem.truth(goal, x)
    return best, spread


# ------------------------------------------------------------------------------------------------ limits

SHARE, KEPT, FEASIBLE = (
    0.9,
    0.9,
    0.5,
)  # of contexts in which a limit is to hold, how surely, and of designs that keep it


def limiting(problem: Unseen, number: int, x: Array, c: Array) -> Array:
    """What the limit of this number is on: another problem of the same shape, the second one with designs mirrored."""
    shape = problem.d_x, problem.d_c
    others = [other for other in PROBLEMS if (other.d_x, other.d_c) == shape and other is not problem]
    others = [other for other in others if other.name != "turbine"]  # a turbine stands still in a tenth of all winds
    return others[PROBLEMS.index(problem) % len(others)].f(x if number == 0 else 1.0 - x, c)


@cache
def lower_limit(problem: Unseen, number: int) -> float:
    """What half of the designs reach in nine of ten contexts."""
    x, c = qmc.Sobol(problem.d_x, seed=37).random(512), sample(problem, FEW)
    reached = np.quantile(limiting(problem, number, x[:, None], c[None]), 1.0 - SHARE, axis=1)
    return float(f"{np.quantile(reached, FEASIBLE):.4g}")


@cache
def limiting_range(problem: Unseen, number: int) -> float:
    """Of the limited outcome over designs and contexts: what its noise is a share of."""
    x, c = qmc.Sobol(problem.d_x, seed=37).random(512), sample(problem, FEW)
    low, high = np.quantile(limiting(problem, number, x[:, None], c[None]), [0.02, 0.98])
    return float(high - low)


def shares(problem: Unseen, limits: int, x: Array) -> Array:
    """Of contexts in which each limit holds at designs (n × d_x): n × limits."""
    c = sample(problem, CONTEXTS if len(x) < 64 else FEW)
    held = [limiting(problem, k, x[:, None], c[None]) >= lower_limit(problem, k) for k in range(limits)]
    return np.stack([one.mean(-1) for one in held], axis=-1)


@cache
def best_within(problem: Unseen, limits: int) -> float:
    """The best mean among designs that keep every limit, by a dense search."""
    random = np.random.default_rng(37)
    x = qmc.Sobol(problem.d_x, seed=36).random(2 * DESIGNS)
    best, top = np.full(problem.d_x, 0.5), -math.inf
    for width in (0.1, 0.03, 0.01, 0.003):
        kept = x[(shares(problem, limits, x) >= SHARE).all(-1)]
        order = np.argsort(-values(problem, "mean", kept))[:24] if len(kept) else []
        for one in kept[order]:
            fine = problem.truth("mean", one)
            if fine > top and (shares(problem, limits, one[None]) >= SHARE).all():
                best, top = one, fine
        x = np.clip(best + width * random.standard_normal((512, problem.d_x)), 0, 1)
    return top


@cache
def _search(problem: Unseen, goal: str) -> tuple[Array, float]:
    random = np.random.default_rng(36)
    sign = -1.0 if goal == "hit" else 1.0
    x = qmc.Sobol(problem.d_x, seed=36).random(DESIGNS if goal != "robust" else DESIGNS // 4)
    found = sign * values(problem, goal, x)
    spread = float(found.max() - np.quantile(found, 0.02))
    width = 0.1
    for _ in range(ROUNDS):
        best = x[np.argsort(-found)[:8]]
        more = np.clip(
            best[random.integers(8, size=AROUND)] + width * random.standard_normal((AROUND, problem.d_x)), 0, 1
        )
        x, found = np.concatenate([x, more]), np.concatenate([found, sign * values(problem, goal, more)])
        width *= 0.55
    last = x[np.argsort(-found)[:24]]
    fine = sign * values(problem, goal, last, fine=True)
    return last[fine.argmax()], spread


# ------------------------------------------------------------------------------------------------ the problems


def _squeezed(z: Array, low: float, high: float) -> Array:
    """Normal numbers into (low, high) of the unit interval."""
    return low + (high - low) / (1.0 + np.exp(-1.7 * z))


def _turbine(x: Array, c: Array) -> Array:
    """Power of a wind turbine that is set for one wind and cuts out in storms; never below zero."""
    wind, size, pitch = 25.0 * c[..., 0], 0.4 + x[..., 0], x[..., 1]
    lift = np.exp(-(((wind - 6.0 - 12.0 * pitch) / 6.0) ** 2))
    drag = 0.35 * size**2 + 0.3 * pitch
    return np.maximum(0.0, 4.0 * size * lift - drag * (wind / 12.0) ** 2)


def _reactor(x: Array, c: Array) -> Array:
    """Yield of a consecutive reaction in percent; temperature, time; feed and ambient."""
    heat = 0.6 + 1.6 * x[..., 0] + 0.5 * (c[..., 1] - 0.5)
    time = 0.2 + 2.5 * x[..., 1]
    first, second = np.exp(2.2 * (heat - 1.2)) * (0.5 + c[..., 0]), 0.35 * np.exp(3.6 * (heat - 1.5))
    return 100.0 * first / (first - second + 1e-3) * (np.exp(-second * time) - np.exp(-(first + 1e-3) * time))


def _lens(x: Array, c: Array) -> Array:
    shift = x[..., 0] - 0.2 - 0.6 * c[..., 0]
    return (
        3.0
        - 20.0 * shift**2
        - 4.0 * (x[..., 1] - x[..., 0] * c[..., 0]) ** 2
        + np.sin(5.0 * x[..., 2] + 3.0 * c[..., 0])
    )


def _damper(x: Array, c: Array) -> Array:
    """Minus the vibration of a machine with an absorber, in decibels."""
    ratio, tuned, damping = 0.4 + 1.4 * c[..., 0], 0.5 + x[..., 0], 0.05 + 0.45 * x[..., 1]
    absorber = tuned**2 - ratio**2
    above = absorber**2 + (2 * damping * tuned * ratio) ** 2
    below = (absorber * (1 - ratio**2) - 0.3 * (tuned * ratio) ** 2) ** 2
    below = below + (2 * damping * tuned * ratio) ** 2 * (1 - 1.3 * ratio**2) ** 2
    return -10.0 * np.log10(above / (below + 1e-3))


def _features(seed: int, d: int, lengthscale: float, count: int = 96) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(seed)
    scale = lengthscale * np.sqrt(random.gamma(2.5, 1 / 2.5, count))  # Matérn-like tails
    return random.standard_normal((d, count)) / scale, 2 * np.pi * random.random(count), random.standard_normal(count)


def _random_field(seed: int, d: int, lengthscale: float) -> Callable[[Array, Array], Array]:
    slopes, phases, heights = _features(seed, d, lengthscale)
    size = math.sqrt(2.0 / len(heights))

    def f(x: Array, c: Array) -> Array:
        d_x = x.shape[-1]
        angle = x @ slopes[:d_x]
        angle = angle + c @ slopes[d_x:] + phases
        return size * (np.cos(angle) @ heights)

    return f


def _greenhouse(x: Array, c: Array) -> Array:
    light, frost = c[..., 0], c[..., 1]
    warm = 0.25 + 0.9 * x[..., 0] - 0.5 * frost + 0.2 * light
    growth = light**0.5 * np.exp(-8.0 * (warm - 0.75) ** 2) * (1.0 - 0.6 * (x[..., 1] - 0.4 - 0.3 * light) ** 2)
    return 10.0 * growth - 3.0 * x[..., 0] ** 2 * (0.5 + frost) - 1.0 * x[..., 1]


def _peak(x: Array, c: Array) -> Array:
    """A sharp ridge that wanders with the context, over a gentle slope."""
    away = np.abs(x[..., 0] - 0.25 - 0.5 * c[..., 0]) + 0.5 * (x[..., 1] - 0.7) ** 2
    return 2.0 * np.exp(-3.0 * np.sqrt(away**2 + 0.001)) + 0.4 * x[..., 1] * c[..., 0]


def _store(x: Array, c: Array) -> Array:
    """Profit of two goods that replace each other; demand and price of energy."""
    demand, energy = 0.2 + 1.2 * c[..., 0], 0.1 + 0.5 * c[..., 1]
    sold = np.minimum(x[..., 0], demand)
    other = np.minimum(x[..., 1], 0.5 * np.maximum(demand - x[..., 0], 0.0) + 0.2 + 0.3 * c[..., 1])
    return 5.0 * sold + 4.0 * other - (2.0 + energy) * x[..., 0] - (1.0 + 3.0 * energy) * x[..., 1]


def _normal1(low: float, high: float) -> Callable[[Array], Array]:
    return lambda u: _squeezed(ndtri(u), low, high)


def _weibull(u: Array) -> Array:
    return np.minimum(0.36 * (-np.log1p(-u)) ** 0.55, 1.0)


def _two_seasons(u: Array) -> Array:
    late = u < 0.35
    inner = np.where(late, u / 0.35, (u - 0.35) / 0.65)
    z = ndtri(np.clip(inner, 1e-9, 1 - 1e-9))
    return np.clip(np.where(late, 0.25 + 0.06 * z, 0.7 + 0.09 * z), 0.0, 1.0)


def _together(correlation: float) -> Callable[[Array], Array]:
    def contexts(u: Array) -> Array:
        z = ndtri(u)
        z = np.stack([z[..., 0], correlation * z[..., 0] + math.sqrt(1 - correlation**2) * z[..., 1]], axis=-1)
        return _squeezed(z, 0.02, 0.98)

    return contexts


def _skewed(u: Array) -> Array:
    return np.stack([u[..., 0] ** 2.0, 1.0 - (1.0 - u[..., 1]) ** 0.7], axis=-1)


PROBLEMS = (
    Unseen("turbine", 2, 1, _turbine, _weibull, 1),
    Unseen("reactor", 2, 2, _reactor, _skewed, 2),
    Unseen("lens", 3, 1, _lens, _two_seasons, 1),
    Unseen("damper", 2, 1, _damper, _normal1(0.0, 1.0), 1),
    Unseen("field", 2, 1, _random_field(1, 3, 0.35), _normal1(0.1, 0.95), 1),
    Unseen("greenhouse", 2, 2, _greenhouse, _together(-0.6), 2),
    Unseen("peak", 2, 1, _peak, _normal1(0.05, 0.95), 1),
    Unseen("rough-field", 2, 2, _random_field(7, 4, 0.4), _together(0.5), 2),
    Unseen("store", 2, 2, _store, _together(0.3), 2),
    Unseen("long-field", 3, 1, _random_field(11, 4, 0.5), _two_seasons, 1),
)
