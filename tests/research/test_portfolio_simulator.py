"""The synthetic market, the trading solver and the back-test."""

from __future__ import annotations

import warnings
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from portfolio_simulator import (
    CASH_RETURN,
    ESTIMATE_WINDOW,
    MARKET_SEED,
    Market,
    Policies,
    TradingProblems,
    _trailing_mean,
    backtest,
    make_market,
    prox_hold,
    prox_trade,
    solve,
)
from scipy.optimize import minimize_scalar

from edrbo.errors import InvalidValueError

pytestmark = pytest.mark.numpy_numeric

# How far from the value of another solver the design lets a back-test be, in percent a year.
AGREEMENT = 0.006
# Corners and interior: free leverage, expensive shorting, timid, a typical optimum.
POINTS = np.array(
    [
        [0.0, 0.0, 0.0, 0.0, 0.0],
        [0.003, 0.4, 0.6, 0.1, 0.35],
        [0.02, 0.9, 0.02, 0.05, 0.8],
        [0.5, 0.5, 0.5, 0.5, 0.5],
        [1.0, 1.0, 1.0, 1.0, 1.0],
    ]
)


@pytest.fixture(scope="module")
def market() -> Market:
    return make_market(MARKET_SEED)


# The market


def test_market_depends_on_its_seed_only(market: Market) -> None:
    again, other = make_market(MARKET_SEED), make_market(MARKET_SEED + 1)
    assert np.array_equal(market.returns, again.returns)
    assert np.array_equal(market.volumes, again.volumes)
    assert not np.allclose(market.returns, other.returns)


def test_market_has_the_stated_moments(market: Market) -> None:
    assert market.returns.shape == (500, 100)
    assert market.returns.mean() * 250 == pytest.approx(0.16, abs=1e-6)
    assert np.abs(market.returns).max() <= 0.3
    # Over 500 days the summed variance of heavy-tailed returns is known to about a tenth.
    assert market.returns.var(axis=0).sum() == pytest.approx(np.trace(market.covariance), rel=0.15)
    noise = market.forecasts / 0.0243 - market.returns
    assert noise.std() == pytest.approx(0.1414, rel=0.02)


def test_covariance_is_the_factor_model_seen_in_the_returns(market: Market) -> None:
    """The risk model explains the portfolio that loads on it most, and the one that loads least."""
    for column in (-1, 0):
        direction = market.eigenvectors[:, column]
        realized = np.var(market.returns @ direction)
        assert realized == pytest.approx(market.eigenvalues[column], rel=0.35)


def test_estimates_use_earlier_days_only() -> None:
    series = np.random.default_rng(3).random((ESTIMATE_WINDOW + 4, 2))
    looped = [series[day : day + ESTIMATE_WINDOW].mean(axis=0) for day in range(4)]
    np.testing.assert_allclose(_trailing_mean(series), looped, rtol=1e-14)


def test_estimates_follow_the_realized_series(market: Market) -> None:
    """Day t is estimated from days t−10 … t−1 of what really happened."""
    for realized, estimate in (
        (market.volumes, market.volume_estimates),
        (market.volatilities, market.volatility_estimates),
    ):
        np.testing.assert_allclose(estimate[37], realized[27:37].mean(axis=0), rtol=1e-13)


# The proximal maps


@settings(max_examples=60, deadline=None)
@given(point=st.floats(-2, 2), linear=st.floats(0, 1), power=st.floats(0, 5))
def test_prox_trade_minimizes(point: float, linear: float, power: float) -> None:
    def objective(z: float) -> float:
        return linear * abs(z) + power * abs(z) ** 1.5 + 0.5 * (z - point) ** 2

    ours = float(prox_trade(np.array([[point]]), np.array([[linear]]), np.array([[power]]))[0, 0])
    best = minimize_scalar(objective, bounds=(-2.1, 2.1), method="bounded", options={"xatol": 1e-11})
    assert objective(ours) <= best.fun + 1e-14
    # The objective is 1-strongly convex, so a value within ε of the best is within √(2ε) of the minimizer.
    assert abs(ours - best.x) <= np.sqrt(2 * max(best.fun - objective(ours), 0.0)) + 1e-6


