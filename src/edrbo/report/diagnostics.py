"""Can the model be trusted, and is the world still the one it learned from?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from edrbo.errors import InvalidContextError
from edrbo.streams import stream
from edrbo.surrogate.ensemble import Ensemble

Array = NDArray[np.float64]

Z95 = 1.959963984540054
LIKELY, SURE = 0.05, 0.005  # p-values below which a shift is believed, and beyond doubt
PERMUTATIONS = 499
LARGEST = 400  # contexts of either sample that enter the test in several dimensions


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Each outcome (n) as foretold from all others, by the barycentre and by each of the M experts.

    In the model's units, that is for maximization; ``sd`` includes the noise of an observation. Hyper-parameters and
    the constant mean are those of the fit to all data.
    """

    y: Array
    mean: Array
    sd: Array
    expert_mean: Array  # M × n
    expert_sd: Array  # M × n

    @property
    def coverage(self) -> float:
        """Share of the outcomes inside their 95 % interval; nan without any."""
        return float(np.mean(np.abs(self.y - self.mean) <= Z95 * self.sd)) if len(self.y) else float("nan")

    @property
    def rmse(self) -> float:
        return float(np.sqrt(np.mean((self.y - self.mean) ** 2))) if len(self.y) else float("nan")

    @property
    def expert_rmse(self) -> Array:
        """Root mean squared error of each expert (M)."""
        errors: Array = np.sqrt(np.mean((self.y - self.expert_mean) ** 2, axis=1))
        return errors

    @property
    def skill(self) -> float:
        """Share of the outcomes' variance that is foretold: 1 is perfect, 0 no better than their mean."""
        total = float(np.sum((self.y - self.y.mean()) ** 2)) if len(self.y) else 0.0
        return 1.0 - float(np.sum((self.y - self.mean) ** 2)) / total if total > 0 else float("nan")

    def words(self) -> str:
        """The calibration in a sentence."""
        n = len(self.y)
        if n < 5:
            return f"With {n} outcomes it is too early to judge the model."
        inside = round(n * self.coverage)
        # Binomial standard error around 95 %: what chance alone would do.
        chance = 2.0 * np.sqrt(0.95 * 0.05 / n)
        head = f"{inside} of {n} outcomes lie in the 95 % interval foretold for them from the others."
        if self.coverage < 0.95 - chance:
            return f"{head} That is too few: the model is surer of itself than it should be."
        if self.skill < 0.2:
            return f"{head} The intervals are honest but wide: the model cannot yet foretell much."
        return f"{head} The model's uncertainty can be trusted."


def leave_one_out(model: Ensemble) -> LeaveOneOut:
    """Of the observations the model is fitted to."""
    with torch.no_grad():
        modelled, *foretold = model.leave_one_out()
        found = model.scaling.moments(*foretold)
        y = model.scaling.value(modelled).numpy()
    expert_mean, expert_sd = (part.numpy() for part in found)
    return LeaveOneOut(y, expert_mean.mean(0), expert_sd.mean(0), expert_mean, expert_sd)


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

    def words(self) -> str:
        """The shift in a sentence or two."""
        head = f"The last {self.recent} contexts against the {self.earlier} before:"
        share = f"{100 * self.distance:.0f} % of the range apart, where chance alone makes {100 * self.usual:.0f} %"
        if self.p_value >= LIKELY:
            return f"{head} no sign of a shift. They are {share} (p = {self.p_value:.2g})."
        way = "up" if self.moved > 0 else "down"
        surely = "have shifted" if self.p_value < SURE else "have probably shifted"
        change = f"{self.most_moved} went {way} by {abs(self.moved):.3g} on average"
        return f"{head} they {surely}. They are {share} (p = {self.p_value:.2g}); {change}."


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
    if len(points) <= LARGEST:
        return points
    return points[np.linspace(0, len(points) - 1, LARGEST).round().astype(np.intp)]
