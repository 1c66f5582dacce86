"""The design to use, with what is believed of it: a value with its uncertainty, not the luckiest observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.acquisition import CHUNK, RobustAcquisition
from edrbo.acquisition.functional import Expectation, Wasserstein
from edrbo.acquisition.maximizer import maximize
from edrbo.acquisition.score import SQRT2, UCB
from edrbo.context.laws import ContextPoints, box_points
from edrbo.optimizer.belief import Belief
from edrbo.space import Space
from edrbo.surrogate.ensemble import radius

Z95 = 1.959963984540054  # standard normal quantile of 97.5 %
CAUTION = 0.1  # standard deviations of f taken off when designs are compared: of two equal means, the surer one
SUPPORT = 128  # points of the context box that the worst case may move to


@dataclass(frozen=True)
class Recommendation:
    """What to set, and what to expect. Values are in the user's units and direction.

    expected            posterior mean of E_c f(x, c) under the context law
    interval            its central 95 % posterior interval (uncertainty of f; the law is taken as given)
    robust              ``expected`` made worse by √2 × the mean disagreement of the experts
    worst_case          the worst expected value when the context law moves by at most ``ball``
    ball                Wasserstein-1 distance, as a fraction of the context ranges
    disagreement        mean over contexts of ε̂(x, c), the experts' distance from their barycentre
    context_effect      per context variable: standard deviation of f(x, c) due to it alone
    law_error           Wasserstein-2 distance of the context atoms used from the law they stand for, coded
    """

    design: dict[str, Any]
    expected: float
    interval: tuple[float, float]
    robust: float
    worst_case: float
    ball: float
    disagreement: float
    context_effect: dict[str, float]
    law_error: float
    observations: int


@dataclass(frozen=True, eq=False)
class Prediction:
    """Beliefs about the expected value of n designs, in the user's units: arrays of length n.

    ``lower`` and ``upper`` bound the central 95 % posterior interval of E_c f(x, c).
    """

    expected: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    disagreement: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DesignBeliefs:
    """Beliefs about E_c f(x, c) at N designs, in the model's units (maximization): N each."""

    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    disagreement: NDArray[np.float64]

    @property
    def robust(self) -> NDArray[np.float64]:
        return self.mean - SQRT2 * self.disagreement


def best_design(belief: Belief, space: Space, starts: Tensor, seed: int) -> Tensor:
    """The design (d_x) with the largest posterior mean of the expected value, less a little for what is not known."""
    mean = RobustAcquisition(belief.model, UCB(beta=-CAUTION), belief.points, Expectation())
    return maximize(mean.ladder(), space, seed=seed, starts=starts).x


def design_beliefs(belief: Belief, x: Tensor) -> DesignBeliefs:
    """Each expert's belief about Σ_j w_j f(x, c_j) is Gaussian; this is the barycentre of those, at ``x`` (N × d_x)."""
    atoms, weights, model = belief.points.atoms, belief.points.weights, belief.model
    paired, parts = model.paired_with(atoms), []
    rows = max(1, CHUNK // (model.num_experts * len(atoms) * model.gp.x.shape[-2]))
    with torch.no_grad():
        for some in torch.split(x, rows):
            center, spread = model.barycenter(*paired.integrated(some, weights))
            apart = radius(*paired.moments(some), model.weights).reshape(len(some), len(atoms))
            parts.append(torch.stack([center, spread, apart @ weights]))
    return DesignBeliefs(*torch.cat(parts, dim=1).numpy())


def worst_case(belief: Belief, x: Tensor, ball: float, lower: Tensor, upper: Tensor) -> float:
    """The least mean over all laws within Wasserstein-1 distance ``ball`` of the context law."""
    points = ContextPoints(
        belief.points.atoms,
        belief.points.weights,
        box_points(lower, upper, SUPPORT) if len(lower) else belief.points.support,
    )
    with torch.no_grad():
        center, _ = belief.model.barycenter(*belief.model.moments(_joint(x, points.all)))
        return float(Wasserstein(ball, order=1)(center[None], points)[0])


def context_effects(belief: Belief, x: Tensor) -> list[float]:
    """Standard deviation of the main effect of each context variable at ``x``: Var_k(E[f | c_k])^½."""
    atoms, weights = belief.points.atoms, belief.points.weights
    effects = []
    with torch.no_grad():
        for k in range(atoms.shape[1]):
            mixed = atoms.repeat(len(atoms), 1)
            mixed[:, k] = atoms[:, k].repeat_interleave(len(atoms))
            center, _ = belief.model.barycenter(*belief.model.moments(_joint(x, mixed)))
            main = center.reshape(len(atoms), len(atoms)) @ weights
            effects.append(float(((main - main @ weights).square() @ weights).sqrt()))
    return effects


def _joint(x: Tensor, contexts: Tensor) -> Tensor:
    return torch.cat([x.expand(len(contexts), -1), contexts], dim=-1)
