"""The parts of edrbo as BoTorch knows such things: the ensemble as a ``Model`` whose posterior is the Wasserstein
barycenter of the experts, the acquisition as an ``AcquisitionFunction``, and any model of BoTorch's as a surrogate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from edrbo.acquisition.acquisition import RobustAcquisition as EngineAcquisition
from edrbo.acquisition.risk import Functional
from edrbo.acquisition.scores import Score
from edrbo.contexts.distributions import ContextPoints
from edrbo.errors import InvalidValueError, MissingExtraError
from edrbo.surrogate import ensemble as engine
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate, Weighting
from edrbo.surrogate.exact_gp import ExactGP, noise_per_expert, safe_cholesky
from edrbo.surrogate.gaussian_model import Differentiable, GaussianModel, PairedModel, pairs
from edrbo.surrogate.kernels import Hyperparameters, Priors, dimension_scaled, ensemble_priors
from edrbo.surrogate.scaling import Scaling
from edrbo.threads import engine_threads

try:
    from botorch.acquisition.acquisition import AcquisitionFunction
    from botorch.acquisition.objective import PosteriorTransform
    from botorch.models.model import FantasizeMixin, Model
    from botorch.posteriors.fully_bayesian import GaussianMixturePosterior
    from botorch.posteriors.gpytorch import GPyTorchPosterior
    from botorch.posteriors.posterior import Posterior
    from botorch.settings import validate_input_scaling
    from botorch.utils.transforms import t_batch_mode_transform
    from gpytorch.constraints import Positive
    from gpytorch.distributions import MultivariateNormal
    from gpytorch.likelihoods import GaussianLikelihood
except ModuleNotFoundError as problem:
    if str(problem.name).split(".")[0] not in ("botorch", "gpytorch", "linear_operator"):
        raise
    raise MissingExtraError("this part of edrbo needs BoTorch", "pip install 'edrbo[botorch]'") from None

__all__ = ["BotorchSurrogate", "Ensemble", "RobustAcquisition", "StockModel"]


class Ensemble(FantasizeMixin, Model):
    """M experts fitted to one data set. Stock BoTorch acquisition functions work on it as on any model.

    Args:
        experts: The fitted experts; ``Ensemble.fit`` makes them.

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
MIN_NOISE = 1e-6  # of standardized outcomes, where predictions from the other outcomes are worked out
TOGETHER = 256  # points whose covariances are held at once
AS_IT_IS = Scaling(0.0, 1.0)


