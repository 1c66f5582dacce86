"""Cross-validation: predictions of held-out outcomes, leave-one-out and one step ahead.

Leaving one out judges the model among its data: ``trust`` stretches intervals by these errors, weighing outcomes in new
places most, since any model does well beside others like them. The next outcome is mostly of a new place. So what a
report says of how far the model can be trusted is judged by the second kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.records.outcome_forecast import read_outcome_forecast
from edrbo.records.outcome_units import Units
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
def leave_one_out(model: ExpertEnsemble) -> LeaveOneOut:
    """Of the observations the model is fitted to."""
    with torch.no_grad():
        return LeaveOneOut(*_in_units_of_y(model, *model.leave_one_out()))


@engine_threads()
def one_step_ahead(model: ExpertEnsemble) -> HeldOutPredictions:
    """Each outcome but the first from those before it, at the hyper-parameters of the fit to all.

    In closed form too: with K + noise = L Lᵀ the rows of L⁻¹(y − mean) are the errors in units of Lᵢᵢ, the standard
    deviation with which yᵢ was predicted. Hindsight helps the hyper-parameters: forecasts that were made and kept at
    the time are the better judges.
    """
    with torch.no_grad():
        residual = (model.gp.y - model.gp.hyper.mean[:, None]).unsqueeze(-1)
        sd = model.gp.chol.diagonal(dim1=-2, dim2=-1)
        error = torch.linalg.solve_triangular(model.gp.chol, residual, upper=False).squeeze(-1) * sd
        y, mean, spread, *_ = _in_units_of_y(model, model.gp.y, model.gp.y - error, sd)
    return HeldOutPredictions(y[1:], mean[1:], spread[1:])


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
