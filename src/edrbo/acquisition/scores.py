"""Scores s(x, c) of the experts' posterior at (x, c): upper confidence bounds.

β multiplies the standard deviation (BoTorch's ``UpperConfidenceBound`` multiplies it by √β: do not mix the two).
It is a number, or ``"theory"``: the value of Lemma 1 for the data at hand, which is meant for study more than for use
(see ``confidence.TheoryBeta``, which also takes the constants the lemma asks for).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from edrbo.acquisition.confidence import TheoryBeta
from edrbo.errors import InvalidValueError
from edrbo.surrogate.ensemble import ExpertEnsemble, barycenter, radius

BETA = 1.5  # the paper's choice in every experiment
BETA_EACH = 1.0  # of f at each context, which is less sure than its mean (research/journal.md)
SQRT2 = math.sqrt(2.0)

Beta = float | Literal["theory"] | TheoryBeta


class Score(ABC):
    """s from the experts' marginal means and standard deviations, both ... × M × N; gives ... × N.

    ``weights`` (M) are the experts' in the barycenter; it is passed only when they are not equal. With
    ``integrated`` the score is that of the experts' beliefs about F(x) = Σ_j w_j f(x, c_j), not about f at each
    (x, c_j).
    """

    uses_context = True  # False: the surrogate is a model of x alone and contexts are ignored
    integrated: bool = False

    @abstractmethod
    def __call__(self, mean: Tensor, sd: Tensor, weights: Tensor | None = None) -> Tensor: ...

    def value_and_slopes(
        self, mean: Tensor, sd: Tensor, weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """s (N), ∂s/∂mean and ∂s/∂sd (M × N). By autograd, unless a score knows better."""
        with torch.enable_grad():
            mean, sd = mean.detach().requires_grad_(), sd.detach().requires_grad_()
            value = self(mean, sd) if weights is None else self(mean, sd, weights)
            by_mean, by_sd = torch.autograd.grad(value.sum(), [mean, sd], materialize_grads=True)
        return value.detach(), by_mean, by_sd

    def per_context(self) -> Score:
        """The same about f at each (x, c), where it is ``integrated``."""
        return self

    def at(self, model: ExpertEnsemble) -> Score:
        """The score once the data are known: whatever depends on them becomes a number."""
        return self


@dataclass(frozen=True)
class UCB(Score):
    """u = μ + β σ of one GP; of an ensemble, that of its barycenter."""

    beta: Beta = BETA
    integrated: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.beta, str) and self.beta != "theory":
            raise InvalidValueError(f"beta is {self.beta!r}", 'give a number, or "theory"')

    def __call__(self, mean: Tensor, sd: Tensor, weights: Tensor | None = None) -> Tensor:
        if isinstance(self.beta, str | TheoryBeta):
            raise InvalidValueError(f"beta is {self.beta!r}, which depends on the data", "use score.at(model)")
        center, spread = barycenter(mean, sd, weights)
        return center + self.beta * spread

    def value_and_slopes(
        self, mean: Tensor, sd: Tensor, weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        value = self(mean, sd, weights)
        assert isinstance(self.beta, float | int)
        share = torch.full_like(mean, 1.0 / mean.shape[-2]) if weights is None else weights[:, None].expand_as(mean)
        return value, share, self.beta * share

    def per_context(self) -> UCB:
        """The same optimism, about f at each (x, c)."""
        return replace(self, integrated=False)

    def at(self, model: ExpertEnsemble) -> UCB:
        rule = TheoryBeta() if isinstance(self.beta, str) else self.beta
        return replace(self, beta=rule(model)) if isinstance(rule, TheoryBeta) else self


@dataclass(frozen=True)
class MeanUCB(UCB):
    """μ̄_F + β σ̄_F: optimism about what a design is worth, its mean over contexts, and not about f at each of them.

    Under goals that look at each context by itself it is optimistic about f there, with ``beta_each``.
    """

    beta_each: float = BETA_EACH
    integrated: bool = field(default=True, kw_only=True)

    def per_context(self) -> UCB:
        return UCB(self.beta_each)


@dataclass(frozen=True)
class DesignUCB(UCB):
    """μ + β σ of a GP on x alone: the context is treated as noise."""

    uses_context = False


@dataclass(frozen=True)
class BarycenterUCB(UCB):
    """EDRBO: μ̄ + β σ̄ − √2 ε̂, the radius taken at each (x, c)."""

    radius_weight: float = SQRT2

    def __call__(self, mean: Tensor, sd: Tensor, weights: Tensor | None = None) -> Tensor:
        upper = super().__call__(mean, sd, weights)
        return upper if self.radius_weight == 0 else upper - self.radius_weight * radius(mean, sd, weights)

    def value_and_slopes(
        self, mean: Tensor, sd: Tensor, weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        if weights is not None:  # the radius of weighted experts is left to autograd
            return Score.value_and_slopes(self, mean, sd, weights)
        value, by_mean, by_sd = UCB(self.beta).value_and_slopes(mean, sd)
        if self.radius_weight == 0:
            return value, by_mean, by_sd
        center, spread = barycenter(mean, sd)
        from_mean, from_sd = mean - center, sd - spread
        squared, farthest = (from_mean.square() + from_sd.square()).max(dim=0, keepdim=True)
        apart = squared.sqrt()
        # ∂ε̂/∂μ_m = (μ_far − μ̄)/ε̂ · (1[m = far] − 1/M), and the same for σ; zero where all experts agree
        scale = torch.where(squared > 1e-300, -self.radius_weight / apart, 0.0)
        along_mean, along_sd = scale * from_mean.gather(0, farthest), scale * from_sd.gather(0, farthest)
        count = mean.shape[0]
        by_mean = (by_mean - along_mean / count).scatter_add_(0, farthest, along_mean)
        by_sd = (by_sd - along_sd / count).scatter_add_(0, farthest, along_sd)
        return value - self.radius_weight * apart.squeeze(0), by_mean, by_sd
