"""The 97.5 % quantile of Student's t for any degrees of freedom, without SciPy, which takes long to load."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from edrbo.optimizer.forecasts import Z95

MANY = 50.0  # degrees of freedom from which the expansion around the normal quantile is exact to nine digits
TERMS = 500
STEPS = 80  # a limit that is not met: six are usual

_k = np.arange(TERMS, dtype=np.float64)
_SERIES = np.cumprod(np.concatenate([[1.0], (_k[1:] - 0.5) / _k[1:]]))  # (½)_k / k!


@lru_cache(maxsize=1024)
def student_quantile(freedom: float) -> float:
    """Infinite without a degree of freedom."""
    if freedom <= 0.0:
        return math.inf
    return _expanded(freedom) if freedom > MANY else _searched(freedom)


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


def _searched(v: float) -> float:
    """Where P(T > t) = ½ I_w(v/2, ½) with w = v/(v + t²) is 2.5 %.

    Its logarithm is concave and falls in log t, so that Newton's method arrives from anywhere.
    """
    log_t = math.log(Z95)
    for _ in range(STEPS):
        log_tail, log_density = _logs(v, log_t)
        step = (log_tail - math.log(0.025)) * math.exp(log_tail - log_density - log_t)
        log_t += step
        if abs(step) < 1e-13:
            break
    return math.exp(log_t)


def _logs(v: float, log_t: float) -> tuple[float, float]:
    """The logarithms of P(T > t), by the series of the incomplete beta function around zero, and of the density."""
    a = 0.5 * v
    log_w = -float(np.logaddexp(0.0, 2.0 * log_t - math.log(v)))
    log_beta = math.lgamma(a) + math.lgamma(0.5) - math.lgamma(a + 0.5)
    series = float((_SERIES / (a + _k)) @ np.exp(_k * log_w))
    log_tail = math.log(0.5 * series) + a * log_w - log_beta
    return log_tail, (a + 0.5) * log_w - 0.5 * math.log(v) - log_beta
