"""The 97.5 % quantile of Student's t for any degrees of freedom, without SciPy, which takes long to load."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from edrbo.optimizer.forecasts import Z95

MANY = 50.0  # degrees of freedom from which the expansion around the normal quantile is exact to nine digits
TERMS = 500
STEPS = 80

_k = np.arange(TERMS, dtype=np.float64)
_SERIES = np.cumprod(np.concatenate([[1.0], (_k[1:] - 0.5) / _k[1:]]))  # (½)_k / k!


@lru_cache(maxsize=1024)
def student_quantile(freedom: float) -> float:
    """Infinite without a degree of freedom."""
    if freedom <= 0.0:
        return math.inf
    return _expanded(freedom) if freedom > MANY else _bisected(freedom)


def _expanded(v: float) -> float:
    """Cornish and Fisher's expansion."""
    z = Z95
    terms = (
        (z**3 + z) / 4.0,
        (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0,
        (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0,
        (79.0 * z**9 + 776.0 * z**7 + 1482.0 * z**5 - 1920.0 * z**3 - 945.0 * z) / 92160.0,
    )
    return z + sum(term / v**power for power, term in enumerate(terms, 1))


def _bisected(v: float) -> float:
    """Where P(T > t) = ½ I_w(v/2, ½) with w = v/(v + t²) is 2.5 %, by halving log t."""
    low, high = 0.0, 100.0 / v
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _tail(v, middle) > 0.025 else (low, middle)
    return math.exp(0.5 * (low + high))


def _tail(v: float, log_t: float) -> float:
    """P(T > t), by the series of the incomplete beta function around zero."""
    a = 0.5 * v
    log_w = -float(np.logaddexp(0.0, 2.0 * log_t - math.log(v)))
    log_beta = math.lgamma(a) + math.lgamma(0.5) - math.lgamma(a + 0.5)
    series = float((_SERIES / (a + _k)) @ np.exp(_k * log_w))
    return 0.5 * math.exp(a * log_w - log_beta) * series
