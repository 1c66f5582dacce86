"""A portfolio back-test of our own: five numbers in [0, 1] in, minus the annual excess return out.

The inputs are the three aversions of a single-period trading policy (risk, trading, holding) and two
conditions of the world (bid-ask spread, borrow cost). Each day the policy re-solves its problem with
what it believes; then the day's real costs and returns happen. The function has the character of the
one used in the literature, but stands on a synthetic market: values compare across our methods, not with
published numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edrbo.bench.problems.portfolio.market import CASH_RETURN, DAYS_PER_YEAR, Market
from edrbo.bench.problems.portfolio.solver import MAX_ITERATIONS, TOLERANCE, Trades, TradingProblems, solve
from edrbo.errors import InvalidValueError

Array = NDArray[np.float64]

MARKET_SEED = 0
COLUMNS = ("x1", "x2", "x3", "c1", "c2")
START_VALUE = 1e7
LEVERAGE_LIMIT = 3.0


@dataclass(frozen=True)
class Policies:
    """What n inputs mean, each field (n, 1): aversions multiply the costs, costs are per day or per trade."""

    risk_aversion: Array
    trade_aversion: Array
    hold_aversion: Array
    half_spread: Array
    borrow_cost: Array

    @classmethod
    def from_unit(cls, inputs: ArrayLike) -> Policies:
        """(n, 5) points of the unit cube, columns as ``COLUMNS``."""
        points = np.asarray(inputs, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != len(COLUMNS):
            raise InvalidValueError(
                f"portfolio inputs have shape {points.shape}",
                f"give an array with one row per policy and the columns {', '.join(COLUMNS)}",
            )
        if not bool(np.all((points >= 0) & (points <= 1))):
            raise InvalidValueError(
                "portfolio inputs lie outside [0, 1] or are not numbers",
                "scale every column to the unit interval first",
            )
        x1, x2, x3, c1, c2 = (points[:, [i]] for i in range(len(COLUMNS)))
        return cls(
            risk_aversion=0.1 + 999.9 * x1,
            trade_aversion=5.5 + 2.5 * x2,
            hold_aversion=0.1 + 99.9 * x3,
            half_spread=0.5 * (1e-4 + 0.0099 * c1),
            borrow_cost=1e-4 + 0.0009 * c2,
        )


@dataclass(frozen=True)
class Backtest:
    """What n back-tests gave: ``values`` (n,), and on how many days each hit the iteration cap, (n,)."""

    values: Array
    capped_days: NDArray[np.int64]


def backtest(
    inputs: ArrayLike,
    market: Market,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> Backtest:
    """Trade every policy through the days of ``market``.

    ``inputs`` is (n, 5) in the unit cube; ``values`` are minus the mean daily return above cash, as a
    percentage a year. Rows do not influence each other.
    """
    policies = Policies.from_unit(inputs)
    n = len(policies.risk_aversion)
    holdings = np.full((n, market.n_assets), START_VALUE / market.n_assets)
    cash = np.zeros((n, 1))
    total_excess = np.zeros(n)
    capped_days = np.zeros(n, dtype=np.int64)
    for day in range(market.n_days):
        value = holdings.sum(axis=1, keepdims=True) + cash
        plan = _plan(policies, market, day, holdings / value, value, tolerance, max_iterations)
        capped_days += ~plan.converged
        trades = plan.trades * value
        holdings = holdings + trades
        cash = cash - trades.sum(axis=1, keepdims=True) - _costs(policies, market, day, trades, holdings)
        holdings = holdings * (1.0 + market.returns[day])
        cash = cash * (1.0 + CASH_RETURN)
        growth = (holdings.sum(axis=1, keepdims=True) + cash) / value - 1.0
        total_excess += growth[:, 0] - CASH_RETURN
    return Backtest(-100.0 * DAYS_PER_YEAR * total_excess / market.n_days, capped_days)


def _plan(
    policies: Policies,
    market: Market,
    day: int,
    weights: Array,
    value: Array,
    tolerance: float,
    max_iterations: int,
) -> Trades:
    """The trades, as fractions of ``value`` (n, 1), that the policies want on ``day``."""
    impact = market.volatility_estimates[day] * np.sqrt(value / market.volume_estimates[day])
    problems = TradingProblems(
        weights=weights,
        excess_forecast=market.forecasts[day] - CASH_RETURN,
        risk_aversion=policies.risk_aversion,
        eigenvalues=market.eigenvalues,
        eigenvectors=market.eigenvectors,
        trade_linear=policies.trade_aversion * policies.half_spread,
        trade_power=policies.trade_aversion * impact,
        borrow=policies.hold_aversion * policies.borrow_cost,
        leverage_limit=LEVERAGE_LIMIT,
    )
    return solve(problems, tolerance, max_iterations)


def _costs(policies: Policies, market: Market, day: int, trades: Array, holdings: Array) -> Array:
    """What ``trades`` (n, m) and the ``holdings`` after them really cost, in money: (n, 1)."""
    size = np.abs(trades)
    impact = market.volatilities[day] * size * np.sqrt(size / market.volumes[day])
    short = np.maximum(-holdings, 0.0)
    costs: Array = np.sum(policies.half_spread * size + impact + policies.borrow_cost * short, axis=1, keepdims=True)
    return costs
