"""Calibration of the posterior: variance inflation by cross-validated errors, and Student's quantiles for few data.

A Gaussian process is as sure as its hyper-parameters say, and those are estimated. Three corrections, measured in
docs/calibration.md: its standard deviations are multiplied by what its own errors ask for, in an interval by a margin
more, and the quantiles are Student's: for any degrees of freedom, without SciPy, which takes long to load.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from torch import Tensor

from edrbo.optimizer.cross_validation import Z95, leave_one_out
from edrbo.surrogate.ensemble import ExpertEnsemble

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


PER_FREEDOM, LEAST_FREEDOM = 8.0, 0.7  # one degree of freedom for so many outcomes; few outcomes leave a little
MOST_INFLATION = 2.0  # the standard deviations are never made more than so many times as large
MARGIN = 1.0  # in an interval of a mean or a share
TAIL_MARGIN = 1.15  # and of a tail: a design is recommended because the data make it look good, errors included
PSEUDO = 1.0  # errors of just the predicted size, counted with the real ones


@dataclass(frozen=True, eq=False)
class Trust:
    """What is known of a model of ``observations`` outcomes besides what it says itself.

    ``inflation`` multiplies its standard deviations, ``stretch`` those of an interval; ``noise_variance`` (M) is the
    variance of an outcome around f as each expert sees it, in its standardized unit.
    """

    observations: int
    inflation: float
    noise_variance: Tensor

    @property
    def freedom(self) -> float:
        """Degrees of freedom behind the scale of the model's errors; 0 for a single outcome, which has no scale."""
        return 0.0 if self.observations < 2 else LEAST_FREEDOM + self.observations / PER_FREEDOM

    @property
    def stretch(self) -> float:
        return MARGIN * self.inflation

    @property
    def reach(self) -> float:
        """Half of a 95 % interval in standard deviations of the model."""
        return self.stretch * student_quantile(self.freedom)


def earned_trust(model: ExpertEnsemble) -> Trust:
    """From the errors of each outcome predicted by the others.

    Σ error² / Σ predicted variance: outcomes in new places, whose variance is large, weigh most, and those beside a
    near-duplicate, easy to predict, weigh next to nothing.
    """
    found = leave_one_out(model)
    count = len(found.y)
    noise_variance = model.gp.noise_variance
    if model.replicates is not None:  # rows are means of repeated outcomes; of one of them the noise is larger
        noise_variance = noise_variance[:, model.replicates.rows] / model.replicates.share
    noise_variance = noise_variance.mean(-1)
    if count < 2:
        return Trust(count, 1.0, noise_variance)
    variance = np.square(found.expert_sd).mean(0) + found.expert_mean.var(0)
    error = np.square(found.y - found.mean)
    largest = float(variance.max())
    ratio = (PSEUDO + float((error / largest).sum())) / (PSEUDO + float((variance / largest).sum()))
    return Trust(count, min(max(1.0, math.sqrt(ratio)), MOST_INFLATION), noise_variance)
