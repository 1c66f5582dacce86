"""A portfolio back-test of our own: five numbers in [0, 1] in, minus the annual excess return out.

The inputs are the three aversions of a single-period trading policy (risk, trading, holding) and two
conditions of the world (bid-ask spread, borrow cost). Each day the policy re-solves its problem with
what it believes; then the day's real costs and returns happen. The function has the character of the
one used in the literature, but stands on a synthetic market: values compare across our methods, not with
published numbers.

A seeded synthetic stock market to back-test trading policies on.

Returns follow a market factor and five style factors with heavy-tailed shocks; volumes and daily
volatilities are log-normal around a level per asset. Nothing here is market data: every number comes
from one seed, so that the portfolio problem can be made again by anybody.

The single-period trading problem, solved by ADMM for many policies at once.

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

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edrbo.errors import InvalidValueError

Array = NDArray[np.float64]

DAYS_PER_YEAR = 250
N_ASSETS = 100
N_DAYS = 500
#: Estimates of volume and volatility are means over this many days before the trading day.
ESTIMATE_WINDOW = 10
CASH_RETURN = 0.005 / DAYS_PER_YEAR

_MEAN_RETURN = 0.16 / DAYS_PER_YEAR
_MARKET_VOLATILITY = 0.13 / np.sqrt(DAYS_PER_YEAR)
_FACTOR_VOLATILITIES = np.array([0.08, 0.06, 0.05, 0.04, 0.04]) / np.sqrt(DAYS_PER_YEAR)
_IDIOSYNCRATIC_MEDIAN = 0.19 / np.sqrt(DAYS_PER_YEAR)
_TAIL_DEGREES = 5
_RETURN_LIMIT = 0.3
# The forecast sees tomorrow's return through noise of variance 0.02, far above the variance of the
# return itself, and is shrunk accordingly.
_FORECAST_SHRINKAGE = 0.0243
_FORECAST_NOISE = 0.1414
_VOLUME_MEDIAN = 1.5e8


@dataclass(frozen=True)
class Market:
    """What happens on each day (realized) and what the policy believes beforehand (estimates).

    All arrays are (days, assets) except the spectrum of the return covariance: ``eigenvalues``
    (assets,) and ``eigenvectors`` (assets, assets), one eigenvector per column.
    """

    returns: Array
    forecasts: Array
    volumes: Array
    volatilities: Array
    volume_estimates: Array
    volatility_estimates: Array
    eigenvalues: Array
    eigenvectors: Array

    @property
    def n_days(self) -> int:
        return len(self.returns)

    @property
    def n_assets(self) -> int:
        return len(self.eigenvalues)

    @property
    def covariance(self) -> Array:
        """The covariance of daily returns, (assets, assets)."""
        return (self.eigenvectors * self.eigenvalues) @ self.eigenvectors.T

    def first_days(self, days: int) -> Market:
        """The same market, closed after ``days`` days."""
        return replace(
            self,
            returns=self.returns[:days],
            forecasts=self.forecasts[:days],
            volumes=self.volumes[:days],
            volatilities=self.volatilities[:days],
            volume_estimates=self.volume_estimates[:days],
            volatility_estimates=self.volatility_estimates[:days],
        )


def make_market(seed: int) -> Market:
    """The market of ``seed``: 100 assets over 500 trading days."""
    rng = np.random.default_rng(seed)
    beta = rng.normal(1.0, 0.25, size=N_ASSETS)
    loadings = rng.standard_normal((N_ASSETS, len(_FACTOR_VOLATILITIES))) * _FACTOR_VOLATILITIES
    idiosyncratic = _IDIOSYNCRATIC_MEDIAN * np.exp(0.3 * rng.standard_normal(N_ASSETS))
    factors = np.column_stack([_MARKET_VOLATILITY * beta, loadings])
    covariance = factors @ factors.T + np.diag(idiosyncratic**2)
    eigenvalues, eigenvectors = np.linalg.eigh(covariance)

    common = _unit_shocks(rng, (N_DAYS, factors.shape[1])) @ factors.T
    returns = common + idiosyncratic * _unit_shocks(rng, (N_DAYS, N_ASSETS))
    returns = np.clip(returns + (_MEAN_RETURN - returns.mean()), -_RETURN_LIMIT, _RETURN_LIMIT)
    noise = _FORECAST_NOISE * rng.standard_normal(returns.shape)

    # The window before the first trading day is simulated too, so that every day has full estimates.
    history = (ESTIMATE_WINDOW + N_DAYS, N_ASSETS)
    level = _VOLUME_MEDIAN * np.exp(0.7 * rng.standard_normal(N_ASSETS))
    volumes = level * np.exp(0.35 * rng.standard_normal(history))
    deviation = np.sqrt(np.diag(covariance))
    volatilities = 0.6 * deviation * np.exp(0.3 * rng.standard_normal(history))
    return Market(
        returns=returns,
        forecasts=_FORECAST_SHRINKAGE * (returns + noise),
        volumes=volumes[ESTIMATE_WINDOW:],
        volatilities=volatilities[ESTIMATE_WINDOW:],
        volume_estimates=_trailing_mean(volumes),
        volatility_estimates=_trailing_mean(volatilities),
        eigenvalues=eigenvalues,
        eigenvectors=eigenvectors,
    )


def _unit_shocks(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Student-t shocks of variance one, (days, columns)."""
    scale = np.sqrt((_TAIL_DEGREES - 2) / _TAIL_DEGREES)
    return np.asarray(scale * rng.standard_t(_TAIL_DEGREES, size=shape))


def _trailing_mean(series: Array) -> Array:
    """(window + days, assets) → (days, assets): on each day the mean over the window before that day."""
    windows = np.lib.stride_tricks.sliding_window_view(series[:-1], ESTIMATE_WINDOW, axis=0)
    return np.asarray(windows.mean(axis=-1))


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
