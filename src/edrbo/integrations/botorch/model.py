"""The expert ensemble as a BoTorch ``Model``: its posterior is the Wasserstein barycenter of the experts."""

from __future__ import annotations

from typing import Any

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import FantasizeMixin, Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.posteriors.posterior import Posterior
from gpytorch.constraints import Positive
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import GaussianLikelihood
from torch import Tensor

from edrbo.surrogate import ensemble as engine
from edrbo.surrogate.ensemble import Surrogate
from edrbo.threads import engine_threads


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
