"""What is believed of a goal's value at designs: by joint samples of f over contexts, so that nothing need be linear.

Each draw takes an expert, f at the design in all contexts of the law from its joint posterior, a law from the Bayesian
bootstrap over the contexts, and the goal of that. All designs see the same random numbers.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.goal import ModelGoal
from edrbo.context.laws import ContextPoints
from edrbo.context.uncertainty import LawBelief
from edrbo.optimizer.forecasts import Z95
from edrbo.optimizer.trust import LEAST_FREEDOM, Trust
from edrbo.records.goals import Robust
from edrbo.records.units import Units
from edrbo.streams import stream
from edrbo.surrogate.ensemble import Ensemble
from edrbo.surrogate.exact_gp import safe_cholesky

Array = NDArray[np.float64]

DRAWS, FEW_DRAWS = 512, 128  # of each design, and where many are asked for or each is a plan
LAWS = 32  # that share the draws; a worst case over laws is solved for each
MANY = 16


@dataclass(frozen=True, eq=False)
class GoalValues:
    """Draws (N × draws) of the value of N designs; ``units`` are the model's it is in, None: the goal's own.

    ``draws`` have the tails that the model's record asks for (with few data they have no mean), ``plain`` its own.
    ``of_contexts`` and ``of_experts`` (N) are 95 % half-widths when only the law, or only the expert, is not known.
    """

    draws: Array
    plain: Array
    units: Units | None
    of_contexts: Array
    of_experts: Array

    @property
    def expected(self) -> Array:
        """The posterior expectation (N), in the goal's units and the user's direction."""
        return self._shown(self.plain.mean(axis=1))

    def quantile(self, level: float) -> Array:
        turned = self.units is not None and self.units.sign < 0
        return self._shown(np.quantile(self.draws, 1.0 - level if turned else level, axis=1))

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        """Half-widths of the 95 % interval from f, the law and the experts (N each), which add in squares: what the
        last two do not explain is of f."""
        half = 0.5 * np.abs(self.quantile(0.975) - self.quantile(0.025))
        law, experts = (np.abs(self._shown(part)) for part in (self.of_contexts, self.of_experts))
        return np.sqrt(np.clip(half**2 - law**2 - experts**2, 0.0, None)), law, experts

    def _shown(self, values: Array) -> Array:
        return values if self.units is None else self.units.to_user(values)


def goal_values(
    model_goal: ModelGoal, model: Ensemble, points: ContextPoints, effective: float, x: Tensor, trust: Trust, seed: int
) -> GoalValues:
    """At designs ``x`` (N × d_x) under the law of ``points``, known as from ``effective`` contexts, with the support
    that matters for each design."""
    count = FEW_DRAWS if len(x) > MANY or isinstance(model_goal.goal, Robust) else DRAWS
    worlds = _Worlds(model, points, effective, trust, count, seed)
    belief = model_goal.belief(model, points)
    reduce = model_goal.modelled_value if model_goal.goal.of_outcomes else model_goal.value
    found = []
    with torch.no_grad():
        for design in x:
            near = belief.near(design[None]).points
            if near is not points:  # what matters for the mean of f need not be what matters for a draw of it
                near = replace(near, support=torch.cat([near.support, points.support]))
            outcomes, means = worlds.outcomes(design, near.all)
            values = torch.empty(outcomes.shape[:2], dtype=outcomes.dtype)
            centers = []
            for k, weights in enumerate(worlds.laws):
                law = replace(near, weights=weights)
                values[:, k::LAWS] = reduce(outcomes[:, k::LAWS], law)
                centers.append(reduce(means, law))
            found.append((*values.numpy(), *_parts(torch.stack(centers), reduce(means, near), worlds.shares)))
    draws, plain, *parts = (np.stack(part) for part in zip(*found, strict=True)) if found else _NOTHING
    return GoalValues(draws, plain, model_goal.units if model_goal.goal.of_outcomes else None, *parts)


def shares_within(
    model_goal: ModelGoal, model: Ensemble, points: ContextPoints, x: Tensor, trust: Trust, seed: int
) -> Array:
    """Draws of the share of contexts of ``points`` in which a limit holds at designs ``x`` (N × d_x): N × draws.

    ``model_goal`` is 1 where it holds. Only f is drawn, with the tails that the model's record asks for.
    """
    worlds = _Worlds(model, points, math.inf, trust, FEW_DRAWS if len(x) > MANY else DRAWS, seed)
    with torch.no_grad():
        drawn = [worlds.outcomes(design, points.atoms)[0][0] for design in x]
        return torch.stack([model_goal.value(outcomes, points) for outcomes in drawn]).numpy()


_NOTHING = (np.zeros((0, DRAWS)), np.zeros((0, DRAWS)), np.zeros(0), np.zeros(0))


def _parts(centers: Tensor, own: Tensor, shares: Tensor) -> tuple[float, float]:
    """95 % half-widths of law and experts from the values at the experts' means: laws × M, and M for the mean law."""
    of_law = (shares * centers.var(0, correction=1)).sum().sqrt()
    of_experts = (shares * (own - (shares * own).sum()).square()).sum().sqrt()
    return Z95 * float(of_law), Z95 * float(of_experts)


class _Worlds:
    """The draws that all designs share: which expert, standard normals, laws, and how far the model's scale is off."""

    def __init__(
        self, model: Ensemble, points: ContextPoints, effective: float, trust: Trust, count: int, seed: int
    ) -> None:
        self.model, self.count, self.seed = model, count, seed
        experts = model.num_experts
        self.shares = points.weights.new_full((experts,), 1.0 / experts) if model.weights is None else model.weights
        self.ends = np.round(np.cumsum([0.0, *self.shares.tolist()]) * count).astype(int).tolist()  # quotas, not lots
        freedom = max(trust.freedom, LEAST_FREEDOM)
        scale = freedom / stream(seed, "scale").chisquare(freedom, (count, 1))
        self.stretch = torch.from_numpy(trust.stretch * np.sqrt(scale))
        self.laws = LawBelief(points.atoms, points.weights, effective).small_sample().draw(LAWS, seed)

    def outcomes(self, design: Tensor, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """Outcomes of a design (d_x) in these contexts: drawn, with tails and plain (2 × draws × n), and each expert's
        means (M × n)."""
        joint = torch.cat([design.expand(len(contexts), -1), contexts], dim=-1)
        mean, covariance = self.model.gp.posterior(joint)  # M × n and M × n × n
        roots = safe_cholesky(covariance)
        noise = torch.from_numpy(stream(self.seed, "goal").standard_normal((self.count, len(joint))))
        spans = [slice(start, end) for start, end in itertools.pairwise(self.ends)]
        apart = torch.cat([noise[span] @ roots[m].mT for m, span in enumerate(spans)])
        center = torch.cat([mean[m].expand(span.stop - span.start, -1) for m, span in enumerate(spans)])
        spread = covariance.diagonal(dim1=-2, dim2=-1).clamp_min(0.0).sqrt()
        drawn = torch.stack([center + self.stretch * apart, center + apart])
        return self.model.scaling.value(drawn), self.model.scaling.moments(mean, spread)[0]
