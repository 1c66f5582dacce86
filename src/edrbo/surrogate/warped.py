"""Experts of warped outcomes: the power is chosen by evidence, with everything else, at every fit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from edrbo.surrogate.ensemble import Ensemble, Surrogate
from edrbo.surrogate.exact_gp import Hyperparameters
from edrbo.surrogate.scaling import Scaling, Warping

COARSE = (0.0, 0.5, 1.0, 1.5, 2.0)  # powers tried by a cold fit
STEP = 0.25  # a warm fit tries the power before and one step to either side
POWER_SD = 0.5  # of the normal prior of the power, around 1


@dataclass(frozen=True)
class WarpedSurrogate(Surrogate):
    """``Surrogate`` of outcomes bent by ``Warping``, one power for all experts.

    The stationary experts fit a function better whose peaks are as wide as its valleys; bending the outcomes makes
    them so, and all beliefs are given in units of y again (docs/why.md).
    """

    def fit(
        self,
        X: Tensor,
        Y: Tensor,
        Yvar: Tensor | None = None,
        *,
        start: Hyperparameters | None = None,
        cold: bool = True,
    ) -> Ensemble:
        powers: tuple[float, ...] = COARSE
        if start is not None and not cold:
            powers = tuple(p for p in (start.power - STEP, start.power, start.power + STEP) if 0.0 <= p <= 2.0)
        fits = [self._fit(X, Y, Yvar, Warping.bent(Y, power), start, cold) for power in powers]
        return max(fits, key=lambda model: _log_evidence(model, Y))

    def _hyper(self, hyper: Hyperparameters, scaling: Scaling) -> Hyperparameters:
        assert isinstance(scaling, Warping)
        return replace(hyper, power=scaling.power)

    def _scaling(self, Y: Tensor, hyper: Hyperparameters) -> Scaling:
        return Warping.bent(Y, hyper.power)


def _log_evidence(model: Ensemble, Y: Tensor) -> float:
    """Log marginal likelihood of ``Y``, mean over the experts, and the log prior of the power."""
    assert isinstance(model.scaling, Warping)
    evidence = model.gp.log_evidence().mean() + model.scaling.log_slope(Y).sum()
    return float(evidence) - 0.5 * ((model.scaling.power - 1.0) / POWER_SD) ** 2
