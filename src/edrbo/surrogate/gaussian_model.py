"""The model protocol of acquisition functions: Gaussian posteriors of M experts of f(x, c), in units of y.

``Ensemble`` is one; ``edrbo.integrations.botorch`` makes one of any single-output BoTorch model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

Pullback = Callable[[Tensor, Tensor], Tensor]  # (∂/∂mean, ∂/∂sd) → ∂/∂x
Differentiable = tuple[Tensor, Tensor, Pullback]  # mean, sd and their pullback


def pairs(x: Tensor, contexts: Tensor) -> Tensor:
    """Every design (N × d_x) with every context (m × d_c): (N·m) × (d_x + d_c), the context running fastest."""
    return torch.cat([x.repeat_interleave(len(contexts), dim=0), contexts.repeat(len(x), 1)], dim=-1)


class PairedModel(ABC):
    """Beliefs on (x, c) with fixed contexts (m × d_c), as a function of the design; the last inputs are the context.

    Means and standard deviations can be differentiated once by autograd. Their pullbacks give the same gradients, and
    may do so without a graph.
    """

    @abstractmethod
    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Each expert's mean and standard deviation at every design ``x`` (N × d_x) in every context: M × (N·m), the
        context running fastest."""

    @abstractmethod
    def moments_and_pullback(self, x: Tensor) -> Differentiable:
        """``moments``, and the function that takes ∂/∂mean and ∂/∂sd to ∂/∂x (N × d_x)."""

    @abstractmethod
    def integrated(self, x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Each expert's belief about Σ_j w_j f(x, c_j), weights m or N × m: mean and standard deviation, M × N."""

    @abstractmethod
    def integrated_and_pullback(self, x: Tensor, weights: Tensor) -> Differentiable:
        """``integrated`` with its pullback."""


class GaussianModel(ABC):
    """Beliefs of M experts, each as much worth as its weight."""

    @property
    @abstractmethod
    def weights(self) -> Tensor | None:
        """Each expert's weight in the barycenter (M); None when they are equal."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers that are held for each (x, c) asked at once: who asks for many does so in parts. 0 is no matter."""

    @abstractmethod
    def rough(self) -> GaussianModel:
        """A cheap approximation that ranks designs much alike, for screening many of them."""

    def sparse(self) -> GaussianModel:
        """A cheaper approximation with nearly the same posterior, for searching; itself where there is none."""
        return self

    @abstractmethod
    def paired_with(self, contexts: Tensor) -> PairedModel:
        """The beliefs on all pairs of any designs with these contexts (m × d_c)."""