def test_prox_trade_of_nothing_is_nothing() -> None:
    zero = np.zeros((1, 3))
    assert np.array_equal(prox_trade(zero, zero, zero), zero)


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_prox_hold_agrees_with_a_convex_solver(scale: float) -> None:
    rng = np.random.default_rng(5)
    points, borrow = scale * rng.standard_normal((4, 7)), np.array([[0.0], [0.05], [0.5], [5.0]])
    ours = prox_hold(points, borrow, limit=3.0)
    for point, fee, result in zip(points, borrow[:, 0], ours, strict=True):
        y = cp.Variable(7)
        objective = fee * cp.sum(cp.neg(y)) + 0.5 * cp.sum_squares(y - point)
        cp.Problem(cp.Minimize(objective), [cp.norm1(y) <= 3.0]).solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(result, y.value, atol=2e-6)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=12),
    st.floats(0, 2),
    st.floats(0.1, 4),
    st.integers(0, 2**32 - 1),
)
def test_prox_hold_is_feasible_and_unbeaten(point: list[float], borrow: float, limit: float, seed: int) -> None:
    target = np.array([point])
    result = prox_hold(target, np.array([[borrow]]), limit)
    assert np.abs(result).sum() <= limit * (1 + 1e-12)

    def objective(y: np.ndarray) -> np.ndarray:
        cost: np.ndarray = borrow * np.maximum(-y, 0).sum(axis=1) + 0.5 * ((y - target) ** 2).sum(axis=1)
        return cost

    rng = np.random.default_rng(seed)
    steps = rng.standard_normal((200, len(point))) * 10.0 ** rng.uniform(-4, 0, (200, 1))
    rivals = result + steps
    rivals *= np.minimum(1.0, limit / np.maximum(np.abs(rivals).sum(axis=1, keepdims=True), 1e-300))
    assert np.all(objective(rivals) >= objective(result) - 1e-12)


# The solver


def _plans(market: Market, points: np.ndarray, weights: np.ndarray, day: int) -> TradingProblems:
    """What the back-test solves on ``day`` for a portfolio of 10⁷, written out again from the design."""
    x1, x2, x3, c1, c2 = points.T[:, :, None]
    trade = 5.5 + 2.5 * x2
    impact = market.volatility_estimates[day] / np.sqrt(market.volume_estimates[day] / 1e7)
    return TradingProblems(
        weights=weights,
        excess_forecast=market.forecasts[day] - 0.005 / 250,
        risk_aversion=0.1 + 999.9 * x1,
        eigenvalues=market.eigenvalues,
        eigenvectors=market.eigenvectors,
        trade_linear=trade * (1e-4 + 0.0099 * c1) / 2,
        trade_power=trade * impact,
        borrow=(0.1 + 99.9 * x3) * (1e-4 + 0.0009 * c2),
        leverage_limit=3.0,
    )


