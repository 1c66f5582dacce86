"""Many designs: the default, optimism about the mean, erbo and random search; and lengthscale priors that grow with d.

A plugin of the benchmark (research/journal.md, "Higher dimensions"):

    OMP_NUM_THREADS=1 edrbo bench run --plugin research/high.py --problems high --seeds 0:5 --evaluations 100 \\
        --methods edrbo,erbo,random,$(python research/high.py) --workers 1 --out DIR [--resume]
    edrbo bench export DIR --out research/results/high.csv.gz
    edrbo bench table research/results/high.csv.gz --statistic after --relative mean

``mean`` asks by the experts' belief about the expectation, β = 1.5, without the radius, under today's prior: log-normal
lengthscales around 0.7 in any dimension. ``mean+prior=d0.25`` and ``mean+prior=d0.5`` are the same under a median of
0.7 (d/4)^¼ and 0.7 (d/4)^½, d being the number of inputs of the model: coded designs and contexts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from edrbo.acquisition.methods import Method
from edrbo.acquisition.risk import Expectation
from edrbo.acquisition.scores import BarycenterUCB
from edrbo.contexts.distributions import Empirical
from edrbo.surrogate.ensemble import Surrogate
from edrbo.surrogate.kernels import LogNormal, Priors


@dataclass(frozen=True)
class Growing:
    """Lengthscales around 0.7 at four inputs, and around more by a ``power`` of d with others."""

    power: float

    def __call__(self, d: int) -> Priors:
        return Priors(lengthscale=LogNormal(math.log(0.7) + self.power * math.log(d / 4), 0.75))


def mean(surrogate: Surrogate) -> Method:
    return Method(surrogate, BarycenterUCB(1.5, radius_weight=0.0, integrated=True), Empirical(), Expectation())


METHODS = {
    "mean": mean(Surrogate()),
    "mean+prior=d0.25": mean(Surrogate(priors=Growing(0.25))),
    "mean+prior=d0.5": mean(Surrogate(priors=Growing(0.5))),
}

if __name__ == "__main__":
    print(",".join(METHODS))
