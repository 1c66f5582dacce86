"""The single-period trading problem, solved by ADMM for many policies at once.

For a policy (risk aversion γ, trade costs a and k, borrow cost h) and current weights w₀, the weights
after trading solve

    minimize  γ wᵀΣw − r̂ᵀw + Σ a|w − w₀| + Σ k|w − w₀|^1.5 + Σ h max(−w, 0)   subject to ‖w‖₁ ≤ limit.

Weights are those of the non-cash assets; cash takes what is left, so r̂ is the forecast above the cash
return. Scaled ADMM splits this into the quadratic (diagonal in the eigenvectors of Σ) and one copy of
the weights each for the trade cost and for the holding cost with the leverage limit, whose proximal
maps are explicit.

Each row of a batch has its own step size ρ and its own stopping test, and leaves the batch when it has
converged: what is computed for a row does not depend on the rows it is computed with.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

OVER_RELAXATION = 1.6
TOLERANCE = 1e-6
MAX_ITERATIONS = 2000
#: Outside this range of ρ the residuals become small long before the weights are right.
STEP_RANGE = (0.02, 5.0)
_FIRST_STEP = 0.3
_CHECK_EVERY = 5
_BALANCE_EVERY = 25


@dataclass(frozen=True)
class TradingProblems:
    """A batch of n single-period problems over m assets.

    ``weights`` and ``trade_power`` (k) are (n, m); ``risk_aversion`` (γ), ``trade_linear`` (a) and
    ``borrow`` (h) are (n, 1); ``excess_forecast`` (r̂) is (m,); Σ is given by its spectrum, ``eigenvalues``
    (m,) and ``eigenvectors`` (m, m).
    """

    weights: Array
    excess_forecast: Array
    risk_aversion: Array
    eigenvalues: Array
    eigenvectors: Array
    trade_linear: Array
    trade_power: Array
    borrow: Array
    leverage_limit: float


@dataclass(frozen=True)
class Trades:
    """``trades`` w − w₀ (n, m), the ``iterations`` each row took (n,) and whether it ``converged`` (n,)."""

    trades: Array
    iterations: Integers
    converged: NDArray[np.bool_]


def solve(problems: TradingProblems, tolerance: float = TOLERANCE, max_iterations: int = MAX_ITERATIONS) -> Trades:
    """The optimal trades of every row: primal and dual residuals, in weights, are below ``tolerance``.

    The trades are read off the copy that carries the trade cost, so that an asset which is not worth
    trading has a trade of exactly zero.
    """
    n = len(problems.weights)
    trades = np.empty_like(problems.weights)
    iterations = np.full(n, max_iterations)
    converged = np.zeros(n, dtype=np.bool_)
    rows = _first_rows(problems)
    for iteration in range(1, max_iterations + 1):
        trade, hold = rows.trade, rows.hold
        target = _iterate(rows, problems.eigenvectors, problems.leverage_limit)
        if iteration % _CHECK_EVERY and iteration < max_iterations:
            continue
        primal = _largest(target - rows.weights - rows.trade, target - rows.hold)
        dual = _largest(rows.trade - trade, rows.hold - hold)
        done = (primal < tolerance) & (dual < tolerance)
        if done.any() or iteration == max_iterations:
            trades[rows.index] = rows.trade
            iterations[rows.index[done]] = iteration
            converged[rows.index[done]] = True
            if done.all():
                break
            rows, primal, dual = rows.take(~done), primal[~done], dual[~done]
        if iteration % _BALANCE_EVERY == 0:
            _balance(rows, problems, primal, dual)
    return Trades(trades, iterations, converged)


def prox_trade(point: Array, linear: Array, power: Array) -> Array:
    """argmin over z of linear |z| + power |z|^1.5 + ½ (z − point)², elementwise.

    With s = max(|point| − linear, 0), √|z| solves z + 1.5 power √z = s; written without cancellation.
    """
    excess = np.abs(point)
    excess -= linear
    np.maximum(excess, 0.0, out=excess)
    half = 0.75 * power
    root = half * half
    root += excess
    np.sqrt(root, out=root)
    root += half
    # root is zero only where there is neither a power cost nor anything to move.
    np.divide(excess, root, out=root, where=root > 0)
    root *= root
    return np.copysign(root, point)


def prox_hold(point: Array, borrow: Array, limit: float) -> Array:
    """argmin over y of Σ borrow max(−y, 0) + ½ ‖y − point‖² subject to ‖y‖₁ ≤ limit; (n, m), (n, 1) → (n, m).

    The limit adds a multiplier times ‖y‖₁, which shrinks what the borrow cost has left.
    """
    result = np.maximum(point, 0.0)
    result -= np.maximum(-borrow - point, 0.0)
    size = np.abs(result)
    over = np.flatnonzero(size.sum(axis=1) > limit)
    if over.size:
        result[over] = np.copysign(_shrink_to(size[over], limit), result[over])
    return result


def _shrink_to(size: Array, limit: float) -> Array:
    """Shrink each row of ``size`` ≥ 0 (n, m) by one threshold, floored at 0, to sum to ``limit`` > 0.

    The sum is convex, decreasing and piecewise linear in the threshold, so Newton's method from zero
    never oversteps: entries only ever leave the positive set, and once none does the sum is right.
    """
    positive = size > 0
    while True:
        total = np.sum(size, axis=1, where=positive, keepdims=True)
        threshold = (total - limit) / np.count_nonzero(positive, axis=1, keepdims=True)
        still = positive & (size > threshold)
        if np.array_equal(still, positive):
            shrunk: Array = np.maximum(size - threshold, 0.0)
            return shrunk
        positive = still


@dataclass
class _Rows:
    """The rows still being solved, with costs divided by each row's ρ. First axis of every field: rows."""

    index: Integers
    weights: Array
    step: Array
    filter: Array
    pull: Array
    linear: Array
    power: Array
    borrow: Array
    trade: Array
    trade_dual: Array
    hold: Array
    hold_dual: Array

    def take(self, keep: NDArray[np.bool_]) -> _Rows:
        return _Rows(**{field.name: getattr(self, field.name)[keep] for field in fields(self)})

    def rescale(self, problems: TradingProblems) -> None:
        """Set everything that depends on ρ."""
        of = self.index
        self.filter = 0.5 / (1.0 + problems.risk_aversion[of] / self.step * problems.eigenvalues)
        self.pull = problems.excess_forecast / self.step + self.weights
        self.linear = problems.trade_linear[of] / self.step
        self.power = problems.trade_power[of] / self.step
        self.borrow = problems.borrow[of] / self.step


