"""Wear: f itself drifts, and everything is asked at the present time.

    paper       here                meaning
    t_i         time (n)            the number of the run that an observation came from
    T           now                 the number of the next run
    τ           half_life / log 2   so that exp(−Δt/τ) = ½ after a half-life
    δ_i         decay (n)           exp(−(T − t_i)/τ), the correlation of f(·) then with f(·) now

The kernel of every expert is k(z, z') exp(−|t − t'|/τ): a factor of Ornstein and Uhlenbeck's in time (Matérn ½), which
is Markov, so that the present hangs on the past through what it was last. With D = diag(δ), L Lᵀ = K ∘ R + noise and
R_ij = exp(−|t_i − t_j|/τ), what is known now is

    mean(z) = m + k(z, Z) D (L Lᵀ)⁻¹ (y − m),       variance(z) = k(z, z) − ‖(D⁻¹L)⁻¹ k(Z, z)‖².

D⁻¹L is lower triangular. So a ``DriftingGP`` is an ``ExactGP`` whose factor is D⁻¹L and whose weights are
D (L Lᵀ)⁻¹ (y − m): nothing that asks it costs more, and nothing else knows of time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from edrbo.errors import InvalidValueError
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate
from edrbo.surrogate.exact_gp import ExactGP, noise_per_expert, safe_cholesky
from edrbo.surrogate.fit import Likelihood, default_theta, fit_cold, fit_experts, pack, profile_mean, representative
from edrbo.surrogate.kernels import Hyperparameters, Kernel, get_kernel, gram, scaled_sqdist
from edrbo.surrogate.scaling import Scaling
from edrbo.surrogate.tolerance import ShiftedGP

LEAST_DECAY = 1e-30  # what is older has no say; keeps the factor finite
LEAST_SAY = 1e-3  # of an outcome whose context is not known: what is older counts as if it were so old
HALF_LIVES = (4.0, 16.0, 64.0, 256.0)  # looked at where a search begins anew …
FACTOR = 2.0  # … and a step from there
LONGEST = 4.0  # times the runs there are: a longer half-life cannot be told from none
WORTHWHILE = 2.0  # nats of evidence by which a drift must be better than none


def correlation(time: Tensor, other: Tensor, half_life: float) -> Tensor:
    """Of f at times (n) with f at others (k): n × k."""
    return torch.exp2((time[:, None] - other).abs().neg() / half_life)


@dataclass(frozen=True)
class DriftingGP(ExactGP):
    """``chol`` (D⁻¹L) and ``alpha`` are those of f now; ``y`` and the noise are of then."""

    time: Tensor = field(kw_only=True)
    now: float = field(kw_only=True)
    half_life: float = field(kw_only=True)
    sparse: ClassVar[bool] = False

    @classmethod
    def at_times(
        cls,
        kernels: tuple[Kernel, ...],
        hyper: Hyperparameters,
        x: Tensor,
        y: Tensor,
        noise_rows: Tensor,
        time: Tensor,
        now: float,
    ) -> DriftingGP:
        """Condition on ``x`` (n × d), ``y`` (n) observed at ``time`` (n) with noise variances (M × n)."""
        assert hyper.half_life is not None
        sqdist = scaled_sqdist(x, x, hyper.lengthscale)
        sqdist.diagonal(dim1=-2, dim2=-1).zero_()
        covariance = gram(kernels, sqdist, hyper.outputscale, hyper.shape)
        covariance.mul_(correlation(time, time, hyper.half_life)).diagonal(dim1=-2, dim2=-1).add_(noise_rows)
        chol = safe_cholesky(covariance) / _decay(time, now, hyper.half_life)[:, None]
        nothing, times = y.new_zeros(len(kernels), len(y)), {"time": time, "now": now, "half_life": hyper.half_life}
        bare = cls(kernels, hyper, x, y, noise_rows, chol, nothing, **times)  # type: ignore[arg-type]
        return bare.with_outcomes(y)

    @property
    def decay(self) -> Tensor:
        """δ (n)."""
        return _decay(self.time, self.now, self.half_life)

    def asked_at(self, now: float) -> DriftingGP:
        """The same data, asked at another time."""
        later = replace(self, now=now)
        return replace(later, chol=self._then() / later.decay[:, None]).with_outcomes(self.y)

    def expert(self, m: int) -> DriftingGP:
        return replace(self, **_parts(super().expert(m)))

    def with_outcomes(self, y: Tensor, mean: Tensor | None = None, source_mean: Tensor | None = None) -> DriftingGP:
        hyper = self.hyper if mean is None else replace(self.hyper, mean=mean)
        residual = (y.unsqueeze(-2) - hyper.mean[:, None]) / self.decay
        return replace(
            self, y=y, hyper=hyper, alpha=torch.cholesky_solve(residual.unsqueeze(-1), self.chol).squeeze(-1)
        )

    def conditioned(
        self,
        kernels: tuple[Kernel, ...],
        hyper: Hyperparameters,
        noise_variance: Tensor | None,
        count: Tensor | None = None,
    ) -> DriftingGP:
        rows = noise_per_expert(hyper.noise_variance, len(self.y), noise_variance, count)
        return DriftingGP.at_times(kernels, hyper, self.x, self.y, rows, self.time, self.now)

    def extend(self, x: Tensor, y: Tensor, noise_variance: Tensor | None = None) -> DriftingGP:
        """With observations of f as it is now."""
        grown, count = super().extend(x, y, noise_variance), x.shape[-2]
        time = torch.cat([self.time, self.time.new_full((count,), self.now)])
        return replace(self, **_parts(grown), time=time).with_outcomes(grown.y)

    def past_factor(self) -> tuple[Tensor, Tensor]:
        """L and (L Lᵀ)⁻¹ (y − mean)."""
        return self._then(), self.alpha / self.decay

    def pair_correlation(self, pairs: Tensor) -> Tensor:
        return torch.exp2((self.time[pairs[0]] - self.time[pairs[1]]).abs().neg() / self.half_life)

    def log_evidence(self) -> Tensor:
        """Log marginal likelihood of the outcomes (M)."""
        evidence = super().log_evidence()  # with (y − mean) α of now, and log det D⁻¹L
        residual = self.y.unsqueeze(-2) - self.hyper.mean[:, None]
        quadratic = (residual * self.alpha * (1.0 / self.decay - 1.0)).sum(-1)
        return evidence - 0.5 * quadratic - self.decay.log().sum()

    def _then(self) -> Tensor:
        return self.chol * self.decay[:, None]


def _decay(time: Tensor, now: float, half_life: float) -> Tensor:
    return torch.exp2((time - now) / half_life).clamp_min(LEAST_DECAY)


def _parts(gp: ExactGP) -> dict[str, Any]:
    return {part.name: getattr(gp, part.name) for part in fields(ExactGP)}


@dataclass(frozen=True)
class DriftingSurrogate(Surrogate):
    """``Surrogate`` of f that drifts: the last column of ``X`` is the time of each observation.

    Args:
        half_life: After how many runs f is correlated by one half with what it was; None: learned, by the evidence.
    """

    half_life: float | None = None

    @classmethod
    def of(cls, surrogate: Surrogate, half_life: float | None) -> DriftingSurrogate:
        """The experts of ``surrogate``, drifting."""
        if type(surrogate) is not Surrogate:
            hint = 'leave drift out, or choose a method whose surrogate is plain experts, such as "edrbo-mean"'
            raise InvalidValueError("drift is set, and this method's surrogate knows no time", hint)
        return cls(surrogate.experts, surrogate.priors, surrogate.weighting, half_life=half_life)

    def fit(
        self,
        X: Tensor,
        Y: Tensor,
        Yvar: Tensor | None = None,
        *,
        start: Hyperparameters | None = None,
        cold: bool = True,
    ) -> ExpertEnsemble:
        scaling = Scaling.of(Y)
        search = _Search(self, X, scaling.standardize(Y), scaling.noise_variance(Yvar, Y), cold)
        if self.half_life is not None:
            return self.at(X, Y, Yvar, search.fitted(self.half_life, start)[0])
        return self.at(X, Y, Yvar, search.learned(start))

    def extend(self, model: ExpertEnsemble, X: Tensor, Y: Tensor, Yvar: Tensor | None = None) -> ExpertEnsemble:
        return self.at(X, Y, Yvar, model.gp.hyper)  # with every run all others are older

    def _at(
        self, X: Tensor, Y: Tensor, Yvar: Tensor | None, hyper: Hyperparameters, scaling: Scaling
    ) -> ExpertEnsemble:
        kernels = tuple(get_kernel(name) for name in self.experts)
        half_life = math.inf if hyper.half_life is None else hyper.half_life
        known, y, time = scaling.noise_variance(Yvar, Y), scaling.standardize(Y), X[:, -1]
        rows = noise_per_expert(hyper.noise_variance, len(Y), known)
        hyper = replace(hyper, half_life=half_life)
        gp = DriftingGP.at_times(kernels, hyper, X[:, :-1], y, rows, time, float(time.max()) + 1.0)
        mean = profile_mean(gp.past_factor()[0], y, self.priors(gp.x.shape[-1]).mean_sd)
        return ExpertEnsemble(gp.with_outcomes(y, mean), scaling, self.weighting)


class _Search:
    """Hyper-parameters for several half-lives, of the same data."""

    def __init__(self, surrogate: DriftingSurrogate, X: Tensor, y: Tensor, known: Tensor | None, cold: bool) -> None:
        some = representative(X[:, :-1])
        self.x, self.time, self.y = X[some, :-1], X[some, -1], y[some]
        self.known = None if known is None else known[some]
        self.kernels = tuple(get_kernel(name) for name in surrogate.experts)
        self.priors, self.cold = surrogate.priors(self.x.shape[-1]), cold
        self.span = float(X[:, -1].max() - X[:, -1].min()) + 1.0

    def fitted(self, half_life: float, start: Hyperparameters | None) -> tuple[Hyperparameters, float]:
        """The hyper-parameters, and the log posterior, the mean over the experts."""
        pairs = torch.tril_indices(len(self.y), len(self.y), offset=-1)
        decay = torch.exp2((self.time[pairs[0]] - self.time[pairs[1]]).abs().neg() / half_life)
        likelihood = Likelihood(self.x, self.y, self.known, self.priors, correlation=decay)
        default = default_theta(self.kernels, self.x.shape[-1], self.priors)
        if start is not None and not self.cold:
            hyper = fit_experts(self.kernels, likelihood, pack(start))
        else:
            hyper = fit_cold(
                self.kernels, likelihood, default if start is None else torch.cat([pack(start), default]), default
            )
        value = likelihood.value_and_gradient(pack(hyper), self.kernels)[0].mean()
        return replace(hyper, half_life=half_life), float(value)

    def learned(self, start: Hyperparameters | None) -> Hyperparameters:
        """The half-life with the most evidence, and none unless that is worth it."""
        constant = self.fitted(math.inf, start)
        last = None if start is None or start.half_life is None else start.half_life
        if self.cold or last is None:
            tried = self._best(HALF_LIVES, start)
        else:
            middle = HALF_LIVES[1] if math.isinf(last) else last
            tried = self._best((middle,), start)
        if tried is not None:
            around = [tried[0].half_life * step for step in (1.0 / FACTOR, FACTOR) if tried[0].half_life]
            beside = self._best(around, tried[0])
            tried = beside if beside is not None and beside[1] > tried[1] else tried
        return tried[0] if tried is not None and tried[1] > constant[1] + WORTHWHILE else constant[0]

    def _best(self, half_lives: Sequence[float], start: Hyperparameters | None) -> tuple[Hyperparameters, float] | None:
        possible = [half_life for half_life in half_lives if half_life <= LONGEST * self.span]
        found = [self.fitted(half_life, start) for half_life in possible]
        return max(found, key=lambda one: one[1]) if found else None


def asked_at(model: ExpertEnsemble, now: float) -> ExpertEnsemble:
    """``model`` of a drifting f at another time than the next after its last observation."""
    gp = model.gp
    return replace(model, gp=gp.asked_at(now)) if isinstance(gp, DriftingGP) and gp.now != now else model


def faded(model: ExpertEnsemble, time: Tensor, y: Tensor, noise_variance: Tensor) -> tuple[Tensor, Tensor]:
    """Outcomes (n, standardized) seen at ``time`` (n) with their noise, as outcomes of now: (y − m)/δ + m, the noise
    larger by what f may have changed since. Changes of theirs are taken as independent, on the careful side."""
    gp = model.gp
    while isinstance(gp, ShiftedGP):
        gp = gp.unshifted
    if not isinstance(gp, DriftingGP):
        return y, noise_variance
    decay = _decay(time, gp.now, gp.half_life).clamp_min(LEAST_SAY)
    mean, change = gp.hyper.mean.mean(), gp.hyper.outputscale.mean() * (1.0 - decay.square())
    return mean + (y - mean) / decay, (noise_variance + change) / decay.square()