def _clarabel_weights(problems: TradingProblems, row: int) -> np.ndarray:
    """The weights after trading of one row, from an interior-point solver.

    In units of a thirtieth, so that variables are near one, with positive parts written out and each |trade|^1.5 as one
    power cone: this form is solved to 1e-11, so that at the 1e-9 asked for no CPU's rounding makes the solver doubt
    itself. (As ``power(abs(trade), 1.5)`` it stalls at 1e-8, on some machines before.)
    """
    count, unit = problems.weights.shape[1], 30.0
    held, short, bought, sold = (cp.Variable(count, nonneg=True) for _ in range(4))
    impact = cp.Variable(count)
    w = held - short
    root = np.sqrt(problems.eigenvalues)[:, None] * problems.eigenvectors.T
    objective = (
        problems.risk_aversion[row, 0] / unit**2 * cp.sum_squares(root @ w)
        - problems.excess_forecast @ w / unit
        + problems.trade_linear[row, 0] / unit * cp.sum(bought + sold)
        + (problems.trade_power[row] / unit**1.5) @ impact
        + problems.borrow[row, 0] / unit * cp.sum(short)
    )
    constraints = [
        w - unit * problems.weights[row] == bought - sold,
        cp.sum(held + short) <= unit * problems.leverage_limit,
        cp.PowCone3D(impact, np.ones(count), bought + sold, 2 / 3),
    ]
    problem = cp.Problem(cp.Minimize(1e4 * objective), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    assert problem.status == cp.OPTIMAL
    return np.asarray(w.value) / unit


def test_solver_agrees_with_clarabel(market: Market) -> None:
    weights = 0.03 * np.random.default_rng(1).standard_normal((len(POINTS), market.n_assets))
    problems = _plans(market, POINTS, weights, day=3)
    solution = solve(problems, tolerance=1e-9, max_iterations=20_000)
    assert solution.converged.all()
    leverage = []
    for row in range(len(POINTS)):
        reference = _clarabel_weights(problems, row)
        leverage.append(np.abs(reference).sum())
        np.testing.assert_allclose(weights[row] + solution.trades[row], reference, atol=5e-6)
    # The rows cover a binding and a slack leverage limit.
    assert max(leverage) == pytest.approx(3.0, abs=1e-4)
    assert min(leverage) < 2.5


def test_unworthy_trades_are_exactly_zero(market: Market) -> None:
    weights = np.full((1, market.n_assets), 0.01)
    expensive = np.array([[0.5, 1.0, 0.5, 1.0, 0.5]])
    trades = solve(_plans(market, expensive, weights, day=0)).trades
    assert np.count_nonzero(trades == 0.0) > market.n_assets / 2


def test_rows_at_the_iteration_cap_are_reported(market: Market) -> None:
    weights = np.full((len(POINTS), market.n_assets), 0.01)
    problems = _plans(market, POINTS, weights, day=0)
    enough = solve(problems)
    some = int(np.sort(enough.iterations)[1])
    capped = solve(problems, max_iterations=some)
    np.testing.assert_array_equal(capped.converged, enough.iterations <= some)
    assert not capped.converged.all()
    assert capped.converged.any()
    assert np.all(capped.iterations[~capped.converged] == some)
    assert np.all(np.isfinite(capped.trades))


# The back-test


def test_a_row_alone_equals_the_row_in_a_batch(market: Market) -> None:
    short = market.first_days(15)
    together = backtest(POINTS, short).values
    alone = [backtest(point[None], short).values[0] for point in POINTS]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-6)
    np.testing.assert_allclose(together[::-1], backtest(POINTS[::-1], short).values, rtol=0, atol=1e-6)


def test_backtest_agrees_with_a_plain_one(market: Market) -> None:
    """Two days, one policy, an interior-point solver and book-keeping asset by asset."""
    short, point = market.first_days(2), np.array([[0.003, 0.4, 0.1, 0.02, 0.35]])
    half_spread, borrow = (1e-4 + 0.0099 * 0.02) / 2, 1e-4 + 0.0009 * 0.35
    holdings, cash, excess = [1e5] * 100, 0.0, []
    for day in range(2):
        value = sum(holdings) + cash
        weights = np.array(holdings)[None] / value
        problems = _plans(short, point, weights, day)
        # The helper states the impact for a value of 10⁷.
        problems.trade_power[:] *= np.sqrt(value / 1e7)
        wanted = _clarabel_weights(problems, 0)
        for asset in range(100):
            trade = value * wanted[asset] - holdings[asset]
            sigma, volume = short.volatilities[day, asset], short.volumes[day, asset]
            cash -= trade + half_spread * abs(trade) + sigma * abs(trade) ** 1.5 / volume**0.5
            holdings[asset] += trade
            cash -= borrow * max(-holdings[asset], 0.0)
            holdings[asset] *= 1 + short.returns[day, asset]
        cash *= 1 + 0.005 / 250
        excess.append((sum(holdings) + cash) / value - 1 - 0.005 / 250)
    assert backtest(point, short).values[0] == pytest.approx(-100 * 250 * np.mean(excess), abs=AGREEMENT)