@dataclass(frozen=True, eq=False)
class StockPosterior:
    """The Gaussian posterior of a BoTorch model given further observations.

    A mixture of M posteriors (fully Bayesian models, ensembles) is M experts. ``rows`` (a × d) are the further
    observations, ``root`` (M × a × a) the factor of their covariance with noise, and ``gain`` (M × a) that
    covariance's solve of their errors.
    """

    model: Model
    only: int | None = None  # the member that counts; None: all
    rows: Tensor | None = None
    root: Tensor | None = None
    gain: Tensor | None = None

    def given(self, rows: Tensor, y: Tensor, noise_variance: Tensor) -> StockPosterior:
        """Once ``y`` (a) were seen at ``rows`` (a × d) as well, with ``noise_variance`` (M × a): replaces ``rows``."""
        with torch.no_grad():
            mean, covariance = StockPosterior(self.model, self.only).joint(rows)
            root = safe_cholesky(covariance + torch.diag_embed(noise_variance))
            gain = torch.cholesky_solve((y - mean).unsqueeze(-1), root).squeeze(-1)
        return StockPosterior(self.model, self.only, rows, root, gain)

    def expert(self, m: int) -> StockPosterior:
        """Member m alone."""
        row = slice(m, m + 1 or None)
        root, gain = (None if part is None else part[row] for part in (self.root, self.gain))
        return StockPosterior(self.model, m, self.rows, root, gain)

    def joint(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Mean (... × M × q) and covariance (... × M × q × q) at ``points`` (... × q × d)."""
        q = points.shape[-2]
        if self.rows is None:
            return self._of_model(points)
        beside = self.rows.expand(*points.shape[:-2], *self.rows.shape)
        mean, covariance = self._of_model(torch.cat([points, beside], dim=-2))
        assert self.root is not None
        assert self.gain is not None
        cross = covariance[..., :q, q:]
        half = torch.linalg.solve_triangular(self.root, cross.mT, upper=False)
        moved = (cross @ self.gain.unsqueeze(-1)).squeeze(-1)
        return mean[..., :q] + moved, covariance[..., :q, :q] - half.mT @ half

    def moments(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation (M × N each) at ``points`` (N × d), some at a time."""
        parts = [self.joint(part) for part in torch.split(points, TOGETHER)]
        means, variances = zip(*((mean, matrix.diagonal(dim1=-2, dim2=-1)) for mean, matrix in parts), strict=True)
        return torch.cat(means, dim=-1), torch.cat(variances, dim=-1).clamp_min(MIN_VARIANCE).sqrt()

    def _of_model(self, points: Tensor) -> tuple[Tensor, Tensor]:
        posterior = self.model.posterior(points)
        if not isinstance(posterior, GPyTorchPosterior):
            raise InvalidValueError(
                f"the posterior of {type(self.model).__name__} is a {type(posterior).__name__}, which is not Gaussian",
                "leave out outcome transforms that are not linear",
            )
        mean, covariance = posterior.mean.squeeze(-1), posterior.distribution.covariance_matrix
        if not isinstance(posterior, GaussianMixturePosterior):
            return mean.unsqueeze(-2), covariance.unsqueeze(-3)
        return (mean, covariance) if self.only is None else self._member(mean, covariance)

    def _member(self, mean: Tensor, covariance: Tensor) -> tuple[Tensor, Tensor]:
        assert self.only is not None
        row = slice(self.only, self.only + 1 or None)
        return mean[..., row, :], covariance[..., row, :, :]


@dataclass(frozen=True, eq=False)
class StockModel(GaussianModel):
    """Of any single-output BoTorch model on (x, c) whose posterior is Gaussian, or a mixture of Gaussians."""

    model: Model

    def __post_init__(self) -> None:
        _need_one_output(self.model)

    @property
    def weights(self) -> None:
        return None

    @property
    def width(self) -> int:
        return TOGETHER

    def rough(self) -> StockModel:
        return self

    def paired_with(self, contexts: Tensor) -> PairedStock:
        return PairedStock(StockPosterior(self.model), contexts)


def _need_one_output(model: Model) -> None:
    if model.num_outputs != 1:
        raise InvalidValueError(
            f"the model has {model.num_outputs} outputs",
            "an outcome is one: take a part of it; of a multi-task model say output_tasks",
        )


@dataclass(frozen=True, eq=False)
class PairedStock(PairedModel):
    """A BoTorch model on (x, c) with fixed contexts (m × d_c), gradients by autograd; ``scaling`` takes what it models
    to units of y."""

    posterior: StockPosterior
    contexts: Tensor
    scaling: Scaling = AS_IT_IS

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.scaling.moments(*self.posterior.moments(pairs(x, self.contexts)))

    def moments_and_pullback(self, x: Tensor) -> Differentiable:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return _with_pullback(x, *self.moments(x))

    def integrated(self, x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        joint = pairs(x, self.contexts).reshape(len(x), len(self.contexts), -1)
        means, covariance = self.posterior.joint(joint)  # N × M × m (× m)
        row = weights.expand(len(x), -1)[:, None]
        mean = (means * row).sum(-1).mT
        variance = (row.unsqueeze(-2) @ covariance @ row.unsqueeze(-1)).squeeze((-2, -1)).mT
        return self.scaling.moments(mean, variance.clamp_min(MIN_VARIANCE).sqrt())

    def integrated_and_pullback(self, x: Tensor, weights: Tensor) -> Differentiable:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return _with_pullback(x, *self.integrated(x, weights))


def _with_pullback(x: Tensor, mean: Tensor, sd: Tensor) -> Differentiable:
    def pullback(grad_mean: Tensor, grad_sd: Tensor) -> Tensor:
        (gradient,) = torch.autograd.grad([mean, sd], x, [grad_mean, grad_sd], retain_graph=True)
        return gradient

    return mean.detach(), sd.detach(), pullback


@dataclass(frozen=True, eq=False)
class StockGP(ExactGP):
    """A fitted BoTorch model as the experts of an ensemble.

    What an exact GP has for its data, the factor of K + noise and (K + noise)⁻¹ (y − mean), follows from the
    posterior at the data alone: with S the posterior covariance there and N the noise,

        (K + N)⁻¹ = N⁻¹ − N⁻¹ S N⁻¹,    (K + N)⁻¹ (y − mean) = N⁻¹ (y − posterior mean).

    The lengthscales are not the model's, which may have none: they are those that BoTorch expects, and say how far
    suggestions of a batch keep apart.
    """

    posterior_: StockPosterior = field(kw_only=True)

    @classmethod
    def of(cls, posterior: StockPosterior, x: Tensor, y: Tensor, noise_variance: Tensor) -> StockGP:
        """``posterior`` has seen ``x`` (n × d) and ``y`` (n), with ``noise_variance`` (M × n)."""
        noise = noise_variance.clamp_min(MIN_NOISE)
        with torch.no_grad():
            mean, covariance = posterior.joint(x)
            sd = noise.sqrt()
            known = covariance / (sd.unsqueeze(-1) * sd.unsqueeze(-2))
            values, vectors = torch.linalg.eigh(0.5 * (known + known.mT))
            left = (1.0 - values).clamp(MIN_NOISE**2, 1.0)  # of the noise's size, what the data do not tell of f
            whole = sd.unsqueeze(-1) * (vectors / left.unsqueeze(-2)) @ vectors.mT * sd.unsqueeze(-2)
            chol, alpha = safe_cholesky(whole), (y - mean) / noise
        experts, d = len(mean), x.shape[-1]
        prior = dimension_scaled(d).lengthscale
        assert prior is not None
        one = y.new_ones(experts)
        signal = (whole.diagonal(dim1=-2, dim2=-1) - noise).mean(-1).clamp_min(MIN_NOISE)
        hyper = Hyperparameters(
            prior.mode * y.new_ones(experts, d), signal, noise_variance.mean(-1), torch.zeros_like(one), one
        )
        return cls((), hyper, x, y, noise_variance, chol, alpha, posterior_=posterior)

    def expert(self, m: int) -> StockGP:
        row = slice(m, m + 1 or None)
        return StockGP(
            *((), self.hyper.expert(m), self.x, self.y, self.noise_variance[row], self.chol[row], self.alpha[row]),
            posterior_=self.posterior_.expert(m),
        )

    def with_lengthscale(self, lengthscale: Tensor) -> StockGP:
        """Itself: what is rougher than a model of any kind is not known."""
        return self

    def extend(self, x: Tensor, y: Tensor, noise_variance: Tensor | None = None) -> StockGP:
        noise = noise_per_expert(self.hyper.noise_variance, len(x), noise_variance)
        before = 0 if self.posterior_.rows is None else len(self.posterior_.rows)
        seen = len(self.y) - before  # by the model itself
        all_x, all_y = torch.cat([self.x, x]), torch.cat([self.y, y])
        all_noise = torch.cat([self.noise_variance, noise], dim=-1)
        posterior = self.posterior_.given(all_x[seen:], all_y[seen:], all_noise[:, seen:])
        return StockGP.of(posterior, all_x, all_y, all_noise)

    def posterior(self, points: Tensor) -> tuple[Tensor, Tensor]:
        return self.posterior_.joint(points)

    def posterior_beside(self, points: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        parts, beside = [], points[rows]
        for some in torch.split(points, TOGETHER):
            mean, covariance = self.posterior_.joint(torch.cat([some, beside]))
            count = len(some)
            variance = covariance.diagonal(dim1=-2, dim2=-1)[:, :count].clamp_min(0.0)
            parts.append((mean[:, :count], variance, covariance[:, :count, count:]))
        means, variances, crosses = zip(*parts, strict=True)
        return torch.cat(means, dim=1), torch.cat(variances, dim=1), torch.cat(crosses, dim=1)

    def moments(self, points: Tensor) -> tuple[Tensor, Tensor]:
        return self.posterior_.moments(points)


@dataclass(frozen=True, eq=False)
class StockEnsemble(ExpertEnsemble):
    """What a ``BotorchSurrogate`` fits."""

    def sparse(self) -> StockEnsemble:
        return self

    def paired_with(self, contexts: Tensor) -> PairedStock:
        assert isinstance(self.gp, StockGP)
        return PairedStock(self.gp.posterior_, contexts, self.scaling)


@dataclass(frozen=True)
class BotorchSurrogate(Surrogate, ABC):
    """Any BoTorch model as a surrogate. A frozen dataclass derives from it and says how the model is made and fitted.

    The posterior has to be Gaussian, or a mixture of Gaussians, whose members then are the experts. Between fits and
    with what is pending the posterior is conditioned, the model stays as it is.
    """

    fits: ClassVar[bool] = False  # its hyper-parameters are not ours to doubt
    learns_from_earlier: ClassVar[bool] = False
    warm: ClassVar[bool] = False

    experts: tuple[str, ...] = field(default=(), init=False, repr=False)
    priors: Callable[[int], Priors] = field(default=ensemble_priors, init=False, repr=False)
    weighting: Weighting = field(default="equal", init=False, repr=False)

    @abstractmethod
    def fit_model(self, X: Tensor, Y: Tensor, Yvar: Tensor | None) -> Model:
        """A fitted model with one output, a function of its arguments. torch's random numbers are seeded before.

        Args:
            X: Inputs, n × (d_x + d_c), double precision; the last are the context. Designs lie in the unit cube.
            Y: Standardized outcomes, n × 1, to be maximized.
            Yvar: Their noise variances, n × 1, if any are known; unknown ones are the median of the others.
        """

    def fit(
        self,
        X: Tensor,
        Y: Tensor,
        Yvar: Tensor | None = None,
        *,
        start: Hyperparameters | None = None,
        cold: bool = True,
    ) -> StockEnsemble:
        scaling = Scaling.of(Y)
        y, known = scaling.standardize(Y), scaling.noise_variance(Yvar, Y)
        given = None
        if known is not None and not bool(known.isnan().all()):
            given = known.where(~known.isnan(), known.nanmedian()).unsqueeze(-1)
        with torch.random.fork_rng(devices=[]), validate_input_scaling(False):
            torch.manual_seed(len(Y))
            model = self.fit_model(X, y.unsqueeze(-1), given)
        _need_one_output(model)
        model.eval().requires_grad_(False)
        posterior = StockPosterior(model)
        noise = noise_per_expert(_learnt_noise(model, X[:1]), len(X), known)
        return StockEnsemble(StockGP.of(posterior, X, y, noise), scaling)

    def at(self, X: Tensor, Y: Tensor, Yvar: Tensor | None, hyper: Hyperparameters) -> StockEnsemble:
        return self.fit(X, Y, Yvar)

    def unfitted(self, X: Tensor, Y: Tensor, Yvar: Tensor) -> StockEnsemble:
        return self.fit(X, Y, Yvar)

    def extend(self, model: ExpertEnsemble, X: Tensor, Y: Tensor, Yvar: Tensor | None = None) -> ExpertEnsemble:
        """With the observations it lacks; the standardization stays as well."""
        old, known = model.observations, model.scaling.noise_variance(Yvar, Y)
        return model.with_modelled(X[old:], model.scaling.standardize(Y)[old:], None if known is None else known[old:])


def _learnt_noise(model: Model, x: Tensor) -> Tensor:
    """The noise variance (M) of an outcome whose own is not known."""
    with torch.no_grad():
        noisy: Any = model.posterior(x, observation_noise=True)
        plain: Any = model.posterior(x)
        noise: Tensor = noisy.variance - plain.variance
    return noise.reshape(-1).clamp_min(0.0)


class RobustAcquisition(AcquisitionFunction):
    """α(x) = functional_c s(x, c).

    ``model`` is an ensemble (the fast path) or any single-output BoTorch model on (x, c); the last d_c inputs are the
    context. Inputs and contexts are in the coding the model was trained on.

    Args:
        model: The posterior of f at (x, c).
        score: Optimism at one (x, c).
        points: The atoms of the context distribution, coded as the model's inputs.
        functional: What makes one number of the scores in all contexts.
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
