"""The design to use, with what is believed of it: a value with its uncertainty, not the luckiest observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.acquisition import CHUNK
from edrbo.acquisition.score import SQRT2
from edrbo.optimizer.admissible import LEAST_SUCCESS, best_admissible
from edrbo.optimizer.belief import Belief
from edrbo.space import Space
from edrbo.surrogate.ensemble import radius

Z95 = 1.959963984540054  # standard normal quantile of 97.5 %


@dataclass(frozen=True)
class Recommendation:
    """What to set, and what to expect. Values are in the user's units and direction.

    goal                what the design is best for, as text, and its ``title`` in words
    value               posterior expectation of the goal's value, with its central 95 % ``value_interval`` (what is not
                        known of f; the law is taken as given)
    price               mean, mean of the worst 10 % of contexts, and worst mean in the ball, of ``recommended`` and of
                        the design that is best ``on average``: what robustness costs and buys
    expected            posterior mean of E_c f(x, c) under the context law
    interval            its central 95 % posterior interval (uncertainty of f; the law is taken as given)
    robust              ``expected`` made worse by √2 × the mean disagreement of the experts
    worst_case          the worst expected value when the context law moves by at most ``ball``: at or beyond this with
                        95 % probability, so that contexts nobody has seen count as what they are, unknown
    ball                Wasserstein-1 distance, as a fraction of the context ranges
    disagreement        mean over contexts of ε̂(x, c), the experts' distance from their barycentre
    context_effect      per context variable: standard deviation of f(x, c) due to it alone
    law_error           Wasserstein-2 distance of the context atoms used from the law they stand for, coded
    success             probability that an evaluation of the design succeeds; None as long as none has failed
    """

    design: dict[str, Any]
    goal: str
    title: str
    value: float
    value_interval: tuple[float, float]
    price: dict[str, dict[str, float]]
    expected: float
    interval: tuple[float, float]
    robust: float
    worst_case: float
    ball: float
    disagreement: float
    context_effect: dict[str, float]
    law_error: float
    observations: int
    success: float | None = None


@dataclass(frozen=True, eq=False)
class Prediction:
    """Beliefs about the expected value of n designs, in the user's units: arrays of length n.

    ``lower`` and ``upper`` bound the central 95 % posterior interval of E_c f(x, c). ``value``, ``value_lower`` and
    ``value_upper`` are the same for the goal's value (its posterior expectation), in the goal's units.
    """

    expected: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    disagreement: NDArray[np.float64]
    value: NDArray[np.float64]
    value_lower: NDArray[np.float64]
    value_upper: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DesignBeliefs:
    """Beliefs about E_c f(x, c) at N designs, in the model's units (maximization): N each."""

    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    disagreement: NDArray[np.float64]

    @property
    def robust(self) -> NDArray[np.float64]:
        return self.mean - SQRT2 * self.disagreement


def best_design(
    belief: Belief, space: Space, starts: Tensor, seed: int, least_success: float = LEAST_SUCCESS
) -> Tensor:
    """The design (d_x) that is believed to be best under the aim, less a little for what is not known, among those that
    succeed with a probability of ``least_success``."""
    value = belief.aim.belief(belief.model, belief.points)
    return best_admissible(value.ladder(), belief, space, starts, seed, least_success, kinks=value.has_kinks)


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
