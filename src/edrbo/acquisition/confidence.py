"""How wide a confidence band must be: Lemma 1 of the paper.

With probability at least 1 − δ, |μ̄_t(ξ) − f(ξ)| ≤ β_t σ̄_t(ξ) at every ξ and every t, where

    β_t = max_m [ B_m + R √(2 (γ_{m,t} + 1 + ln(M/δ))) ]

    paper      here                      meaning
    B_m        B                         bound on the norm of f in the RKHS of expert m, kernel of unit variance
    R          R                         sub-Gaussian scale of the noise: its standard deviation, if it is Gaussian
    γ_{m,t}    realized_gain(model)      information gain, log det(I + K_m/λ)
    λ          noise                     regularization: what a GP calls the noise variance
    σ_m        sd / √λ                   the paper divides the posterior variance by λ

About the numbers. B and R are premises: nobody can compute them from data, and what is estimated here in their place
is an estimate, not a bound. The information gain is usually defined with a factor ½, which the paper drops; that makes
β larger, so the lemma stays true. As stated it needs λ ≤ 1. A β that satisfies the lemma is far above the 1.5 of the
paper's experiments and explores far too much: for results choose a number, for a guarantee ``"theory"``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from edrbo.errors import InvalidValueError
from edrbo.surrogate.ensemble import ExpertEnsemble
from edrbo.surrogate.exact_gp import safe_cholesky
from edrbo.surrogate.scaling import Warping


def information_gain(gram: Tensor, noise_variance: float, *, halved: bool = False) -> Tensor:
    """log det(I + K/λ) of Gram matrices ``gram`` (... × n × n); gives ....

    This is the paper's definition. ``halved`` gives the usual one, ½ log det(I + K/λ): the mutual information of
    outcomes and function.
    """
    return information_gain_path(gram, noise_variance, halved=halved)[..., -1]


def information_gain_path(gram: Tensor, noise_variance: float, *, halved: bool = False) -> Tensor:
    """``information_gain`` of the first 1, 2, …, n rows (... × n), all from one Cholesky factor."""
    check_positive("noise_variance", noise_variance)
    chol = torch.linalg.cholesky(gram / noise_variance + torch.eye(gram.shape[-1], dtype=gram.dtype))
    path: Tensor = chol.diagonal(dim1=-2, dim2=-1).log().cumsum(-1)
    return path if halved else 2.0 * path


def realized_gain(model: ExpertEnsemble, *, halved: bool = False) -> Tensor:
    """The information gain (M) of the data a model has seen, each expert's by its own kernel and noise; O(n)."""
    gain = model.gp.information_gain()
    return 0.5 * gain if halved else gain


def beta(B: Tensor | float, R: Tensor | float, gamma: Tensor | float, M: int, delta: float) -> float:
    """β = max_m [B_m + R √(2(γ_m + 1 + ln(M/δ)))]; ``B``, ``R`` and ``gamma`` are numbers or one per expert (M).

    ``B`` is your bound on the RKHS norm and ``R`` your noise scale. The lemma is as good as these two.
    """
    if M < 1 or not 0 < delta < 1:
        raise InvalidValueError(f"M is {M!r}, delta is {delta!r}", "M counts experts, delta is a probability")
    norm, scale, gain = (torch.as_tensor(value, dtype=torch.float64) for value in (B, R, gamma))
    for name, value in (("B", norm), ("R", scale), ("gamma", gain)):
        if not bool((value.isfinite() & (value >= 0)).all()):
            raise InvalidValueError(f"{name} is {value.tolist()!r}", "it is a finite number, not below zero")
    return float((norm + scale * (2.0 * (gain + 1.0 + math.log(M / delta))).sqrt()).max())


def rkhs_norm_lower_estimate(gram: Tensor, values: Tensor) -> Tensor:
    """√(yᵀK⁻¹y): the least norm (...) of a function with noiseless ``values`` (... × n) at points of ``gram``.

    ‖f‖ is at least this, for noiseless data; how much more, no data can say. With noise it says nothing.
    """
    half = torch.linalg.solve_triangular(safe_cholesky(gram), values.unsqueeze(-1), upper=False)
    norm: Tensor = half.squeeze(-1).square().sum(-1).sqrt()
    return norm


def posterior_norm(model: ExpertEnsemble) -> Tensor:
    """‖μ_m − prior mean‖ (M) in the RKHS of the unit-variance kernel, in standardized units.

    For noiseless data it is never above the norm of f, so it is a lower estimate too, and it bears noise.
    """
    gp = model.gp
    alpha, fitted = gp.fitted
    return (gp.hyper.outputscale * (alpha * fitted).sum(-1).clamp_min(0.0)).sqrt()


@dataclass(frozen=True)
class TheoryBeta:
    """β_t by Lemma 1, from the data a model has seen; ``UCB(beta=TheoryBeta(B=2.0, R=0.1))``.

    ``B`` (a number, or one per expert) and ``R`` are in units of y; B bounds the norm of f minus the model's constant
    mean. With both given, and kernels fixed before the data (``theory.FixedSurrogate``), the lemma applies. What is
    left out is filled in from the fit, B by ``posterior_norm`` and R by the noise the expert believes in: then β has
    the lemma's form and its growth, but it is no guarantee. Nor is it one with kernels fitted to the same data.

    Scores multiply the model's own σ, which is √noise times the paper's; β is divided by that, so the band β σ is the
    paper's whatever the noise. For λ > 1 the norm counts √λ times, without which the lemma does not hold.
    """

    B: float | tuple[float, ...] | None = None
    R: float | None = None
    delta: float = 0.1
    halved: bool = False

    def __call__(self, model: ExpertEnsemble) -> float:
        if isinstance(model.scaling, Warping):
            raise InvalidValueError("the theory's beta is not for warped outcomes", "use a Surrogate")
        hyper, unit = model.gp.hyper, model.scaling.scale
        root = hyper.noise_variance.sqrt()
        norm = posterior_norm(model) if self.B is None else torch.as_tensor(self.B, dtype=torch.float64) / unit
        scale = root if self.R is None else self.R / unit
        large = (hyper.noise_variance / hyper.outputscale).clamp_min(1.0).sqrt()
        gain = realized_gain(model, halved=self.halved)
        return beta(norm * large / root, scale / root, gain, model.num_experts, self.delta)


def check_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise InvalidValueError(f"{name} is {value!r}", "it is a finite number above zero")
