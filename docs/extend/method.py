"""A method: its score, its functional, and edrbo's experts and contexts."""

from dataclasses import dataclass

import edrbo
from edrbo.acquisition.risk import CVaRFunctional
from edrbo.acquisition.scores import Score
from edrbo.contexts import Empirical
from edrbo.surrogate.ensemble import barycenter


@edrbo.register  # so that a study can store it
@dataclass(frozen=True)
class Saturating(Score):
    """Optimism that grows ever more slowly with what is not known."""

    beta: float = 1.5

    def __call__(self, mean, sd, weights=None):  # of each expert at N points, M × N → N
        center, spread = barycenter(mean, sd, weights)
        return center + self.beta * spread.sqrt()


METHODS = {"saturating": edrbo.Method(edrbo.Surrogate(), Saturating(), Empirical(), CVaRFunctional(0.5))}
