"""The expert ensemble as a BoTorch ``Model``: its posterior is the Wasserstein barycentre of the experts.

    paper       here                    meaning
    μ_m, σ_m    expert_moments(X)       each expert's posterior, ... × M × q
    μ̄, σ̄        barycenter(mean, sd)    mean over the experts of μ_m and of σ_m
    ε̂           radius(mean, sd)        max_m √((μ_m − μ̄)² + (σ_m − σ̄)²)

The joint posterior of q > 1 points keeps the barycentre's marginals and averages the experts' correlations; so it
is positive semi-definite, consistent under marginalization, and equal to the expert when all experts agree.
(The barycentre of the joint Gaussians themselves has no closed form and is not marginally consistent.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import FantasizeMixin, Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.posteriors.posterior import Posterior
from gpytorch.constraints import Positive
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import GaussianLikelihood
from torch import Tensor

from edrbo.surrogate.exact_gp import ExactGP, Hyperparameters, PairedGP, Pullback
from edrbo.surrogate.fit import Likelihood, default_theta, fit, pack, profile_mean
from edrbo.surrogate.kernels import EXPERTS, get_kernel
from edrbo.surrogate.priors import Priors, dimension_scaled, ensemble_priors
from edrbo.surrogate.scaling import Scaling, Warping

Weighting = Literal["equal", "evidence"]


@dataclass(frozen=True)
class Surrogate:
    """What to fit: which experts, under which priors. ``fit`` makes an ``Ensemble`` of it.

    The barycentre takes the experts alike, or each by its ``evidence``: its share of the marginal likelihood.
    """

    experts: tuple[str, ...] = EXPERTS
    priors: Callable[[int], Priors] = ensemble_priors
    weighting: Weighting = "equal"

    def fit(
        self,
        X: Tensor,
        Y: Tensor,
        Yvar: Tensor | None = None,
        *,
        start: Hyperparameters | None = None,
        cold: bool = True,
    ) -> Ensemble:
        """MAP fit to ``X`` (n × d, unit cube), ``Y`` (n), known noise variances ``Yvar`` (n, NaN if unknown).

        The search begins at ``start``, the hyper-parameters of an earlier fit, and, if ``cold`` or without one, at the
        priors' modes.
        """
        return self._fit(X, Y, Yvar, Scaling.of(Y), start, cold)

    def at(self, X: Tensor, Y: Tensor, Yvar: Tensor | None, hyper: Hyperparameters) -> Ensemble:
        """Condition on the data at given covariance parameters; the constant mean is profiled."""
        return self._at(X, Y, Yvar, hyper, self._scaling(Y, hyper))

    def extend(self, model: Ensemble, X: Tensor, Y: Tensor, Yvar: Tensor | None = None) -> Ensemble:
        """``model`` with the rows of ``X`` (n × d) it lacks added to its factors, re-standardized to all of ``Y``.

        Hyper-parameters stay; equals ``at`` on all the data to rounding, at O(n²) a row. Known noise is in units of y,
        so with the standardization the old rows of the factors change too: then they are rebuilt.
        """
        scaling = model.scaling.again(Y)
        if Yvar is not None and not bool(Yvar.isnan().all()):
            return self._at(X, Y, Yvar, model.gp.hyper, scaling)
        old, standardized = model.gp.x.shape[-2], scaling.standardize(Y)
        return self._with_mean(model.gp.extend(X[old:], standardized[old:]), standardized, scaling)

    def _fit(
        self, X: Tensor, Y: Tensor, Yvar: Tensor | None, scaling: Scaling, start: Hyperparameters | None, cold: bool
    ) -> Ensemble:
        kernels = tuple(get_kernel(name) for name in self.experts)
        priors = self.priors(X.shape[-1])
        likelihood = Likelihood(X, scaling.standardize(Y), scaling.noise(Yvar, Y), priors)
        theta = default_theta(kernels, X.shape[-1], priors)
        if start is not None:
            theta = torch.cat([pack(start), theta]) if cold else pack(start)
        return self._at(X, Y, Yvar, fit(kernels, likelihood, theta), scaling)

    def _at(self, X: Tensor, Y: Tensor, Yvar: Tensor | None, hyper: Hyperparameters, scaling: Scaling) -> Ensemble:
        kernels = tuple(get_kernel(name) for name in self.experts)
        standardized = scaling.standardize(Y)
        gp = ExactGP.condition(kernels, hyper, X, standardized, scaling.noise(Yvar, Y))
        return self._with_mean(gp, standardized, scaling)

    def _with_mean(self, gp: ExactGP, standardized: Tensor, scaling: Scaling) -> Ensemble:
        mean = profile_mean(gp.chol, standardized, self.priors(gp.x.shape[-1]).mean_sd)
        return Ensemble(gp.with_outcomes(standardized, mean), scaling, self.weighting)

    def _scaling(self, Y: Tensor, hyper: Hyperparameters) -> Scaling:
        """What belongs to the outcomes of a fit with these hyper-parameters."""
        return Scaling.of(Y)


def single_gp() -> Surrogate:
    """One squared-exponential GP under BoTorch's dimension-scaled priors, as the published baselines used."""
    return Surrogate(experts=("se",), priors=dimension_scaled)