def test_the_usual_tolerance_is_tight_enough(market: Market) -> None:
    """Residuals of 1e-6 leave weights off by some 1e-5: far below what the design asks of y."""
    short = market.first_days(5)
    exact = backtest(POINTS, short, tolerance=1e-9, max_iterations=50_000)
    assert not exact.capped_days.any()
    np.testing.assert_allclose(backtest(POINTS, short).values, exact.values, rtol=0, atol=AGREEMENT)


def test_capped_days_are_counted(market: Market) -> None:
    short = market.first_days(3)
    assert np.array_equal(backtest(POINTS, short).capped_days, np.zeros(len(POINTS)))
    assert np.array_equal(backtest(POINTS, short, max_iterations=5).capped_days, np.full(len(POINTS), 3))


def test_policies_span_the_ranges_of_the_design() -> None:
    low, high = (Policies.from_unit(np.full((1, 5), end)) for end in (0.0, 1.0))
    ends = {
        "risk_aversion": (0.1, 1000.0),
        "trade_aversion": (5.5, 8.0),
        "hold_aversion": (0.1, 100.0),
        "half_spread": (0.5e-4, 0.005),
        "borrow_cost": (1e-4, 1e-3),
    }
    for name, (first, last) in ends.items():
        assert getattr(low, name)[0, 0] == pytest.approx(first)
        assert getattr(high, name)[0, 0] == pytest.approx(last)


@pytest.mark.parametrize("inputs", [[0.5] * 5, [[0.5] * 4], [[0.5, 0.5, 0.5, 0.5, 1.01]], [[np.nan] * 5]])
def test_bad_inputs_are_refused_with_a_hint(inputs: Any) -> None:
    with pytest.raises(InvalidValueError) as caught:
        Policies.from_unit(inputs)
    assert caught.value.hint


def test_backtest_agrees_with_cvxportfolio(market: Market) -> None:
    pytest.importorskip("cvxportfolio", reason="the cvxportfolio package (1.3.2) is not installed")
    short = market.first_days(5)
    ours = backtest(POINTS[1:4], short).values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the package, not ours
        theirs = [_cvxportfolio_value(point, short) for point in POINTS[1:4]]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=AGREEMENT)


def _cvxportfolio_value(point: np.ndarray, market: Market) -> float:
    import cvxportfolio as cvx
    import pandas as pd

    year = 365.24  # days, as the package counts them
    # One day before the first for the package's history, one after the last for it to end on.
    days = pd.date_range("2020-01-01", periods=market.n_days + 2, freq="D")
    names = [f"asset {i}" for i in range(market.n_assets)]

    def frame(values: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame(np.vstack([values[:1], values, values[-1:]]), index=days, columns=names)

    policies = Policies.from_unit([point])
    spread = policies.half_spread.item()
    fee = 100 * ((1 + policies.borrow_cost.item()) ** year - 1)
    holding = {"short_fees": fee, "periods_per_year": year}
    trade_plan = cvx.TransactionCost(
        a=spread,
        b=1.0,
        volume_hat=frame(market.volume_estimates),
        sigma=frame(market.volatility_estimates),
    )
    objective = (
        cvx.ReturnsForecast(frame(market.forecasts))
        - policies.risk_aversion.item()
        * cvx.FullCovariance(pd.DataFrame(market.covariance, index=names, columns=names))
        - policies.trade_aversion.item() * trade_plan
        - policies.hold_aversion.item() * cvx.HoldingCost(**holding)
    )
    policy = cvx.SinglePeriodOptimization(objective, [cvx.LeverageLimit(3)], solver="CLARABEL")
    returns = frame(market.returns)
    returns["cash"] = CASH_RETURN
    simulator = cvx.MarketSimulator(
        returns=returns,
        volumes=frame(market.volumes),
        cash_key="cash",
        min_history=pd.Timedelta(0),
        costs=[
            cvx.TransactionCost(a=spread, b=1.0, sigma=frame(market.volatilities)),
            cvx.HoldingCost(**holding),
        ],
    )
    start = pd.Series([1e7 / market.n_assets] * market.n_assets + [0.0], index=[*names, "cash"])
    result = simulator.backtest(policy, start_time=days[1], end_time=days[-1], h=start)
    return float(-100 * 250 * (result.v.pct_change().dropna() - CASH_RETURN).mean())
