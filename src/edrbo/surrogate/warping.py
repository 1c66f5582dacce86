"""Output warping: experts of power-transformed outcomes, the power chosen by marginal likelihood at every fit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from edrbo.surrogate.earlier import EarlierRows
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate
from edrbo.surrogate.kernels import Hyperparameters
from edrbo.surrogate.scaling import Scaling, Warping

# stronger warping predicts more skewed posteriors, and explores more than it gains (research/journal.md)
MIN_POWER, MAX_POWER = 0.5, 1.5
COARSE = (MIN_POWER, 1.0, MAX_POWER)  # powers tried each time the data have doubled
POWER_STEP = 0.25  # otherwise the power moves by one step at most
# a neighbouring power is fitted if its log evidence with the kernels at hand comes as near as this
EVIDENCE_MARGIN = 2.0
POWER_SD = 0.5  # of the normal prior of the power, around 1
FEW_OUTCOMES = 10  # outcomes; up to here the power climbs step by step however cold the fit is


@dataclass(frozen=True)
class WarpedSurrogate(Surrogate):
    """``Surrogate`` of outcomes transformed by ``Warping``, one power for all experts.

    The stationary experts fit a function better whose peaks are as wide as its valleys; bending the outcomes makes
    them so, and all beliefs are given in units of y again (research/journal.md).
    """

    def fit(
        self,
        X: Tensor,
        Y: Tensor,
        Yvar: Tensor | None = None,
        *,
        start: Hyperparameters | None = None,
        cold: bool = True,
    ) -> ExpertEnsemble:
        power = 1.0 if start is None else start.power
        scaled_by = self._with_spread(Y)
        best = self._fit(X, Y, Yvar, Warping.warped(scaled_by, power), start, cold)
        others = COARSE if cold and len(Y) > FEW_OUTCOMES else self._promising(best, X, Y, power)
        fits = [self._fit(X, Y, Yvar, Warping.warped(scaled_by, p), best.gp.hyper, False) for p in others if p != power]
        return max([best, *fits], key=lambda model: _log_evidence(model, Y, self.earlier))

    def _promising(self, model: ExpertEnsemble, X: Tensor, Y: Tensor, power: float) -> tuple[float, ...]:
        """The better of the neighbouring powers, if it is worth a fit."""

        def with_power(other: float) -> float:
            scaling = Warping.warped(self._with_spread(Y), other)
            standardized = scaling.standardize(Y)
            if self.earlier is not None:
                standardized = self._below_earlier(X, standardized, None, scaling)[1]
            return _log_evidence(self._with_mean(model.gp, standardized, scaling, model.replicates), Y, self.earlier)

        known = {
            other: with_power(other)
            for other in (power - POWER_STEP, power + POWER_STEP)
            if MIN_POWER <= other <= MAX_POWER
        }
        other = max(known, key=lambda p: known[p])
        return (other,) if known[other] > _log_evidence(model, Y, self.earlier) - EVIDENCE_MARGIN else ()

    def _at(
        self, X: Tensor, Y: Tensor, Yvar: Tensor | None, hyper: Hyperparameters, scaling: Scaling
    ) -> ExpertEnsemble:
        assert isinstance(scaling, Warping)
        return super()._at(X, Y, Yvar, replace(hyper, power=scaling.power), scaling)

    def _scaling(self, Y: Tensor, hyper: Hyperparameters) -> Scaling:
        return Warping.warped(self._with_spread(Y), hyper.power)


def _log_evidence(model: ExpertEnsemble, Y: Tensor, earlier: EarlierRows | None) -> float:
    """Log marginal likelihood of ``Y`` and of what ``earlier`` sources measured, mean over the experts, and the log
    prior of the power."""
    assert isinstance(model.scaling, Warping)
    evidence = model.log_evidence().mean() + model.scaling.log_slope(Y).sum()
    for source in range(1, 1 if earlier is None else earlier.sources + 1):
        assert earlier is not None
        outcomes = earlier.of(source)
        evidence = evidence + model.scaling.alike(outcomes).log_slope(outcomes).sum()
    return float(evidence) - 0.5 * ((model.scaling.power - 1.0) / POWER_SD) ** 2
