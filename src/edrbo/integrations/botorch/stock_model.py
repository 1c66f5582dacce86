"""A stock BoTorch model as our acquisition wants its beliefs: an ensemble of one expert."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from botorch.models.model import Model
from torch import Tensor

from edrbo.errors import InvalidValueError
from edrbo.surrogate.gaussian_model import Differentiable, GaussianModel, PairedModel

MIN_VARIANCE = 1e-20  # keeps σ and its gradient finite at the data


@dataclass(frozen=True, eq=False)
class StockModel(GaussianModel):
    """Of any single-output BoTorch model on (x, c) whose posterior is Gaussian."""

    model: Model

    def __post_init__(self) -> None:
        if self.model.num_outputs != 1:
            raise InvalidValueError(
                f"the model has {self.model.num_outputs} outputs", "an acquisition is about one: take a part of it"
            )

    @property
    def weights(self) -> None:
        return None

    @property
    def width(self) -> int:
        return 0

    def rough(self) -> StockModel:
        return self

    def paired_with(self, contexts: Tensor) -> PairedStock:
        return PairedStock(self.model, contexts)


@dataclass(frozen=True, eq=False)
class PairedStock(PairedModel):
    """A BoTorch model on (x, c) with fixed contexts (m × d_c); M = 1, gradients by autograd."""

    model: Model
    contexts: Tensor

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        posterior: Any = self.model.posterior(self._pairs(x).reshape(-1, 1, x.shape[1] + self.contexts.shape[1]))
        return posterior.mean.reshape(1, -1), posterior.variance.reshape(1, -1).clamp_min(MIN_VARIANCE).sqrt()

    def moments_and_pullback(self, x: Tensor) -> Differentiable:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return _with_pullback(x, *self.moments(x))

    def integrated(self, x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        posterior: Any = self.model.posterior(self._pairs(x))
        weights = weights.expand(len(x), -1).unsqueeze(-1)
        mean = (posterior.mean * weights).sum((-2, -1))
        variance = (weights.mT @ posterior.distribution.covariance_matrix @ weights).squeeze((-2, -1))
        return mean[None], variance[None].clamp_min(MIN_VARIANCE).sqrt()

    def integrated_and_pullback(self, x: Tensor, weights: Tensor) -> Differentiable:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return _with_pullback(x, *self.integrated(x, weights))

    def _pairs(self, x: Tensor) -> Tensor:
        """Every design with every context: N × m × (d_x + d_c)."""
        shape = (len(x), len(self.contexts), -1)
        return torch.cat([x.unsqueeze(1).expand(shape), self.contexts.expand(shape)], dim=-1)


def _with_pullback(x: Tensor, mean: Tensor, sd: Tensor) -> Differentiable:
    def pullback(grad_mean: Tensor, grad_sd: Tensor) -> Tensor:
        (gradient,) = torch.autograd.grad([mean, sd], x, [grad_mean, grad_sd], retain_graph=True)
        return gradient

    return mean.detach(), sd.detach(), pullback