def barycenter(mean: Tensor, sd: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Wasserstein-2 barycentre of M one-dimensional Gaussians: weighted means over the expert dimension (−2)."""
    if weights is None:
        return mean.mean(-2), sd.mean(-2)
    return (weights.unsqueeze(-1) * mean).sum(-2), (weights.unsqueeze(-1) * sd).sum(-2)


def radius(mean: Tensor, sd: Tensor, weights: Tensor | None = None) -> Tensor:
    """ε̂: the largest W₂ distance of an expert from the barycentre; ``mean``, ``sd`` are ... × M × N.

    The sub-gradient goes through the arg-max expert; the root is guarded where all experts agree. An expert whose
    weight is below its equal share 1/M is heard that much less.
    """
    center, spread = barycenter(mean, sd, weights)
    squared = (mean - center.unsqueeze(-2)).square() + (sd - spread.unsqueeze(-2)).square()
    if weights is not None:
        squared = squared * (weights.shape[-1] * weights).clamp_max(1.0).square().unsqueeze(-1)
    largest = squared.amax(-2) if not squared.requires_grad else squared.max(dim=-2).values
    positive = largest > 1e-300
    return torch.where(positive, torch.where(positive, largest, 1.0).sqrt(), 0.0)


class Ensemble(FantasizeMixin, Model):
    """M experts fitted to one data set. Stock BoTorch acquisition functions work on it as on any model."""

    def __init__(self, gp: ExactGP, scaling: Scaling, weighting: Weighting = "equal") -> None:
        super().__init__()
        self.gp = gp
        self.scaling = scaling
        self.weighting = weighting

    @cached_property
    def weights(self) -> Tensor | None:
        """Each expert's weight in the barycentre (... × M); None when they are equal."""
        return None if self.weighting == "equal" else self.gp.log_evidence().softmax(-1)

    def barycenter(self, mean: Tensor, sd: Tensor) -> tuple[Tensor, Tensor]:
        """Of the experts' moments (... × M × N), each as much as it weighs."""
        return barycenter(mean, sd, self.weights)

    @property
    def num_outputs(self) -> int:
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        return self.gp.x.shape[:-2]

    @property
    def num_experts(self) -> int:
        return len(self.gp.kernels)

    def expert(self, m: int) -> Ensemble:
        """Expert m alone."""
        return Ensemble(self.gp.expert(m), self.scaling, self.weighting)

    @property
    def train_inputs(self) -> tuple[Tensor]:
        return (self.gp.x,)

    @property
    def likelihood(self) -> GaussianLikelihood:
        """Gaussian noise with the experts' mean variance, in units of y; BoTorch's fantasies ask for it."""
        likelihood = GaussianLikelihood(noise_constraint=Positive()).to(self.gp.y)
        likelihood.noise = self._noise_at(torch.zeros_like(self.gp.hyper.noise[0]))
        return likelihood

    def _noise_at(self, modelled: Tensor) -> Tensor:
        """Variance of the noise in units of y where the modelled value is this."""
        return self.gp.hyper.noise.mean() * self.scaling.slope(modelled).square()

    def moments(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Each expert's marginal mean and standard deviation at ``points`` (N × d): M × N, in units of y. Fast."""
        return self.scaling.moments(*self.gp.moments(points))

    def paired_with(self, contexts: Tensor) -> PairedEnsemble:
        """The model on all pairs of any designs with these contexts (m × d_c)."""
        return PairedEnsemble(self.gp.paired_with(contexts), self.scaling)

    def expert_moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The same for any batch shape: ``X`` (... × q × d) gives two ... × M × q tensors; twice differentiable."""
        mean, covariance = self.gp.posterior(X)
        variance = covariance.diagonal(dim1=-2, dim2=-1).clamp_min(1e-14)
        return self.scaling.moments(mean, variance.sqrt())

    def posterior(  # type: ignore[override]
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Posterior:
        """The barycentre at ``X`` (... × q × d) as a plain Gaussian posterior in units of y."""
        mean, covariance = self.gp.posterior(X)
        variance = covariance.diagonal(dim1=-2, dim2=-1).clamp_min(1e-14)
        sd = variance.sqrt()
        correlations = covariance / (sd.unsqueeze(-1) * sd.unsqueeze(-2))
        weights = self.weights
        correlation = correlations.mean(-3) if weights is None else (weights[..., None, None] * correlations).sum(-3)
        center, spread = self.barycenter(*self.scaling.moments(mean, sd))
        joint = correlation * spread.unsqueeze(-1) * spread.unsqueeze(-2)
        if isinstance(observation_noise, Tensor):
            joint = joint + torch.diag_embed(observation_noise.squeeze(-1).expand(center.shape))
        elif observation_noise:
            joint = joint + torch.diag_embed(self._noise_at(self.barycenter(mean, sd)[0]))
        posterior = GPyTorchPosterior(MultivariateNormal(center, joint))
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def condition_on_observations(self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **kwargs: Any) -> Ensemble:
        """A new model that has also seen ``X`` (... × q × d), ``Y`` (... × q × 1) at the same hyper-parameters."""
        values, q = Y.squeeze(-1), X.shape[-2]
        known = None if noise is None else self.scaling.noise(noise.reshape(-1)[:q], values.reshape(-1, q).mean(0))
        return self.with_modelled(X, self.scaling.standardize(values), known)

    def with_modelled(self, X: Tensor, y: Tensor, noise: Tensor | None = None) -> Ensemble:
        """The same for outcomes ``y`` (... × q) and noise variances (q) as the experts see them, standardized."""
        return Ensemble(self.gp.extend(X, y, noise), self.scaling, self.weighting)

    def transform_inputs(self, X: Tensor, input_transform: Any = None) -> Tensor:
        """Inputs are already in the unit cube; BoTorch's fantasies ask for this hook."""
        return X


@dataclass(frozen=True, eq=False)
class PairedEnsemble:
    """An ensemble on (x, c) with fixed contexts, as a function of the design; in units of y.

    Faster than the ensemble itself, since what belongs to the contexts is worked out once.
    """

    gp: PairedGP
    scaling: Scaling

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Each expert's mean and standard deviation at every design ``x`` (N × d_x) in every context: M × (N·m), the
        context running fastest."""
        return self.scaling.moments(*self.gp.moments(x))

    def moments_and_pullback(self, x: Tensor) -> tuple[Tensor, Tensor, Pullback]:
        """``moments``, and the function that takes ∂/∂mean and ∂/∂sd to ∂/∂x (N × d_x)."""
        return self._with_units(*self.gp.moments_and_pullback(x))

    def integrated(self, x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Each expert's belief about Σ_j w_j f(x, c_j), weights m or N × m: mean and standard deviation, M × N.

        Of warped outcomes its variance is Σ_ij w_i w_j σ_i σ_j ρ_ij, with the standard deviations of f and the
        correlations of the modelled values; then it has no gradient.
        """
        if isinstance(self.scaling, Warping):
            return self._integrated_warped(x.detach(), weights, self.scaling)
        return self.scaling.moments(*self.gp.integrated(x, weights))

    def integrated_and_pullback(self, x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Pullback]:
        """``integrated`` of outcomes that are not warped, with its pullback."""
        assert not isinstance(self.scaling, Warping)
        return self._with_units(*self.gp.integrated_and_pullback(x, weights))

    def _with_units(self, mean: Tensor, sd: Tensor, pullback: Pullback) -> tuple[Tensor, Tensor, Pullback]:
        center, spread, to_modelled = self.scaling.moments_and_pullback(mean, sd)
        return center, spread, lambda grad_mean, grad_sd: pullback(*to_modelled(grad_mean, grad_sd))

    def _integrated_warped(self, x: Tensor, weights: Tensor, scaling: Warping) -> tuple[Tensor, Tensor]:
        mean, sd = self.gp.moments(x)
        center, spread = scaling.moments(mean, sd)
        stretched = weights * (spread / sd).reshape(len(sd), len(x), -1)  # M × N × m
        spreads = [self.gp.expert(m).integrated(x, stretched[m])[1] for m in range(len(sd))]
        return (center.reshape(stretched.shape) * weights).sum(-1), torch.cat(spreads)
