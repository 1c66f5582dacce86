"""Can the model be trusted, and is the world still the one it learned from?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import InvalidContextError
from edrbo.optimizer.calibration import HeldOutPredictions
from edrbo.streams import stream

Array = NDArray[np.float64]

MIN_OUTCOMES = 5  # outcomes before a model is judged
LAST, NEW_PLACE = 30, 0.1  # forecasts of new places that count, and how unsure they were, in spreads of the outcomes
P_LIKELY, P_CERTAIN = 0.05, 0.005  # p-values below which a shift is believed, and beyond doubt
PERMUTATIONS = 499
MAX_SAMPLE = 400  # contexts of either sample that enter the test in several dimensions


def describe_calibration(others: HeldOutPredictions, before: HeldOutPredictions) -> str:
    """How far the model can be trusted, in a sentence or two: by its outcomes ``others`` predicted from all others, and
    ``before`` predicted from those before them, of which the last that were new places count."""
    n = len(others.y)
    if n < MIN_OUTCOMES:
        return f"With {n} results it is too early to judge the model."
    head = f"{round(n * others.coverage)} of {n} results lie in the 95 % interval predicted for them from the others."
    if others.too_few:
        return f"{head} That is too few: the model is surer of itself than it should be."
    new = new_places(before)
    count = len(new.y)
    if new.too_few:
        return (
            f"{head} But of the last {count} runs in new places only {int(new.inside.sum())} came out as predicted "
            "before they were made: among its data the model does well, elsewhere expect surprises."
        )
    if others.skill < 0.2:
        return f"{head} The intervals are honest but wide: the model cannot predict much yet."
    if count < MIN_OUTCOMES:
        return f"{head} There were too few runs in new places to judge it elsewhere."
    return (
        f"{head} So do {int(new.inside.sum())} of the last {count} runs in new places, predicted before they were "
        "made: "
        "the model's uncertainty can be trusted."
    )


def new_places(before: HeldOutPredictions) -> HeldOutPredictions:
    """The last outcomes that were not easy: predicted with no less than a tenth of the spread of all outcomes."""
    if not len(before.y):
        return before
    hard = np.flatnonzero(before.sd >= NEW_PLACE * before.y.std())[-LAST:]
    return HeldOutPredictions(before.y[hard], before.mean[hard], before.sd[hard])


@dataclass(frozen=True)
class ContextShift:
    """How far recent contexts are from those before.

    ``distance`` is the Wasserstein-1 distance in units of the ranges (Euclidean for several variables), ``usual`` what
    it would be by chance alone; ``moved`` the change of the mean of the variable ``most_moved``, in the user's units;
    ``p_value`` that of a two-sample test: Kolmogorov–Smirnov for one variable, energy distance with permutations for
    several.
    """

    earlier: int
    recent: int
    distance: float
    usual: float
    p_value: float
    most_moved: str
    moved: float

    def describe(self) -> str:
        """The shift in a sentence or two."""
        head = f"The last {self.recent} conditions against the {self.earlier} before:"
        if self.p_value >= P_LIKELY:
            return f"{head} no sign of a shift."
        share = f"{100 * self.distance:.0f} % of the range apart, where chance alone makes {100 * self.usual:.0f} %"
        way = "up" if self.moved > 0 else "down"
        surely = "have shifted" if self.p_value < P_CERTAIN else "have probably shifted"
        return (
            f"{head} they {surely}. They are {share}; {self.most_moved} went {way} by {abs(self.moved):.3g} on average."
        )


def context_shift(earlier: Array, recent: Array, scale: Array, names: tuple[str, ...], seed: int = 0) -> ContextShift:
    """Compare contexts seen ``earlier`` (n × d_c) with ``recent`` ones (m × d_c); ``scale`` (d_c) are their ranges."""
    if min(len(earlier), len(recent)) < 2 or earlier.shape[1:] != recent.shape[1:]:
        raise InvalidContextError("too few contexts to compare", "give two or more of each")
    one, two = earlier / scale, recent / scale
    moved = recent.mean(0) - earlier.mean(0)
    most = int(np.argmax(np.abs(moved / scale)))
    if one.shape[1] == 1:
        distance, usual, p_value = _on_a_line(one[:, 0], two[:, 0], seed)
    else:
        distance, usual, p_value = _in_space(_thin(one), _thin(two), seed)
    return ContextShift(len(earlier), len(recent), distance, usual, p_value, names[most], float(moved[most]))


def _on_a_line(one: Array, two: Array, seed: int) -> tuple[float, float, float]:
    from scipy.stats import ks_2samp, wasserstein_distance

    rng, pooled, cut = stream(seed, "context shift"), np.concatenate([one, two]), len(one)
    by_chance = []
    for _ in range(50):
        mixed = rng.permutation(pooled)
        by_chance.append(wasserstein_distance(mixed[:cut], mixed[cut:]))
    p_value = ks_2samp(one, two, method="asymp").pvalue
    return float(wasserstein_distance(one, two)), float(np.mean(by_chance)), float(p_value)


def _in_space(one: Array, two: Array, seed: int) -> tuple[float, float, float]:
    pooled, n, m = np.concatenate([one, two]), len(one), len(two)
    apart = np.sqrt(((pooled[:, None] - pooled[None]) ** 2).sum(-1))
    rng = stream(seed, "context shift")
    order = np.arange(n + m)
    orders = np.stack([order, *(rng.permutation(order) for _ in range(PERMUTATIONS))])
    first = np.zeros((len(orders), n + m))
    np.put_along_axis(first, orders[:, :n], 1.0 / n, axis=1)
    second = np.zeros_like(first)
    np.put_along_axis(second, orders[:, n:], 1.0 / m, axis=1)
    contrast = first - second
    energy = -np.einsum("pi,ij,pj->p", contrast, apart, contrast, optimize=True)
    p_value = float(np.mean(energy >= energy[0] * (1.0 - 1e-12)))
    by_chance = [_transport(apart, row[:n], row[n:]) for row in orders[1:11]]
    return _transport(apart, order[:n], order[n:]), float(np.mean(by_chance)), p_value


def _transport(apart: Array, one: NDArray[np.intp], two: NDArray[np.intp]) -> float:
    """Wasserstein-1 distance of two point sets, evened out to the same size."""
    from scipy.optimize import linear_sum_assignment

    size = min(len(one), len(two))
    one, two = (points[np.linspace(0, len(points) - 1, size).round().astype(np.intp)] for points in (one, two))
    cost = apart[np.ix_(one, two)]
    return float(cost[linear_sum_assignment(cost)].mean())


def _thin(points: Array) -> Array:
    if len(points) <= MAX_SAMPLE:
        return points
    return points[np.linspace(0, len(points) - 1, MAX_SAMPLE).round().astype(np.intp)]
