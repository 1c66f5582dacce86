"""How far a model may be believed: by the errors it makes, and by how few data it has.

A Gaussian process is as sure as its hyper-parameters say, and those are estimated. Three corrections, measured in
docs/calibration.md: its standard deviations are multiplied by what its own errors ask for, in an interval by a margin
more, and the quantiles are Student's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from edrbo.optimizer.forecasts import leave_one_out
from edrbo.optimizer.student import student_quantile
from edrbo.surrogate.ensemble import Ensemble

PER_FREEDOM, LEAST_FREEDOM = 8.0, 0.7  # one degree of freedom for so many outcomes; few outcomes leave a little
MOST_INFLATION = 2.0  # the standard deviations are never made more than so many times as large
MARGIN = 1.0  # in an interval of a mean or a share
TAIL_MARGIN = 1.15  # and of a tail: a design is recommended because the data make it look good, errors included
PSEUDO = 1.0  # errors of just the foretold size, counted with the real ones


@dataclass(frozen=True, eq=False)
class Trust:
    """What is known of a model of ``observations`` outcomes besides what it says itself.

    ``inflation`` multiplies its standard deviations, ``stretch`` those of an interval; ``noise`` (M) is the variance of
    an outcome around f as each expert sees it, in its standardized unit.
    """

    observations: int
    inflation: float
    noise: Tensor

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


def earned_trust(model: Ensemble) -> Trust:
    """From the errors of each outcome foretold by the others.

    Σ error² / Σ foretold variance: outcomes in new places, whose variance is large, weigh most, and those beside a
    near-duplicate, easy to foretell, weigh next to nothing.
    """
    found = leave_one_out(model)
    count = len(found.y)
    noise = model.gp.noise
    if model.repeats is not None:  # rows are means of repeated outcomes; of one of them the noise is larger
        noise = noise[:, model.repeats.rows] / model.repeats.share
    noise = noise.mean(-1)
    if count < 2:
        return Trust(count, 1.0, noise)
    variance = np.square(found.expert_sd).mean(0) + found.expert_mean.var(0)
    error = np.square(found.y - found.mean)
    largest = float(variance.max())
    ratio = (PSEUDO + float((error / largest).sum())) / (PSEUDO + float((variance / largest).sum()))
    return Trust(count, min(max(1.0, math.sqrt(ratio)), MOST_INFLATION), noise)
