"""Calibration of the posterior: variance inflation by cross-validated errors, and Student's quantiles for few data.

A Gaussian process is as sure as its hyper-parameters say, and those are estimated. Three corrections, measured in
docs/calibration.md: its standard deviations are multiplied by what its own errors ask for, in an interval by a margin
more, and the quantiles are Student's: for any degrees of freedom, without SciPy, which takes long to load.

Cross-validation predicts held-out outcomes, leaving one out and one step ahead. Leaving one out judges the model among
its data: it stretches intervals by these errors, weighing outcomes in new places most, since any model does well beside
others like them. The next outcome is mostly of a new place. So what a report says of how far the model can be trusted
is judged by the second kind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.records.goals import Expected, Goal
from edrbo.records.outcomes import Units
from edrbo.records.sanity import read_outcome_forecast
from edrbo.records.state import State
from edrbo.surrogate.ensemble import ExpertEnsemble
from edrbo.threads import engine_threads

Array = NDArray[np.float64]

Z95 = 1.959963984540054  # standard normal quantile of 97.5 %


@dataclass(frozen=True, eq=False)
class HeldOutPredictions:
    """Outcomes (n) with what was predicted of each, in one unit; ``sd`` includes the noise of an observation."""

    y: Array
    mean: Array
    sd: Array

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Which outcomes lie inside their 95 % interval."""
        return np.asarray(np.abs(self.y - self.mean) <= Z95 * self.sd)

    @property
    def coverage(self) -> float:
        """Share of the outcomes inside their 95 % interval; nan without any."""
        return float(np.mean(self.inside)) if len(self.y) else float("nan")

    @property
    def too_few(self) -> bool:
        """Whether fewer are inside than chance explains: two standard errors below 95 %."""
        return len(self.y) > 0 and self.coverage < 0.95 - 2.0 * np.sqrt(0.95 * 0.05 / len(self.y))

    @property
    def rmse(self) -> float:
        return float(np.sqrt(np.mean((self.y - self.mean) ** 2))) if len(self.y) else float("nan")

    @property
    def skill(self) -> float:
        """Share of the outcomes' variance that is predicted: 1 is perfect, 0 no better than their mean."""
        total = float(np.sum((self.y - self.y.mean()) ** 2)) if len(self.y) else 0.0
        return 1.0 - float(np.sum((self.y - self.mean) ** 2)) / total if total > 0 else float("nan")


@dataclass(frozen=True, eq=False)
class LeaveOneOut(HeldOutPredictions):
    """Each outcome as predicted from all others, by the barycenter and by each of the M experts.

    In the model's units, that is for maximization. Hyper-parameters and the constant mean are those of the fit to all.
    """

    expert_mean: Array  # M × n
    expert_sd: Array  # M × n

    @property
    def expert_rmse(self) -> Array:
        """Root mean squared error of each expert (M)."""
        return np.asarray(np.sqrt(np.mean((self.y - self.expert_mean) ** 2, axis=1)))


@engine_threads()
def leave_one_out(model: ExpertEnsemble, most: int | None = None) -> LeaveOneOut:
    """Of the observations the model is fitted to, or of at ``most`` so many of them, at even steps."""
    some, count = None, model.observations
    if most is not None and count > most:
        some = torch.from_numpy(np.linspace(0, count - 1, most).astype(np.int64))
    with torch.no_grad():
        return LeaveOneOut(*_in_units_of_y(model, *model.leave_one_out(some)))


@engine_threads()
def one_step_ahead(model: ExpertEnsemble) -> HeldOutPredictions:
    """Each outcome but the first from those before it, at the hyper-parameters of the fit to all.

    In closed form too: with K + noise = L Lᵀ the rows of L⁻¹(y − mean) are the errors in units of Lᵢᵢ, the standard
    deviation with which yᵢ was predicted. Hindsight helps the hyper-parameters: forecasts that were made and kept at
    the time are the better judges.
    """
    with torch.no_grad():
        error, sd = model.gp.one_step_ahead()
        y, mean, spread, *_ = _in_units_of_y(model, model.gp.y, model.gp.y - error, sd)
    first = max(1, model.gp.earlier)  # what earlier sources measured is no outcome of f
    return HeldOutPredictions(y[first:], mean[first:], spread[first:])


def predicted_when_suggested(state: State, units: Units) -> HeldOutPredictions:
    """The outcomes of suggestions with what was stored of each when it was suggested, in the model's units."""
    found, data = [], state.observations
    for key in state.reported:
        run = state.runs[key]
        outcome_forecast = read_outcome_forecast(run.outcome_forecast)
        if outcome_forecast is None:
            continue
        for row in state.rows_of(key):
            interval = outcome_forecast.at(state.space.known_numbers(data.c[row]) or None)
            found.append((data.y[row], interval.value, 0.5 * (interval.high - interval.low) / Z95))
    y, mean, sd = np.array(found, dtype=np.float64).reshape(-1, 3).T
    return HeldOutPredictions(units.to_model(y), units.to_model(mean), np.abs(units.to_model(sd)))


