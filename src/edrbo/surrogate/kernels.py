"""Stationary ARD kernels, as functions of the scaled squared distance.

Every expert's kernel is radial: k(ξ, ξ') = s_f · g(r²), r² = Σ_d (ξ_d − ξ'_d)² / ℓ_d². So a kernel is one function g
and its derivative g' = dg/dr²; everything else (Gram matrices, gradients in ξ and in ℓ) is shared. A class holds all
that is known of a kernel; ``register`` adds one.

    paper           here            shape
    k_m             Kernel          one per expert m
    ℓ_m             lengthscale     M × d
    r²              sqdist          ... × M × N × n

``Hyperparameters`` are what a fit chooses: the covariance, noise and mean of every expert. Their hyper-priors are part
of the method, so written down and named. All are densities of the parameter itself (BoTorch's convention: the
log-normal's mode is exp(loc − scale²)).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from edrbo.errors import InvalidValueError, UnknownNameError

SQRT3, SQRT5 = math.sqrt(3.0), math.sqrt(5.0)


class Kernel(ABC):
    """A unit-variance radial kernel g(r²) with its derivatives and constants."""

    name: str  # in code and records
    title: str  # for people
    feature_slope: float  # √(−2g'(0)): how fast ξ ↦ k(ξ, ·) moves in the RKHS, at lengthscale one
    has_shape = False  # whether a shape parameter (the rational quadratic's α) is learnt
    separable = False  # whether g(a + b) = g(a) g(b), and then g' = −g/2

    @abstractmethod
    def value(self, sqdist: Tensor, shape: Tensor) -> Tensor:
        """g(r²), same shape as ``sqdist``."""

    @abstractmethod
    def value_and_slope(self, sqdist: Tensor, shape: Tensor) -> tuple[Tensor, Tensor]:
        """g(r²) and dg/dr²."""

    @abstractmethod
    def section_slope(self, shape: float) -> float:
        """max_r |dg/dr|: how fast ξ ↦ k(ξ, ξ') can change, at lengthscale one."""

    def shape_slope(self, sqdist: Tensor, shape: Tensor, value: Tensor) -> Tensor:
        """dg/dα at fixed r², where g is ``value``."""
        return torch.zeros_like(value)


class SquaredExponential(Kernel):
    name, title = "se", "squared exponential"
    feature_slope = 1.0
    separable = True

    def value(self, sqdist: Tensor, shape: Tensor) -> Tensor:
        return torch.exp(-0.5 * sqdist)

    def value_and_slope(self, sqdist: Tensor, shape: Tensor) -> tuple[Tensor, Tensor]:
        value = self.value(sqdist, shape)
        return value, -0.5 * value

    def section_slope(self, shape: float) -> float:
        return math.exp(-0.5)


class RationalQuadratic(Kernel):
    name, title = "rq", "rational quadratic"
    feature_slope = 1.0
    has_shape = True

    def value(self, sqdist: Tensor, shape: Tensor) -> Tensor:
        return torch.exp(-shape * torch.log1p(sqdist / (2.0 * shape)))

    def value_and_slope(self, sqdist: Tensor, shape: Tensor) -> tuple[Tensor, Tensor]:
        ratio = sqdist / (2.0 * shape)
        value = torch.log1p(ratio).mul_(-shape).exp_()
        return value, value / (ratio + 1.0).mul_(-2.0)

    def section_slope(self, shape: float) -> float:
        alpha = shape
        return math.sqrt(2 * alpha / (2 * alpha + 1)) * float(((2 * alpha + 1) / (2 * alpha + 2)) ** (alpha + 1))

    def shape_slope(self, sqdist: Tensor, shape: Tensor, value: Tensor) -> Tensor:
        ratio = sqdist / (2.0 * shape)
        return value * (ratio / (1.0 + ratio) - torch.log1p(ratio))


class Matern32(Kernel):
    name, title = "matern32", "Matérn 3/2"
    feature_slope = SQRT3

    def value(self, sqdist: Tensor, shape: Tensor) -> Tensor:
        scaled = _root(sqdist, SQRT3)
        return (1.0 + scaled) * torch.exp(-scaled)

    def value_and_slope(self, sqdist: Tensor, shape: Tensor) -> tuple[Tensor, Tensor]:
        scaled = _root(sqdist, SQRT3)
        decay = scaled.neg().exp_()
        return torch.addcmul(decay, scaled, decay), -1.5 * decay

    def section_slope(self, shape: float) -> float:
        return SQRT3 / math.e


class Matern52(Kernel):
    name, title = "matern52", "Matérn 5/2"
    feature_slope = math.sqrt(5.0 / 3.0)

    def value(self, sqdist: Tensor, shape: Tensor) -> Tensor:
        scaled = _root(sqdist, SQRT5)
        return (1.0 + scaled + scaled.square() / 3.0) * torch.exp(-scaled)

    def value_and_slope(self, sqdist: Tensor, shape: Tensor) -> tuple[Tensor, Tensor]:
        scaled = _root(sqdist, SQRT5)
        decay = scaled.neg().exp_()
        linear = torch.addcmul(decay, scaled, decay)
        return torch.addcmul(linear, sqdist, decay, value=5.0 / 3.0), (-5.0 / 6.0) * linear

    def section_slope(self, shape: float) -> float:
        golden = 0.5 * (1.0 + SQRT5)
        return SQRT5 / 3.0 * golden**3 * math.exp(-golden)


def _root(sqdist: Tensor, factor: float) -> Tensor:
    """factor · r. The floor keeps autograd finite at r = 0, where both Matérn kernels are flat in r²."""
    return factor * sqdist.clamp_min(1e-30).sqrt_()


KERNELS: dict[str, Kernel] = {
    kernel.name: kernel for kernel in (SquaredExponential(), RationalQuadratic(), Matern32(), Matern52())
}
EXPERTS = ("se", "rq", "matern32", "matern52")  # the paper's ensemble, whatever else is registered


def register(kernel: Kernel) -> None:
    """Make ``kernel`` known by its name. It is used where it is asked for: ``Surrogate(experts=("se", "mine"))``."""
    if kernel.name in KERNELS:
        raise InvalidValueError(f"a kernel is called {kernel.name!r} already", "give it another name")
    KERNELS[kernel.name] = kernel


def get_kernel(name: str) -> Kernel:
    try:
        return KERNELS[name]
    except KeyError:
        raise UnknownNameError(f"no kernel is called {name!r}", f"choose from {', '.join(KERNELS)}") from None


def scaled_sqdist(a: Tensor, b: Tensor, lengthscale: Tensor) -> Tensor:
    """r² between the rows of ``a`` (... × N × d) and ``b`` (... × n × d) for each expert.

    ``lengthscale`` is M × d; the result is ... × M × N × n. Inputs are centred on the middle of the unit
    cube before the expansion |a|² + |b|² − 2ab, which keeps its rounding error near 1e-15.
    """
    a = (a - 0.5).unsqueeze(-3) / lengthscale.unsqueeze(-2)
    b = (b - 0.5).unsqueeze(-3) / lengthscale.unsqueeze(-2)
    # (a, |a|², 1) · (−2b, 1, |b|²): the whole expansion in one matrix product
    left = torch.cat([a, a.square().sum(-1, keepdim=True), torch.ones_like(a[..., :1])], dim=-1)
    right = torch.cat([-2.0 * b, torch.ones_like(b[..., :1]), b.square().sum(-1, keepdim=True)], dim=-1)
    return (left @ right.mT).clamp_min(0.0)


def gram(kernels: tuple[Kernel, ...], sqdist: Tensor, outputscale: Tensor, shape: Tensor) -> Tensor:
    """s_f · g(r²) for every expert; ``sqdist`` is ... × M × N × n, ``outputscale`` and ``shape`` are M."""
    rows = [kernel.value(sqdist[..., m, :, :], shape[m]) for m, kernel in enumerate(kernels)]
    return torch.stack(rows, dim=-3) * outputscale[:, None, None]


def gram_and_slope(
    kernels: tuple[Kernel, ...], sqdist: Tensor, outputscale: Tensor, shape: Tensor
) -> tuple[Tensor, Tensor]:
    """``gram`` and its derivative in r², both M × P for pairs with ``sqdist`` M × P. Outside of autograd."""
    value, slope = torch.empty_like(sqdist), torch.empty_like(sqdist)
    for m, kernel in enumerate(kernels):
        g, dg = kernel.value_and_slope(sqdist[m], shape[m])
        torch.mul(g, outputscale[m], out=value[m])
        torch.mul(dg, outputscale[m], out=slope[m])
    return value, slope


def noise_ratio(profile: Tensor, points: Tensor) -> Tensor:
    """By how much the noise variance at ``points`` (... × d) is larger than ``noise_variance`` says (...), where it has
    this ``profile`` (d × J)."""
    return (noise_features(points, profile.shape[-1]) * profile).sum((-2, -1)).exp()


def noise_features(points: Tensor, cosines: int) -> Tensor:
    """What the log noise at ``points`` (... × d) is a sum of: the first cosines of each input, ... × d × J;
    beyond the unit cube as at its border."""
    order = torch.arange(1, cosines + 1, dtype=points.dtype)
    return torch.cos(math.pi * order * points.clamp(0.0, 1.0).unsqueeze(-1))


@dataclass(frozen=True)
class LogNormal:
    """log θ ~ N(loc, scale²)."""

    loc: float
    scale: float

    @property
    def mode(self) -> float:
        return math.exp(self.loc - self.scale**2)

    @property
    def median(self) -> float:
        return math.exp(self.loc)


@dataclass(frozen=True)
class Priors:
    """``outputscale=None`` fixes it at one, as BoTorch's own default model does; a None prior is flat."""

    lengthscale: LogNormal | None
    noise_variance: LogNormal | None = LogNormal(-4.0, 1.0)
    outputscale: LogNormal | None = None
    shape: LogNormal | None = LogNormal(0.0, 1.0)
    mean_sd: float = 1.0  # constant mean ~ N(0, mean_sd²) in standardized units


def dimension_scaled(d: int) -> Priors:
    """BoTorch's default since 0.12: lengthscales that grow with √d (Hvarfner et al., 2024)."""
    return Priors(lengthscale=LogNormal(math.sqrt(2.0) + 0.5 * math.log(d), math.sqrt(3.0)))


def ensemble_priors(d: int) -> Priors:
    """EDRBO's: log-normal lengthscales around 0.7 of the unit cube, log-sd 0.75, in any dimension.

    It stands in for what the published program's truncated fit did by accident (docs/methods.md).
    """
    return Priors(lengthscale=LogNormal(math.log(0.7), 0.75))


@dataclass(frozen=True)
class Hyperparameters:
    """Per expert; outputs are standardized, inputs in the unit cube."""

    lengthscale: Tensor  # M × d
    outputscale: Tensor  # M
    noise_variance: Tensor  # M: variance
    mean: Tensor  # M
    shape: Tensor  # M: α of the rational quadratic, unused by the others
    power: float = 1.0  # of the outcomes' warping, of all experts together
    half_life: float | None = None  # of f itself, in runs, of all experts together; None: f stays
    noise_profile: Tensor | None = None  # d × J: how the noise varies over the inputs (``noise``); None: it does not
    noise_doubt: Tensor | None = None  # d·J × d·J: the covariance of what is not known of that
    correlation: Tensor | None = None  # M × S: of f with what each of S earlier sources measured
    source_noise: Tensor | None = None  # M × S: variance, in units of the source's own spread
    source_mean: Tensor | None = None  # M × S

    @property
    def sources(self) -> int:
        """S."""
        return 0 if self.correlation is None else self.correlation.shape[-1]

    def to_dict(self) -> dict[str, Any]:
        """JSON types; ``from_dict`` gives the same numbers back exactly."""
        names = (*_PER_EXPERT, *(_PER_SOURCE if self.sources else ()))
        drift = {} if self.half_life is None else {"half_life": None if math.isinf(self.half_life) else self.half_life}
        both = {"noise_profile": self.noise_profile, "noise_doubt": self.noise_doubt}
        varies = {name: part.tolist() for name, part in both.items() if part is not None}
        return {name: getattr(self, name).tolist() for name in names} | {"power": self.power} | drift | varies

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Hyperparameters:
        named = {"noise_variance" if name == "noise" else name: value for name, value in record.items()}  # of 0.2
        names = (*_PER_EXPERT, *(_PER_SOURCE if "correlation" in named else ()))
        tensors: dict[str, Any] = {name: torch.tensor(named[name], dtype=torch.float64) for name in names}
        half_life = record.get("half_life", 0.0)
        half_life = math.inf if half_life is None else half_life or None  # JSON knows no infinity
        for name in ("noise_profile", "noise_doubt"):
            part = record.get(name)
            tensors[name] = None if part is None else torch.tensor(part, dtype=torch.float64)
        return cls(**tensors, power=record.get("power", 1.0), half_life=half_life)  # earlier records lack them

    def expert(self, m: int) -> Hyperparameters:
        """Those of expert m alone, M = 1."""
        row = slice(m, m + 1 or None)
        names = (*_PER_EXPERT, *(_PER_SOURCE if self.sources else ()))
        return replace(self, **{name: getattr(self, name)[row] for name in names})


_PER_EXPERT = ("lengthscale", "outputscale", "noise_variance", "mean", "shape")
_PER_SOURCE = ("correlation", "source_noise", "source_mean")