def _first_rows(problems: TradingProblems) -> _Rows:
    """Every row, starting from no trade. Yesterday's multipliers are no help: forecasts are mostly noise."""
    weights = problems.weights
    zero = np.zeros_like(weights)
    rows = _Rows(
        index=np.arange(len(weights)),
        weights=weights,
        step=np.full((len(weights), 1), _FIRST_STEP),
        filter=zero,
        pull=zero,
        linear=zero,
        power=zero,
        borrow=zero,
        trade=zero,
        trade_dual=zero,
        hold=weights,
        hold_dual=zero,
    )
    rows.rescale(problems)
    return rows


def _iterate(rows: _Rows, eigenvectors: Array, limit: float) -> Array:
    """One iteration: replaces the copies and multipliers of ``rows`` and returns the quadratic's weights."""
    right = rows.pull + rows.trade
    right -= rows.trade_dual
    right += rows.hold
    right -= rows.hold_dual
    spectral = right @ eigenvectors
    spectral *= rows.filter
    target = spectral @ eigenvectors.T

    point = _relax(target - rows.weights, rows.trade, rows.trade_dual)
    rows.trade = prox_trade(point, rows.linear, rows.power)
    point -= rows.trade
    rows.trade_dual = point

    point = _relax(target, rows.hold, rows.hold_dual)
    rows.hold = prox_hold(point, rows.borrow, limit)
    point -= rows.hold
    rows.hold_dual = point
    return target


def _relax(new: Array, old: Array, dual: Array) -> Array:
    relaxed = OVER_RELAXATION * new
    relaxed += (1.0 - OVER_RELAXATION) * old
    relaxed += dual
    return relaxed


def _largest(first: Array, second: Array) -> Array:
    """The largest absolute entry of each row over two (n, m) arrays: (n,)."""
    largest: Array = np.maximum(np.abs(first).max(axis=1), np.abs(second).max(axis=1))
    return largest


def _balance(rows: _Rows, problems: TradingProblems, primal: Array, dual: Array) -> None:
    """Move each row's ρ to where its primal and dual residuals fall together, within ``STEP_RANGE``."""
    factor = np.clip(np.sqrt(primal / np.maximum(dual, np.finfo(float).tiny)), 0.2, 5.0)
    factor[(factor < 1.5) & (factor > 1 / 1.5)] = 1.0
    step = np.clip(rows.step * factor[:, None], *STEP_RANGE)
    change = step / rows.step
    rows.step = step
    rows.trade_dual = rows.trade_dual / change
    rows.hold_dual = rows.hold_dual / change
    rows.rescale(problems)