def _in_units_of_y(
    model: ExpertEnsemble, modelled: Tensor, mean: Tensor, sd: Tensor
) -> tuple[Array, Array, Array, Array, Array]:
    """y (n), the barycenter's mean and sd (n), and the experts' (M × n)."""
    expert_mean, expert_sd = model.scaling.moments(mean, sd)
    center, spread = model.barycenter(expert_mean, expert_sd)
    y = model.scaling.value(modelled)
    return y.numpy(), center.numpy(), spread.numpy(), expert_mean.numpy(), expert_sd.numpy()


@lru_cache(maxsize=1024)
def student_quantile(freedom: float) -> float:
    """Of 97.5 %; infinite without a degree of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975)) if freedom > 0.0 else math.inf


PER_FREEDOM, LEAST_FREEDOM = 8.0, 0.7  # one degree of freedom for so many outcomes; few outcomes leave a little
MOST_INFLATION = 2.0  # the standard deviations are never made more than so many times as large
TAIL_MARGIN = 1.15  # of a tail: a design is recommended because the data make it look good, errors included
MOST_ERRORS = 512  # of very many outcomes, errors tell as well as all would
PSEUDO = 1.0  # errors of just the predicted size, counted with the real ones


@dataclass(frozen=True, eq=False)
class Trust:
    """What is known of a model of ``observations`` outcomes besides what it says itself.

    ``inflation`` multiplies its standard deviations, ``stretch``, larger by ``margin``, those of whatever is said of a
    goal's value; ``noise_variance`` (M) is the variance of an outcome around f as each expert sees it, in its
    standardized unit.
    """

    observations: int
    inflation: float
    noise_variance: Tensor
    margin: float = 1.0

    def under(self, goal: Goal) -> Trust:
        """The same where all that is said is of this goal's value."""
        return replace(self, margin=TAIL_MARGIN) if goal.of_outcomes and goal != Expected() else self

    def noise_at(self, model: ExpertEnsemble, points: Tensor) -> Tensor:
        """Variance of an outcome around f at ``points`` (N × d), M × N or M × 1, in the standardized unit.

        Of noise that varies little may be known. An outcome is then Student's, with two degrees of freedom for one over
        the variance of the log noise: its 95 % interval is longer by the first term of Cornish and Fisher's expansion.
        """
        if model.gp.of_outcomes:  # the noise is among the contexts
            return torch.zeros_like(self.noise_variance[:, None])
        ratio = model.gp.noise_ratio(points)
        if ratio is None:
            return self.noise_variance[:, None]
        longer = 1.0 + (Z95**2 + 1.0) / 8.0 * model.gp.noise_doubt(points)
        return model.gp.hyper.noise_variance[:, None] * ratio * longer.square()

    @property
    def freedom(self) -> float:
        """Degrees of freedom behind the scale of the model's errors; 0 for a single outcome, which has no scale."""
        return 0.0 if self.observations < 2 else LEAST_FREEDOM + self.observations / PER_FREEDOM

    @property
    def stretch(self) -> float:
        return self.margin * self.inflation

    @property
    def reach(self) -> float:
        """Half of a 95 % interval in standard deviations of the model."""
        return self.stretch * student_quantile(self.freedom)


def earned_trust(model: ExpertEnsemble) -> Trust:
    """From the errors of each outcome predicted by the others.

    Σ error² / Σ predicted variance: outcomes in new places, whose variance is large, weigh most, and those beside a
    near-duplicate, easy to predict, weigh next to nothing.
    """
    found = leave_one_out(model, None if model.approximation is None else MOST_ERRORS)
    count = model.observations
    noise_variance = model.gp.noise_variance[:, model.gp.earlier :]
    if model.replicates is not None:  # rows are means of repeated outcomes; of one of them the noise is larger
        noise_variance = noise_variance[:, model.replicates.rows] / model.replicates.share
    noise_variance = noise_variance.mean(-1) if count else model.gp.hyper.noise_variance
    if count < 2:
        return Trust(count, 1.0, noise_variance)
    variance = np.square(found.expert_sd).mean(0) + found.expert_mean.var(0)
    error = np.square(found.y - found.mean)
    largest = float(variance.max())
    ratio = (PSEUDO + float((error / largest).sum())) / (PSEUDO + float((variance / largest).sum()))
    return Trust(count, min(max(1.0, math.sqrt(ratio)), MOST_INFLATION), noise_variance)
