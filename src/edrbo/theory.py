"""Information gain, β_t, the regret bound, and what they are worth.

What the paper's theory gives for a concrete problem: information gains, Lipschitz constants, the regret bound.

    paper       here                                   meaning
    γ_T         max_information_gain(kernel, …)        the largest information gain of T points
    L_m         lipschitz_constants(experts, …)        Lipschitz constant of expert m's kernel in c
    L(x)        acquisition_lipschitz(…)               that of μ̄ + β σ̄
    ℓ           lipschitz_ratio                        max_x L(x) / min_x L(x): 1 for stationary kernels
    R_T ≤ …     regret_bound(…)                        Theorem 2, next to T · range, which needs no theorem

``information_gain``, ``beta``, ``rkhs_norm_lower_estimate`` and ``TheoryBeta`` are in ``acquisition.confidence``.

Before you quote a number: on the paper's own problems the bound lies far above the trivial bound T · range, and β = 1.5
does not satisfy its premise. Steps of the proof that a careful reader will raise are in docs/theory.md. The bound is
given as the paper states it; for a real problem choose β by what works.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.confidence import (
    TheoryBeta,
    beta,
    check_positive,
    information_gain,
    information_gain_path,
    posterior_norm,
    realized_gain,
    rkhs_norm_lower_estimate,
)
from edrbo.errors import InvalidValueError
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate
from edrbo.surrogate.exact_gp import ExactGP
from edrbo.surrogate.kernels import Hyperparameters, get_kernel, gram, scaled_sqdist
from edrbo.surrogate.scaling import Scaling

if TYPE_CHECKING:
    pass


__all__ = [
    "FixedSurrogate",
    "MaximumGain",
    "RegretBounds",
    "TheoryBeta",
    "acquisition_lipschitz",
    "beta",
    "information_gain",
    "information_gain_path",
    "lipschitz_constants",
    "max_information_gain",
    "posterior_norm",
    "realized_gain",
    "regret_bound",
    "regret_bounds",
    "rkhs_norm_lower_estimate",
    "section_lipschitz_constants",
    "trivial_bound",
    "unit_kernel",
]


KernelFunction = Callable[[Tensor, Tensor], Tensor]

# ---------------------------------------------------------------- maximum information gain


def unit_kernel(name: str, lengthscale: float | Tensor, shape: float = 1.0) -> KernelFunction:
    """k(a, b) of unit variance: N × d and n × d points give N × n; ``lengthscale`` is a number or one per input."""
    kernel = get_kernel(name)
    scale, alpha = torch.as_tensor(lengthscale, dtype=torch.float64), torch.tensor(shape, dtype=torch.float64)

    def evaluate(a: Tensor, b: Tensor) -> Tensor:
        return kernel.value(scaled_sqdist(a, b, scale.expand(1, a.shape[-1]))[0], alpha)

    return evaluate


@dataclass(frozen=True)
class MaximumGain:
    """``chosen`` rows of the candidates in greedy order, and the information gain of the first 1, 2, … of them.

    The greedy gain is a lower bound of the maximum over the candidates, ``upper`` an upper bound: the gain is monotone
    and submodular, so greedy reaches at least 1 − 1/e of the maximum, and no point gains more than the first. Over a
    continuous domain the maximum can be larger still; refine the candidates until the number settles.
    """

    chosen: Tensor
    gain: Tensor

    @property
    def upper(self) -> Tensor:
        """The smaller of gain/(1 − 1/e) and t · (gain of the first point)."""
        steps = torch.arange(1, len(self.gain) + 1)
        return torch.minimum(self.gain / (1.0 - math.exp(-1.0)), steps * self.gain[0])


def max_information_gain(
    kernel: KernelFunction, candidates: Tensor, steps: int, noise_variance: float, *, halved: bool = False
) -> MaximumGain:
    """Greedy maximum information gain of ``steps`` observations at ``candidates`` (N × d), repeats allowed.

    ``kernel`` has unit variance and maps N × d and n × d points to N × n, as those of ``unit_kernel`` do.
    The next point is the one of largest posterior variance: a Cholesky factor grown by its pivots, O(steps² N).
    """
    check_positive("noise_variance", noise_variance)
    if steps < 1 or len(candidates) == 0:
        raise InvalidValueError(f"{steps!r} steps over {len(candidates)} candidates", "one or more of both")
    rows = candidates.new_zeros(steps, len(candidates))
    variance = candidates.new_ones(len(candidates))
    chosen, gains = [], []
    for t in range(steps):
        j = int(variance.argmax())
        gains.append(math.log1p(float(variance[j]) / noise_variance))
        covariance = kernel(candidates, candidates[j : j + 1]).squeeze(-1) - rows[:t].mT @ rows[:t, j]
        rows[t] = covariance / math.sqrt(float(variance[j]) + noise_variance)
        variance = (variance - rows[t].square()).clamp_min(0.0)
        chosen.append(j)
    gain = torch.tensor(gains, dtype=torch.float64).cumsum(0)
    return MaximumGain(torch.tensor(chosen), 0.5 * gain if halved else gain)


# ---------------------------------------------------------------- Lipschitz constants in c


def lipschitz_constants(experts: Sequence[str], lengthscale: Tensor) -> Tensor:
    """L_m (M) of unit-variance kernels; ``lengthscale`` (M × d_c) is that of the context inputs.

    The constant of the feature map: ‖k_m((x,c), ·) − k_m((x,c'), ·)‖ ≤ L_m ‖c − c'‖ in the RKHS. With it any g in the
    RKHS is ‖g‖ L_m-Lipschitz in c and the scaled σ_m is λ^(−½) L_m-Lipschitz, which is how the paper uses L_m. For a
    radial kernel g(r²) it is √(−2g'(0)) / min_k ℓ_k: 1/ℓ for se and rq, √3/ℓ for matern32, √(5/3)/ℓ for matern52.
    None depends on x. Distances are in coded contexts, the unit cube.
    """
    return _per_lengthscale([get_kernel(name).feature_slope for name in experts], lengthscale)


def section_lipschitz_constants(experts: Sequence[str], lengthscale: Tensor, shape: float = 1.0) -> Tensor:
    """The constant (M) of c ↦ k_m((x,c), ξ') itself: the words "k_m is Lipschitz in c" read literally.

    max_r |dg/dr| / min_k ℓ_k; smaller than ``lipschitz_constants``, and not enough for the paper's use of it.
    """
    return _per_lengthscale([get_kernel(name).section_slope(shape) for name in experts], lengthscale)


def _per_lengthscale(slopes: list[float], lengthscale: Tensor) -> Tensor:
    shortest: Tensor = torch.as_tensor(lengthscale, dtype=torch.float64).amin(-1)
    return torch.tensor(slopes, dtype=torch.float64) / shortest


def acquisition_lipschitz(beta: float, noise_variance: float, constants: Tensor) -> float:
    """L(x) = 2 λ^(−½) β max_m L_m: how fast μ̄ + β σ̄ can change with c. The same at every x for our kernels: ℓ = 1."""
    check_positive("noise_variance", noise_variance)
    return 2.0 * beta / math.sqrt(noise_variance) * float(constants.max())


# ---------------------------------------------------------------- the regret bound


def regret_bound(T: int, gamma: float, beta: float, lipschitz_ratio: float, M: int, delta: float) -> float:
    """22 ℓ β_T √(T (M γ_T + 2 ln(6/δ))): the paper's bound on the cumulative expected regret after T steps.

    ``gamma`` is the maximum information gain without ½ (the realized gain gives a smaller number than the theorem
    allows). Compare with ``trivial_bound`` before you use it: on the paper's problems the trivial one is smaller.
    """
    if T < 1 or M < 1 or not 0 < delta < 1:
        raise InvalidValueError(f"T, M, delta are {T!r}, {M!r}, {delta!r}", "counts, and a probability")
    if not (gamma >= 0 and beta >= 0 and lipschitz_ratio >= 1):
        raise InvalidValueError(
            f"gamma, beta, lipschitz_ratio are {gamma!r}, {beta!r}, {lipschitz_ratio!r}", "at least 0, 0 and 1"
        )
    return 22.0 * lipschitz_ratio * beta * math.sqrt(T * (M * gamma + 2.0 * math.log(6.0 / delta)))


def trivial_bound(T: int, value_range: float) -> float:
    """T · range of the expected value: no run of T steps can regret more."""
    return T * value_range


@dataclass(frozen=True)
class RegretBounds:
    """Cumulative regret after 1, …, T steps, the trivial bound and the theorem's; each of length T."""

    regret: NDArray[np.float64]
    trivial: NDArray[np.float64]
    theorem: NDArray[np.float64]


def regret_bounds(
    model: ExpertEnsemble,
    regret: Sequence[float],
    value_range: float,
    *,
    beta: float,
    noise_variance: float,
    delta: float = 0.05,
) -> RegretBounds:
    """Bounds along a run: ``regret`` (T) is that of the T observations of ``model``, whose kernels count as fixed.

    γ_t is the realized gain, the largest over the experts; the theorem asks for the maximum gain, which is larger, so
    the theorem's bound is at least the one shown. ``noise_variance`` is λ for kernels of unit variance.
    """
    gp, x = model.gp, model.inputs
    steps = range(1, len(regret) + 1)
    if len(regret) != len(x):
        raise InvalidValueError(f"{len(regret)} regrets for {len(x)} observations", "give one for each")
    sqdist = scaled_sqdist(x, x, gp.hyper.lengthscale)
    unit = gram(gp.kernels, sqdist, torch.ones_like(gp.hyper.outputscale), gp.hyper.shape)
    gamma = information_gain_path(unit, noise_variance).amax(0).tolist()
    theorem = [regret_bound(t, g, beta, 1.0, model.num_experts, delta) for t, g in zip(steps, gamma, strict=True)]
    return RegretBounds(np.cumsum(regret), np.array([trivial_bound(t, value_range) for t in steps]), np.array(theorem))


# ---------------------------------------------------------------- the surrogate of the theorems


@dataclass(frozen=True, kw_only=True)
class FixedSurrogate(Surrogate):
    """The surrogate the theorems are about: zero mean, unit-variance kernels fixed beforehand, regularization λ.

    ``lengthscale`` is a number, one per input, or one row per expert, in the unit cube; ``noise_variance`` is λ.
    Outcomes are taken as they are: bring y to mean zero and ordinary size yourself, since B is a bound on the norm of
    *this* y. The theorems know complete observations only: failed evaluations and missing contexts enter roughly.

    ``scaled`` gives the paper's posterior, whose variance is divided by λ. It is the ordinary posterior of a kernel of
    variance 1/λ under noise of variance 1, and that is how it is made: the mean is the same, σ is 1/√λ times as large
    and at most 1/√λ. Choose β, and read the radius, in that scale. Without ``scaled`` σ is the ordinary one.
    """

    fits: ClassVar[bool] = False
    learns_from_earlier: ClassVar[bool] = False

    lengthscale: float | tuple[float, ...] | tuple[tuple[float, ...], ...] = 0.5
    noise_variance: float = 0.01
    shape: float = 1.0
    scaled: bool = True

    def __post_init__(self) -> None:
        check_positive("noise_variance", self.noise_variance)
        if not bool((torch.tensor(self.lengthscale) > 0).all()):
            raise InvalidValueError(f"lengthscale is {self.lengthscale!r}", "give numbers above zero")

    def hyperparameters(self, d: int) -> Hyperparameters:
        """Those of all experts on d inputs."""
        one = torch.ones(len(self.experts), dtype=torch.float64)
        unit = self.noise_variance if self.scaled else 1.0
        try:
            lengthscale = torch.tensor(self.lengthscale, dtype=torch.float64).expand(len(one), d)
        except RuntimeError:
            hint = f"give one, {d} (one per input), or {len(one)} rows of {d}"
            raise InvalidValueError(f"lengthscale is {self.lengthscale!r}", hint) from None
        return Hyperparameters(lengthscale, one / unit, self.noise_variance * one / unit, 0.0 * one, self.shape * one)

    def fit(
        self,
        X: Tensor,
        Y: Tensor,
        Yvar: Tensor | None = None,
        *,
        start: Hyperparameters | None = None,
        cold: bool = True,
    ) -> ExpertEnsemble:
        """Nothing is fitted: the same as ``at``."""
        return self.at(X, Y, Yvar, self.hyperparameters(X.shape[-1]))

    def at(self, X: Tensor, Y: Tensor, Yvar: Tensor | None, hyper: Hyperparameters) -> ExpertEnsemble:
        """Condition on ``X`` (... × n × d), ``Y`` (... × n) at the fixed parameters, whatever ``hyper`` says."""
        kernels = tuple(get_kernel(name) for name in self.experts)
        gp = ExactGP.condition(kernels, self.hyperparameters(X.shape[-1]), X, Y, self._known(Yvar))
        return ExpertEnsemble(gp, Scaling(0.0, 1.0))

    def extend(self, model: ExpertEnsemble, X: Tensor, Y: Tensor, Yvar: Tensor | None = None) -> ExpertEnsemble:
        """``model`` with the rows it lacks, by rows of the factor."""
        old, known = model.gp.x.shape[-2], self._known(Yvar)
        new = None if known is None else known[old:]
        return ExpertEnsemble(model.gp.extend(X[..., old:, :], Y[..., old:], new), model.scaling)

    def _known(self, Yvar: Tensor | None) -> Tensor | None:
        """Known noise variances in the units of the posterior."""
        return None if Yvar is None else Yvar / (self.noise_variance if self.scaled else 1.0)
