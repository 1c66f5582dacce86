"""A seeded synthetic stock market to back-test trading policies on.

Returns follow a market factor and five style factors with heavy-tailed shocks; volumes and daily
volatilities are log-normal around a level per asset. Nothing here is market data: every number comes
from one seed, so that the portfolio problem can be made again by anybody.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

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
