"""Experts of warped outcomes: the power is chosen by evidence, with everything else, at every fit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from edrbo.surrogate.ensemble import Ensemble, Surrogate
from edrbo.surrogate.hyperparameters import Hyperparameters
from edrbo.surrogate.scaling import Scaling, Warping

LEAST, MOST = 0.5, 1.5  # stronger bends foretell more skewed beliefs, and explore more than they gain (docs/why.md)
COARSE = (LEAST, 1.0, MOST)  # powers tried each time the data have doubled
STEP = 0.25  # otherwise the power moves by one step at most
CLOSE = 2.0  # a neighbouring power is fitted if its log evidence with the kernels at hand comes as near as this
POWER_SD = 0.5  # of the normal prior of the power, around 1
FEW = 10  # outcomes; up to here the power climbs step by step however cold the fit is


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
        power = 1.0 if start is None else start.power
        best = self._fit(X, Y, Yvar, Warping.bent(Y, power), start, cold)
        others = COARSE if cold and len(Y) > FEW else self._promising(best, Y, power)
        fits = [self._fit(X, Y, Yvar, Warping.bent(Y, p), best.gp.hyper, False) for p in others if p != power]
        return max([best, *fits], key=lambda model: _log_evidence(model, Y))

    def _promising(self, model: Ensemble, Y: Tensor, power: float) -> tuple[float, ...]:
        """The better of the neighbouring powers, if it is worth a fit."""

        def with_power(other: float) -> float:
            scaling = Warping.bent(Y, other)
            return _log_evidence(self._with_mean(model.gp, scaling.standardize(Y), scaling, model.repeats), Y)

        known = {other: with_power(other) for other in (power - STEP, power + STEP) if LEAST <= other <= MOST}
        other = max(known, key=lambda p: known[p])
        return (other,) if known[other] > _log_evidence(model, Y) - CLOSE else ()

    def _at(self, X: Tensor, Y: Tensor, Yvar: Tensor | None, hyper: Hyperparameters, scaling: Scaling) -> Ensemble:
        assert isinstance(scaling, Warping)
        return super()._at(X, Y, Yvar, replace(hyper, power=scaling.power), scaling)

    def _scaling(self, Y: Tensor, hyper: Hyperparameters) -> Scaling:
        return Warping.bent(Y, hyper.power)


def _log_evidence(model: Ensemble, Y: Tensor) -> float:
    """Log marginal likelihood of ``Y``, mean over the experts, and the log prior of the power."""
    assert isinstance(model.scaling, Warping)
    evidence = model.log_evidence().mean() + model.scaling.log_slope(Y).sum()
    return float(evidence) - 0.5 * ((model.scaling.power - 1.0) / POWER_SD) ** 2
