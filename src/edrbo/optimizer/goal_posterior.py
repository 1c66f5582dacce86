"""What is believed of a goal's value at designs: by joint samples of f over contexts, so that nothing need be linear.

Each draw takes an expert, f at the design in all contexts of the law from its joint posterior, and the goal of that.
All designs see the same random numbers. The law is taken as given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.goal import Aim
from edrbo.context.laws import ContextPoints
from edrbo.records.goals import Robust
from edrbo.records.units import Units
from edrbo.streams import stream
from edrbo.surrogate.ensemble import Ensemble
from edrbo.surrogate.exact_gp import safe_cholesky

Array = NDArray[np.float64]

DRAWS, FEW_DRAWS = 512, 128  # of each design, and where many are asked for or each is a plan
MANY = 16


@dataclass(frozen=True, eq=False)
class GoalValues:
    """Draws (N × draws) of the value of N designs; ``units`` are the model's it is in, None: the goal's own."""

    draws: Array
    units: Units | None

    @property
    def expected(self) -> Array:
        """The posterior expectation (N), in the goal's units and the user's direction."""
        return self._shown(self.draws.mean(axis=1))

    def quantile(self, level: float) -> Array:
        turned = self.units is not None and self.units.sign < 0
        return self._shown(np.quantile(self.draws, 1.0 - level if turned else level, axis=1))

    def _shown(self, values: Array) -> Array:
        return values if self.units is None else self.units.to_user(values)


def goal_values(aim: Aim, model: Ensemble, points: ContextPoints, x: Tensor, seed: int) -> GoalValues:
    """At designs ``x`` (N × d_x) under the law of ``points``, with the support that matters for each of them."""
    shares = np.full(model.num_experts, 1.0 / model.num_experts) if model.weights is None else model.weights.numpy()
    count = FEW_DRAWS if len(x) > MANY or isinstance(aim.goal, Robust) else DRAWS
    ends = np.round(np.cumsum([0.0, *shares]) * count).astype(int).tolist()  # quotas instead of lots
    belief = aim.belief(model, points)
    with torch.no_grad():
        draws = [_draw(aim, model, belief.near(design[None]).points, design, ends, seed) for design in x]
    return GoalValues(np.stack(draws) if draws else np.zeros((0, count)), aim.units if aim.of_outcomes else None)


def _draw(aim: Aim, model: Ensemble, points: ContextPoints, design: Tensor, ends: list[int], seed: int) -> Array:
    """Draws of one design."""
    joint = torch.cat([design.expand(len(points.all), -1), points.all], dim=-1)
    mean, covariance = model.gp.posterior(joint)  # M × n and M × n × n
    roots = safe_cholesky(covariance)
    noise = torch.from_numpy(stream(seed, "goal").standard_normal((ends[-1], len(joint))))
    experts = range(model.num_experts)
    outcomes = torch.cat([mean[m] + noise[ends[m] : ends[m + 1]] @ roots[m].mT for m in experts])
    reduce = aim.modelled_value if aim.of_outcomes else aim.value
    values: Array = reduce(model.scaling.value(outcomes), points).numpy()
    return values
