"""What is asked of a posterior where the next design is chosen: of one outcome (``OutcomePosterior``) or several
(``JointPosterior``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

from torch import Tensor

from edrbo.acquisition.objective import Acquisition, Objective
from edrbo.contexts.distributions import ContextPoints
from edrbo.surrogate.ensemble import ExpertEnsemble


class Posterior(Protocol):
    """A model conditioned on everything known, and a distribution of contexts."""

    @property
    def model(self) -> ExpertEnsemble:
        """The surrogate of the main outcome."""

    @property
    def points(self) -> ContextPoints:
        """The distribution of the next context."""

    def for_suggestion(self, number: int) -> Self:
        """What the suggestion of this number is asked by."""

    def acquisition(self) -> Acquisition:
        """What the next design maximizes."""

    def feasible(self, approximations: Sequence[Objective]) -> list[Objective]:
        """``approximations``, less what the risk of failing costs."""

    def penalize_pending(self, approximations: Sequence[Objective]) -> list[Objective]:
        """``approximations``, away from what is being evaluated."""

    def values(self, x: Tensor) -> Tensor:
        """What designs ``x`` (N × d_x) are worth without optimism (N)."""

    def level(self, x: Tensor) -> float:
        """The best value that is had already with one of the designs ``x`` (N × d_x)."""

    def with_pending(self, x: Tensor) -> Self:
        """Once ``x`` (q × d_x) is being evaluated."""
