"""The parts of edrbo as BoTorch knows such things: the ensemble as a ``Model`` whose posterior is the Wasserstein
barycenter of the experts, the acquisition as an ``AcquisitionFunction``, and stock models as surrogates of ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from edrbo.acquisition.acquisition import RobustAcquisition as EngineAcquisition
from edrbo.acquisition.risk import Functional
from edrbo.acquisition.scores import Score
from edrbo.contexts.distributions import ContextPoints
from edrbo.errors import InvalidValueError, MissingExtraError
from edrbo.surrogate import ensemble as engine
from edrbo.surrogate.ensemble import Surrogate
from edrbo.surrogate.gaussian_model import Differentiable, GaussianModel, PairedModel
from edrbo.threads import engine_threads

try:
    from botorch.acquisition.acquisition import AcquisitionFunction
    from botorch.acquisition.objective import PosteriorTransform
    from botorch.models.model import FantasizeMixin, Model
    from botorch.posteriors.gpytorch import GPyTorchPosterior
    from botorch.posteriors.posterior import Posterior
    from botorch.utils.transforms import t_batch_mode_transform
    from gpytorch.constraints import Positive
    from gpytorch.distributions import MultivariateNormal
    from gpytorch.likelihoods import GaussianLikelihood
except ModuleNotFoundError as problem:
    if str(problem.name).split(".")[0] not in ("botorch", "gpytorch", "linear_operator"):
        raise
    raise MissingExtraError("this part of edrbo needs BoTorch", "pip install 'edrbo[botorch]'") from None

__all__ = ["Ensemble", "RobustAcquisition", "StockModel"]


class Ensemble(FantasizeMixin, Model):
    """M experts fitted to one data set. Stock BoTorch acquisition functions work on it as on any model.

    >>> import torch
    >>> from edrbo.integrations.botorch import Ensemble
    >>> X = torch.rand(6, 2, dtype=torch.float64)
    >>> Ensemble.fit(X, X.sum(-1, keepdim=True)).posterior(X).mean.shape
    torch.Size([6, 1])
    """

    def __init__(self, experts: engine.ExpertEnsemble) -> None:
        """``experts`` is what a ``Surrogate`` fits, or ``Optimizer.model``."""
        super().__init__()
        self.experts = experts

    @classmethod
    @engine_threads()
    def fit(cls, X: Tensor, Y: Tensor, Yvar: Tensor | None = None, *, surrogate: Surrogate | None = None) -> Ensemble:
        """MAP fit to ``X`` (n × d, unit cube), ``Y`` (n × 1), known noise variances ``Yvar`` (n × 1, NaN if not)."""
        known = None if Yvar is None else Yvar.squeeze(-1)
        return cls((surrogate or Surrogate()).fit(X, Y.squeeze(-1), known))

    @property
    def num_outputs(self) -> int:
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        return self.experts.gp.x.shape[:-2]

    @property
    def train_inputs(self) -> tuple[Tensor]:
        return (self.experts.gp.x,)

    @property
    def likelihood(self) -> GaussianLikelihood:
        """Gaussian noise with the experts' mean variance, in units of y; BoTorch's fantasies ask for it."""
        gp = self.experts.gp
        likelihood = GaussianLikelihood(noise_constraint=Positive()).to(gp.y)
        likelihood.noise = self.experts.noise_at(torch.zeros_like(gp.hyper.noise_variance[0]))
        return likelihood

    @engine_threads()
    def posterior(  # type: ignore[override]
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Posterior:
        """The barycenter at ``X`` (... × q × d) as a plain Gaussian posterior in units of y."""
        given = isinstance(observation_noise, Tensor)
        center, joint = self.experts.joint(X, observed=not given and bool(observation_noise))
        if isinstance(observation_noise, Tensor):
            joint = joint + torch.diag_embed(observation_noise.squeeze(-1).expand(center.shape))
        posterior = GPyTorchPosterior(MultivariateNormal(center, joint))
        return posterior if posterior_transform is None else posterior_transform(posterior)

    @engine_threads()
    def condition_on_observations(self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **kwargs: Any) -> Ensemble:
        """A new model that has also seen ``X`` (... × q × d), ``Y`` (... × q × 1) at the same hyper-parameters."""
        values, q, scaling = Y.squeeze(-1), X.shape[-2], self.experts.scaling
        known = None if noise is None else scaling.noise_variance(noise.reshape(-1)[:q], values.reshape(-1, q).mean(0))
        return Ensemble(self.experts.with_modelled(X, scaling.standardize(values), known))

    def transform_inputs(self, X: Tensor, input_transform: Any = None) -> Tensor:
        """Inputs are already in the unit cube; BoTorch's fantasies ask for this hook."""
        return X


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


class RobustAcquisition(AcquisitionFunction):
    """α(x) = functional_c s(x, c).

    ``model`` is an ensemble (the fast path) or any single-output BoTorch model on (x, c); the last d_c inputs are the
    context. Inputs and contexts are in the coding the model was trained on.
    """

    def __init__(
        self, model: Model | engine.ExpertEnsemble, score: Score, points: ContextPoints, functional: Functional
    ) -> None:
        model = Ensemble(model) if isinstance(model, engine.ExpertEnsemble) else model
        super().__init__(model=model)
        beliefs = model.experts if isinstance(model, Ensemble) else StockModel(model)
        self.engine = EngineAcquisition(beliefs, score, points, functional)
        self.set_X_pending(None)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    @engine_threads()
    def forward(self, X: Tensor) -> Tensor:
        """``X`` is b × 1 × d_x; gives b values."""
        return self.engine.evaluate(X.reshape(-1, X.shape[-1])).reshape(X.shape[:-2])
