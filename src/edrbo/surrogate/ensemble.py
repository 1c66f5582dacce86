"""The expert ensemble: its posterior is the Wasserstein barycenter of the experts' (Agueh and Carlier, 2011).

    paper       here                    meaning
    μ_m, σ_m    expert_moments(X)       each expert's posterior, ... × M × q
    μ̄, σ̄        barycenter(mean, sd)    mean over the experts of μ_m and of σ_m
    ε̂           radius(mean, sd)        max_m √((μ_m − μ̄)² + (σ_m − σ̄)²)

The joint posterior of q > 1 points keeps the barycenter's marginals and averages the experts' correlations; so it
is positive semi-definite, consistent under marginalization, and equal to the expert when all experts agree.
(The barycenter of the joint Gaussians themselves has no closed form and is not marginally consistent.)
``edrbo.integrations.botorch`` shows it as a BoTorch ``Model``.

Hyper-parameters are refitted at fixed numbers of observations only (``fit_sizes``: every one at first, then in steps of
a few per cent), each fit warm-started from the one before; in between, the factors of the last fit grow by the rows
that came since, all at once (``advance``). So the model is a function of the data in their order: a run that was
interrupted and one that was not hold the same numbers, bit for bit, whether a step was taken in this process or
replayed; and a model whose last fit was stored costs a factorization, not a replay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal

import torch
from torch import Tensor

from edrbo.surrogate.earlier import EarlierRows, beside_priors, row_noise
from edrbo.surrogate.exact_gp import ExactGP, noise_per_expert
from edrbo.surrogate.fit import (
    MOST_FITTED,
    Likelihood,
    default_theta,
    fit_cold,
    fit_experts,
    pack,
    profile_mean,
    profile_means,
    representative,
    unpack,
)
from edrbo.surrogate.gaussian_model import Differentiable, GaussianModel, PairedModel, Pullback
from edrbo.surrogate.inducing_gp import (
    MIN_ROWS,
    MOST_EXACT,
    MOST_POINTS,
    TOLERABLE,
    InducingGP,
    find_inducing_points,
    least_noise,
)
from edrbo.surrogate.kernels import (
    EXPERTS,
    Hyperparameters,
    Kernel,
    Priors,
    dimension_scaled,
    ensemble_priors,
    get_kernel,
    noise_ratio,
)
from edrbo.surrogate.paired_gp import PairedGP
from edrbo.surrogate.replicates import Replicates
from edrbo.surrogate.scaling import Scaling, Warping
from edrbo.surrogate.sparse import MIN_OBSERVATIONS, SparseGP, inducing_points
from edrbo.surrogate.tolerance import Shift, ShiftedGP


@dataclass(frozen=True, eq=False)
class PairedEnsemble(PairedModel):
    """An ensemble on (x, c) with fixed contexts, as a function of the design; in units of y.

    Faster than the ensemble itself, since what belongs to the contexts is worked out once.
    """

    gp: PairedGP
    scaling: Scaling

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.scaling.moments(*self.gp.moments(x))

    def moments_and_pullback(self, x: Tensor) -> Differentiable:
        return self._with_units(*self.gp.moments_and_pullback(x))

    def integrated(self, x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        if isinstance(self.scaling, Warping):
            return self.gp.warped(x, weights, self.scaling.moments_and_pullback)
        return self.scaling.moments(*self.gp.integrated(x, weights))

    def integrated_and_pullback(self, x: Tensor, weights: Tensor) -> Differentiable:
        """Of warped outcomes the belief is the Gaussian one with the same mean, and with the variance
        Σ_ij w_i w_j σ_i σ_j ρ_ij: the standard deviations of f and the correlations of the modelled values."""
        if isinstance(self.scaling, Warping):
            return self.gp.warped_and_pullback(x, weights, self.scaling.moments_and_pullback)
        return self._with_units(*self.gp.integrated_and_pullback(x, weights))

    def _with_units(self, mean: Tensor, sd: Tensor, pullback: Pullback) -> Differentiable:
        center, spread, to_modelled = self.scaling.moments_and_pullback(mean, sd)
        return center, spread, lambda grad_mean, grad_sd: pullback(*to_modelled(grad_mean, grad_sd))


@dataclass(frozen=True, eq=False)
class SparseEnsemble(GaussianModel):
    """What stands in for an ensemble in a search."""

    gp: SparseGP
    scaling: Scaling
    shares: Tensor | None  # of the experts

    @property
    def weights(self) -> Tensor | None:
        return self.shares

    @property
    def width(self) -> int:
        kernels = self.gp.kernels
        # of separable kernels (the rough one) only the rows inducing points, which carry the variance are held for each
        # pair
        separable = all(kernel.separable for kernel in kernels)
        return len(kernels) * (self.gp.whitening.shape[-1] if separable else len(self.gp.x))

    def rough(self) -> SparseEnsemble:
        return SparseEnsemble(self.gp.expert(0), self.scaling, None)

    def paired_with(self, contexts: Tensor) -> PairedEnsemble:
        return PairedEnsemble(self.gp.paired_with(contexts), self.scaling)


Weighting = Literal["equal", "evidence"]


@dataclass(frozen=True)
class Surrogate:
    """What to fit: which experts, under which priors. ``fit`` makes an ``ExpertEnsemble`` of it.

    The barycenter takes the experts alike, or each by its ``evidence``: its share of the marginal likelihood. Of
    ``sparse_from`` different inputs or more the posterior is that of at most so many ``inducing_points``, where these
    leave little out (surrogate/inducing_gp.py).

    Args:
        experts: The kernels, by name.
        priors: The priors of hyper-parameters, from the number of inputs.
        weighting: ``"equal"``, or by ``"evidence"``.
        sparse_from: The number of different inputs from which few may stand for all.
        inducing_points: How many these are at most.
    """

    fits: ClassVar[bool] = True  # whether hyper-parameters are chosen by the data, and so in doubt
    warm: ClassVar[bool] = True  # whether a fit goes on from the one before
    learns_from_earlier: ClassVar[bool] = True  # whether it looks at ``earlier``

    experts: tuple[str, ...] = EXPERTS
    priors: Callable[[int], Priors] = ensemble_priors
    weighting: Weighting = "equal"
    sparse_from: int = MIN_ROWS
    inducing_points: int = MOST_POINTS
    earlier: EarlierRows | None = field(default=None, init=False, repr=False, compare=False)

    def beside(self, earlier: EarlierRows | None) -> Surrogate:
        """The same for an f of which earlier sources tell (``surrogate.earlier``)."""
        if earlier is None:
            return self
        beside = replace(self)
        object.__setattr__(beside, "earlier", earlier)
        return beside

    def fit(
        self,
        X: Tensor,
        Y: Tensor,
        Yvar: Tensor | None = None,
        *,
        start: Hyperparameters | None = None,
        cold: bool = True,
    ) -> ExpertEnsemble:
        """MAP fit to ``X`` (n × d, unit cube), ``Y`` (n), known noise variances ``Yvar`` (n, NaN if unknown).

        Of very many observations hyper-parameters are fitted to some (``representative``), the posterior is of all. The
        search begins at ``start``, the hyper-parameters of an earlier fit, and, if ``cold`` or without one, at the
        priors' modes.
        """
        return self._fit(X, Y, Yvar, Scaling.of(self._with_spread(Y)), start, cold)

    def fit_hyperparameters(
        self, X: Tensor, Y: Tensor, Yvar: Tensor | None, *, start: Hyperparameters | None, cold: bool
    ) -> Hyperparameters:
        """Those of ``fit``, but for the means; without a model of all the data where the fit needs none."""
        if type(self).fit is not Surrogate.fit:
            return self.fit(X, Y, Yvar, start=start, cold=cold).gp.hyper
        return self._hyperparameters(X, Y, Yvar, Scaling.of(self._with_spread(Y)), start, cold)

    def at(self, X: Tensor, Y: Tensor, Yvar: Tensor | None, hyper: Hyperparameters) -> ExpertEnsemble:
        """Condition on the data at given covariance parameters; the constant mean is profiled."""
        return self._at(X, Y, Yvar, hyper, self._scaling(Y, hyper))

    def unfitted(self, X: Tensor, Y: Tensor, Yvar: Tensor) -> ExpertEnsemble:
        """Condition on the data at the priors' modes, where there is too little to fit anything to."""
        kernels, d = tuple(get_kernel(name) for name in self.experts), X.shape[-1]
        return self.at(X, Y, Yvar, unpack(default_theta(kernels, d, self.priors(d))))

    def extend(self, model: ExpertEnsemble, X: Tensor, Y: Tensor, Yvar: Tensor | None = None) -> ExpertEnsemble:
        """``model`` with the observations of ``X`` (n × d) it lacks as rows of its factors, standardized to all ``Y``.

        Hyper-parameters stay; equals ``at`` on all the data to rounding, at O(n²) a row. Known noise is in units of y,
        so with the standardization the old rows of the factors change too: then they are rebuilt.
        """
        if isinstance(model.gp, InducingGP):
            return _absorbed(model, model.gp, X, Y, Yvar)
        scaling = model.scaling.again(self._with_spread(Y))
        if Yvar is not None and not bool(Yvar.isnan().all()):
            return self._at(X, Y, Yvar, model.gp.hyper, scaling)
        old, standardized = model.observations, scaling.standardize(Y)
        if self.earlier is not None:
            whole = torch.cat([model.gp.y[: model.gp.earlier], standardized])
            replicates = None if model.replicates is None else model.replicates.and_more(len(Y) - old)
            return self._with_mean(model.gp.extend(X[old:], standardized[old:]), whole, scaling, replicates)
        replicates = None if model.replicates is None else model.replicates.and_more(len(Y) - old)
        return self._with_mean(model.gp.extend(X[old:], standardized[old:]), standardized, scaling, replicates)

    def _fit(
        self, X: Tensor, Y: Tensor, Yvar: Tensor | None, scaling: Scaling, start: Hyperparameters | None, cold: bool
    ) -> ExpertEnsemble:
        return self._at(X, Y, Yvar, self._hyperparameters(X, Y, Yvar, scaling, start, cold), scaling)

    def _hyperparameters(
        self, X: Tensor, Y: Tensor, Yvar: Tensor | None, scaling: Scaling, start: Hyperparameters | None, cold: bool
    ) -> Hyperparameters:
        kernels = tuple(get_kernel(name) for name in self.experts)
        priors = self.priors(X.shape[-1])
        some, known = fitted_rows(X), scaling.noise_variance(Yvar, Y)
        x, y, noise_variance, replicates = _as_rows(
            X[some], scaling.standardize(Y)[some], None if known is None else known[some]
        )
        source = None
        if self.earlier is not None:
            priors = beside_priors(priors)
            x, y, noise_variance, source = self._below_earlier(x, y, noise_variance, scaling)
        likelihood = Likelihood(x, y, noise_variance, priors, replicates, source)
        if start is not None and not cold:
            return fit_experts(kernels, likelihood, pack(start))
        default = default_theta(kernels, X.shape[-1], priors, likelihood.sources)
        starts = default if start is None else torch.cat([pack(start), default])
        if likelihood.sources:
            unrelated = default_theta(kernels, X.shape[-1], priors, likelihood.sources, related=0.0)
            starts = torch.cat([starts, unrelated])
        return fit_cold(kernels, likelihood, starts, default)

    def _at(
        self, X: Tensor, Y: Tensor, Yvar: Tensor | None, hyper: Hyperparameters, scaling: Scaling
    ) -> ExpertEnsemble:
        kernels = tuple(get_kernel(name) for name in self.experts)
        standardized = scaling.standardize(Y)
        x, y, noise_variance, replicates = _as_rows(X, standardized, scaling.noise_variance(Yvar, Y))
        count, source = None if replicates is None else replicates.count, None
        if hyper.noise_profile is not None:  # a row of much noise is worth less than one observation
            count = (1.0 if count is None else count) / noise_ratio(hyper.noise_profile, x)
        points = self._inducing_points(kernels, hyper, x)
        if points is not None:
            noise_rows = noise_per_expert(hyper.noise_variance, len(x), noise_variance, count)
            mean_sd = self.priors(x.shape[-1]).mean_sd
            sparse = InducingGP.of(kernels, hyper, x, y, noise_rows, points, mean_sd)
            return ExpertEnsemble(sparse, scaling, self.weighting, replicates)
        if self.earlier is not None:
            x, y, noise_variance, source = self._below_earlier(x, y, noise_variance, scaling)
            standardized = torch.cat([y[: len(self.earlier.y)], standardized])
            count = None if count is None else torch.cat([count.new_ones(len(self.earlier.y)), count])
        gp = ExactGP.condition(kernels, hyper, x, y, noise_variance, count, source)
        return self._with_mean(gp, standardized, scaling, replicates)

    def _inducing_points(self, kernels: tuple[Kernel, ...], hyper: Hyperparameters, x: Tensor) -> Tensor | None:
        """The numbers of the rows of ``x`` (n × d) that tell of all others; None where the model is to be exact: of few
        rows, of not so many where too much would be left out, and beside earlier sources."""
        if len(x) < self.sparse_from or self.earlier is not None:
            return None
        points, left_out = find_inducing_points(kernels, hyper, x, self.inducing_points)
        most_exact = MOST_EXACT * self.sparse_from // MIN_ROWS
        return points if left_out <= TOLERABLE or len(x) > most_exact else None

    def _with_mean(
        self, gp: ExactGP, standardized: Tensor, scaling: Scaling, replicates: Replicates | None
    ) -> ExpertEnsemble:
        """``standardized`` are the outcomes of earlier sources and then those of f."""
        if replicates is not None:
            own = standardized[gp.earlier :]
            replicates = replicates.with_outcomes(own)
            standardized = torch.cat([standardized[: gp.earlier], replicates.mean(own)])
        if isinstance(gp, InducingGP):
            return ExpertEnsemble(gp.with_outcomes(standardized), scaling, self.weighting, replicates)
        gp = with_profiled_mean(gp, standardized, self.priors(gp.x.shape[-1]).mean_sd)
        return ExpertEnsemble(gp, scaling, self.weighting, replicates)

    def _with_spread(self, Y: Tensor) -> Tensor:
        """Outcomes ``Y`` (n) by which to scale: few say little, and the earlier sources' spread is like that of f."""
        return Y if self.earlier is None else self.earlier.pseudo_outcomes(Y)

    def _below_earlier(
        self, x: Tensor, y: Tensor, noise_variance: Tensor | None, scaling: Scaling
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
        """Rows of f below those of the earlier sources, each standardized by itself, and of which source each is."""
        earlier = self.earlier
        assert earlier is not None
        outcomes, known = torch.empty_like(earlier.y), torch.full_like(earlier.y, torch.nan)
        for source in range(1, earlier.sources + 1):
            rows, own = earlier.source == source, scaling.alike(earlier.of(source))
            outcomes[rows] = own.standardize(earlier.y[rows])
            variance = own.noise_variance(earlier.noise_variance[rows], earlier.y[rows])
            assert variance is not None
            known[rows] = variance
        all_known = torch.cat([known, torch.full_like(y, torch.nan) if noise_variance is None else noise_variance])
        return (
            torch.cat([earlier.x, x]),
            torch.cat([outcomes, y]),
            None if bool(all_known.isnan().all()) else all_known,
            torch.cat([earlier.source, earlier.source.new_zeros(len(y))]),
        )

    def _scaling(self, Y: Tensor, hyper: Hyperparameters) -> Scaling:
        """What belongs to the outcomes of a fit with these hyper-parameters."""
        return Scaling.of(self._with_spread(Y))


def with_profiled_mean(gp: ExactGP, y: Tensor, mean_sd: float) -> ExactGP:
    """``gp`` with outcomes ``y`` of its rows and the constant means that fit them best."""
    if gp.source is None:
        return gp.with_outcomes(y, profile_mean(gp.past_factor()[0], y, mean_sd))
    means = profile_means(gp.chol, y, gp.source, mean_sd)
    return gp.with_outcomes(y, means[:, 0], means[:, 1:])


def _absorbed(model: ExpertEnsemble, gp: InducingGP, X: Tensor, Y: Tensor, Yvar: Tensor | None) -> ExpertEnsemble:
    """``model`` with the observations of ``X`` (n × d) it lacks. Its standardization stays: of so many outcomes a few
    more move it by next to nothing."""
    old, profile = model.observations, gp.hyper.noise_profile
    standardized, known = model.scaling.standardize(Y[old:]), None
    if Yvar is not None:
        known = model.scaling.noise_variance(Yvar[old:], Y[old:])
    count = None if profile is None else 1.0 / noise_ratio(profile, X[old:])
    noise_rows = noise_per_expert(gp.hyper.noise_variance, len(Y) - old, known, count)
    replicates = None if model.replicates is None else model.replicates.and_more(len(Y) - old)
    return replace(model, gp=gp.absorb(X[old:], standardized, noise_rows), replicates=replicates)


def _as_rows(
    x: Tensor, y: Tensor, noise_variance: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None, Replicates | None]:
    """Inputs (n × d), standardized outcomes and known noise (n) with those at one input made one row."""
    replicates = Replicates.among(x, y, noise_variance)
    return (
        (x, y, noise_variance, None)
        if replicates is None
        else (x[replicates.first], replicates.mean(y), replicates.noise_variance, replicates)
    )


def fitted_rows(X: Tensor) -> Tensor:
    """The numbers of the observations (n × d) that hyper-parameters are fitted to: of very many different inputs some,
    with all that was observed there."""
    if len(X) <= MOST_FITTED:
        return torch.arange(len(X))
    replicates = Replicates.among(X, X[:, 0], None)
    if replicates is None:
        return representative(X)
    rows = replicates.rows
    return torch.nonzero(torch.isin(rows, representative(X[replicates.first]))).squeeze(-1)


def single_gp() -> Surrogate:
    """One squared-exponential GP under BoTorch's dimension-scaled priors, as the published baselines used."""
    return Surrogate(experts=("se",), priors=dimension_scaled)


def barycenter(mean: Tensor, sd: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Wasserstein-2 barycenter of M one-dimensional Gaussians: weighted means over the expert dimension (−2)."""
    if mean.shape[-2] == 1:  # of one expert, what it says
        return mean.squeeze(-2), sd.squeeze(-2)
    if weights is None:
        return mean.mean(-2), sd.mean(-2)
    return (weights.unsqueeze(-1) * mean).sum(-2), (weights.unsqueeze(-1) * sd).sum(-2)


def radius(mean: Tensor, sd: Tensor, weights: Tensor | None = None) -> Tensor:
    """ε̂: the largest W₂ distance of an expert from the barycenter; ``mean``, ``sd`` are ... × M × N.

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


@dataclass(frozen=True)
class Approximation:
    """A posterior of so many inducing ``points``.

    What these leave out of f at the data is the ``error``, a standard deviation in units of y. As a variance it is
    ``left_out`` times that of the noise, or of a thousandth of f's where there is hardly any noise.
    """

    points: int
    error: float
    left_out: float


@dataclass(frozen=True, eq=False)
class ExpertEnsemble(GaussianModel):
    """M experts fitted to one data set. ``replicates`` tells which observations share a row of ``gp``, if some do."""

    gp: ExactGP
    scaling: Scaling
    weighting: Weighting = "equal"
    replicates: Replicates | None = None

    @property
    def observations(self) -> int:
        """How many it has seen."""
        return self.gp.count if self.replicates is None else len(self.replicates.rows)

    @property
    def inputs(self) -> Tensor:
        """Those of every observation (... × n × d)."""
        own = self.gp.observed
        return own if self.replicates is None else own[..., self.replicates.rows, :]

    @property
    def rows_count(self) -> Tensor | None:
        """Observations in each row of ``gp`` (n); None where it is one."""
        if self.replicates is None:
            return None
        count = self.replicates.count
        return torch.cat([count.new_ones(self.gp.earlier), count]) if self.gp.earlier else count

    @property
    def correlation(self) -> Tensor | None:
        """Of f with each earlier source, the experts' mean (S); None without any."""
        found = self.gp.hyper.correlation
        return None if found is None else found.mean(0)

    def log_evidence(self) -> Tensor:
        """Log marginal likelihood of the standardized outcomes (... × M)."""
        evidence, gp = self.gp.log_evidence(), self.gp
        if self.replicates is None:
            return evidence
        return evidence + self.replicates.log_density(gp.hyper.noise_variance, gp.noise_ratio(gp.x))[0]

    @property
    def exposure(self) -> Tensor | None:
        """How many observations of ``noise_variance`` each row (n) is worth; None: one each."""
        count, ratio = self.rows_count, self.gp.noise_ratio(self.gp.x)
        return count if ratio is None else (1.0 if count is None else count) / ratio

    @property
    def known_noise(self) -> Tensor | None:
        """Variances (n) of rows whose noise is not that of the hyper-parameters, NaN for the others; None without."""
        gp = self.gp
        own = gp.hyper.noise_variance if gp.source is None else row_noise(gp.hyper, gp.source)
        own = noise_per_expert(own, len(gp.y), None, self.exposure)
        free = (gp.noise_variance == own).all(0)
        return None if bool(free.all()) else torch.where(free, torch.nan, gp.noise_variance[0])

    @cached_property
    def weights(self) -> Tensor | None:
        """Each expert's weight in the barycenter (... × M); None when they are equal."""
        return None if self.weighting == "equal" else self.log_evidence().softmax(-1)

    def barycenter(self, mean: Tensor, sd: Tensor) -> tuple[Tensor, Tensor]:
        """Of the experts' moments (... × M × N), each as much as it weighs."""
        return barycenter(mean, sd, self.weights)

    @property
    def num_experts(self) -> int:
        return self.gp.alpha.shape[-2]

    @property
    def width(self) -> int:
        return self.num_experts * self.gp.x.shape[-2]

    def expert(self, m: int) -> ExpertEnsemble:
        """Expert m alone."""
        return replace(self, gp=self.gp.expert(m))

    def shifted(self, shift: Shift) -> ExpertEnsemble:
        """Asked about what is set, where what comes out is off by tolerances."""
        return ExpertEnsemble(ShiftedGP.of(self.gp, shift), self.scaling, self.weighting, self.replicates)

    def rougher(self, factor: Tensor | float) -> ExpertEnsemble:
        """The experts on the same data, their lengthscales times ``factor`` (d, or one for all)."""
        return replace(self, gp=self.gp.with_lengthscale(factor * self.gp.hyper.lengthscale), replicates=None)

    def rough(self) -> ExpertEnsemble:
        return self.expert(0)

    def sparse(self) -> GaussianModel:
        return self._sparse if self.gp.sparse and self.gp.x.shape[-2] >= MIN_OBSERVATIONS else self

    @cached_property
    def _sparse(self) -> SparseEnsemble:
        return SparseEnsemble(SparseGP.of(self.gp, inducing_points(self.gp)), self.scaling, self.weights)

    def moments(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Each expert's marginal mean and standard deviation at ``points`` (N × d): M × N, in units of y. Fast."""
        return self.scaling.moments(*self.gp.moments(points))

    def paired_with(self, contexts: Tensor) -> PairedModel:
        return PairedEnsemble(self.gp.paired_with(contexts), self.scaling)

    def expert_moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The same for any batch shape: ``X`` (... × q × d) gives two ... × M × q tensors; twice differentiable."""
        mean, covariance = self.gp.posterior(X)
        variance = covariance.diagonal(dim1=-2, dim2=-1).clamp_min(1e-14)
        return self.scaling.moments(mean, variance.sqrt())

    def joint(self, X: Tensor, *, observed: bool = False) -> tuple[Tensor, Tensor]:
        """The barycenter at ``X`` (... × q × d) in units of y: mean ... × q and covariance ... × q × q, that of noisy
        outcomes if ``observed``."""
        mean, covariance = self.gp.posterior(X)
        variance = covariance.diagonal(dim1=-2, dim2=-1).clamp_min(1e-14)
        sd = variance.sqrt()
        correlations = covariance / (sd.unsqueeze(-1) * sd.unsqueeze(-2))
        weights = self.weights
        correlation = correlations.mean(-3) if weights is None else (weights[..., None, None] * correlations).sum(-3)
        center, spread = self.barycenter(*self.scaling.moments(mean, sd))
        joint = correlation * spread.unsqueeze(-1) * spread.unsqueeze(-2)
        if observed:
            joint = joint + torch.diag_embed(self.noise_at(self.barycenter(mean, sd)[0]))
        return center, joint

    def noise_at(self, modelled: Tensor) -> Tensor:
        """Variance of the noise in units of y where the modelled value is this; the experts' mean."""
        return self.gp.hyper.noise_variance.mean() * self.scaling.slope(modelled).square()

    def with_modelled(self, X: Tensor, y: Tensor, noise_variance: Tensor | None = None) -> ExpertEnsemble:
        """A new model that has also seen ``X`` (... × q × d) at the same hyper-parameters, with outcomes ``y``
        (... × q) and noise variances (q) as the experts see them, standardized."""
        replicates = None if self.replicates is None else self.replicates.and_more(X.shape[-2])
        return replace(self, gp=self.gp.extend(X, y, noise_variance), replicates=replicates)

    def leave_one_out(self, some: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Each standardized outcome (n), or of ``some`` (q), as predicted from all others: mean and standard deviation,
        M × n.

        In closed form. With A = (K + noise)⁻¹ and α = A(y − mean), a row is predicted from the other rows as y − α/A_ii
        with variance 1/A_ii; where it is a mean, the rest of its own observations count as well.
        """
        gp, each = self.gp, slice(None) if some is None else some
        if self.replicates is None:
            if some is None and not gp.earlier:
                alpha, precision = gp.held_out()  # M × n each
                return gp.y, gp.y - alpha / precision, precision.rsqrt()
            rows = torch.arange(gp.earlier, len(gp.y))[each]
            alpha, precision = gp.held_out(rows)
            return gp.y[rows], gp.y[rows] - alpha / precision, precision.rsqrt()
        rows, share = gp.earlier + self.replicates.rows[each], self.replicates.share[each]
        alpha, precision = gp.held_out(rows)
        y = gp.y[rows] + self.replicates.deviation[each]
        mean, noise_variance = gp.y[rows] - alpha / precision, gp.noise_variance[:, rows]
        signal = (1.0 / precision - noise_variance).clamp_min(0.0)
        certain = signal * (1.0 - share) + noise_variance
        gain = signal * (1.0 - share) / certain
        predicted = mean * (1.0 - gain) + signal * (gp.y[rows] - share * y) / certain
        return y, predicted, (signal * (1.0 - gain) + noise_variance / share).sqrt()

    @property
    def approximation(self) -> Approximation | None:
        """How the posterior is approximated; None where it is exact."""
        gp = self.gp
        while isinstance(gp, ShiftedGP):
            gp = gp.unshifted
        if not isinstance(gp, InducingGP):
            return None
        error = gp.residual.mean().sqrt() * self.scaling.slope(gp.residual.new_zeros(()))
        return Approximation(gp.prior.shape[-1], float(error), float((gp.residual / least_noise(gp.hyper)).mean()))


GROWTH = 1.05  # the next fit comes when the data have grown by this factor
FRESH_FROM = 512  # observations from which on a fit to doubled data knows nothing of those before it: they say no more


def fit_sizes(n: int) -> list[int]:
    """The numbers of observations, up to n, at which hyper-parameters are fitted: 1, 2, 3, …"""
    sizes, size = [], 1
    while size <= n:
        sizes.append(size)
        size = max(size + 1, int(size * GROWTH))
    return sizes


def _is_new_scale(size: int) -> bool:
    """Whether to search from the priors' modes as well: for small data, and each time the data have doubled."""
    sizes = fit_sizes(size)
    return size <= 10 or size.bit_length() > sizes[-2].bit_length()


def _is_fresh(size: int) -> bool:
    """Whether a fit forgets those before it, so that who begins here ends like who went on."""
    return size > FRESH_FROM and _is_new_scale(size)


def _is_recoded(before: Tensor, after: Tensor) -> bool:
    """Whether an input (n × d) is spread twice as far as before, or half: then old lengthscales say little."""
    old, new = (X.amax(0) - X.amin(0) for X in (before, after))
    return bool(((new > 2.0 * old) | (old > 2.0 * new)).any())


@dataclass(frozen=True)
class FittedModel:
    """An ensemble on ``rows`` observations, and ``base``, that on the first ``fitted`` of them, which was fitted."""

    base: ExpertEnsemble
    model: ExpertEnsemble
    fitted: int
    rows: int

    @property
    def hyper(self) -> Hyperparameters:
        return self.base.gp.hyper


def advance(
    surrogate: Surrogate,
    previous: FittedModel | None,
    n: int,
    inputs: Callable[[int], Tensor],
    Y: Tensor,
    noise_variance: Callable[[int], Tensor | None],
    start: tuple[int, Hyperparameters] | None = None,
    earlier: Callable[[int], EarlierRows | None] | None = None,
) -> FittedModel:
    """The model of all ``n`` ≥ 1 observations, from a model of fewer, from stored hyper-parameters, or from nothing.

    ``inputs(size)`` gives the n × d inputs in the coding that belongs to a fit on ``size`` observations,
    ``noise_variance(size)`` what is known of the noise of the first ``size``, from these alone. ``start`` is (size,
    hyper-parameters) of an earlier fit whose factors are gone, say after loading from a file. ``earlier(size)`` are the
    observations of earlier sources, in the coding of ``inputs(size)``.
    """

    def at(size: int) -> Surrogate:
        return surrogate if earlier is None else surrogate.beside(earlier(size))

    sizes = fit_sizes(n)
    base, fitted, hyper = None, 0, None
    if previous is not None:
        base, fitted, hyper = previous.base, previous.fitted, previous.hyper
    elif start is not None and start[0] <= sizes[-1]:
        fitted, hyper = start
    first = max((size for size in sizes if _is_fresh(size)), default=1)
    for size in [size for size in sizes if size >= first] if surrogate.warm else sizes[-1:]:
        if size > fitted:
            X = inputs(size)[:size]
            cold = _is_new_scale(size) or (fitted > 0 and _is_recoded(inputs(fitted)[:fitted], X[:fitted]))
            data, start_at = (X, Y[:size], noise_variance(size)), None if _is_fresh(size) else hyper
            if size == sizes[-1]:
                base = at(size).fit(*data, start=start_at, cold=cold)
                fitted, hyper = size, base.gp.hyper
            else:
                fitted, hyper = size, at(size).fit_hyperparameters(*data, start=start_at, cold=cold)
    X = inputs(fitted)
    if base is None:
        assert hyper is not None
        base = at(fitted).at(X[:fitted], Y[:fitted], noise_variance(fitted), hyper)
    model = base if n == fitted else at(fitted).extend(base, X[:n], Y[:n], noise_variance(n))
    return FittedModel(base, model, fitted, n)
