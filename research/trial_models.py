"""Other models for research/trials.py: what might keep a model from being too sure of itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from edrbo.contexts.distributions import KDE, ContextDistribution
from edrbo.surrogate.ensemble import Surrogate
from edrbo.surrogate.kernels import EXPERTS, KERNELS, Kernel, LogNormal, Priors, ensemble_priors, get_kernel, register


def prior(**changes: object) -> Callable[[int], Priors]:
    return lambda d: replace(ensemble_priors(d), **changes)  # type: ignore[arg-type]


def lengths(median: float, scale: float = 0.75) -> Callable[[int], Priors]:
    return prior(lengthscale=LogNormal(math.log(median), scale))


class TwoScales(Kernel):
    """(1 − share) g(r²) + share g(times² r²): most of f varies slowly, a share of it ``times`` as fast."""

    def __init__(self, base: Kernel, share: float, times: float) -> None:
        self.name, self.title = f"{base.name} {share}/{times}", f"{base.title} on two scales"
        self.base, self.share, self.square = base, share, times**2
        self.has_shape = base.has_shape
        self.feature_slope = base.feature_slope * math.sqrt(1.0 - share + share * self.square)

    def value(self, sqdist: Tensor, shape: Tensor) -> Tensor:
        long, short = self.base.value(sqdist, shape), self.base.value(self.square * sqdist, shape)
        return torch.lerp(long, short, self.share)

    def value_and_slope(self, sqdist: Tensor, shape: Tensor) -> tuple[Tensor, Tensor]:
        long, long_slope = self.base.value_and_slope(sqdist, shape)
        short, short_slope = self.base.value_and_slope(self.square * sqdist, shape)
        return torch.lerp(long, short, self.share), torch.lerp(long_slope, self.square * short_slope, self.share)

    def section_slope(self, shape: float) -> float:
        return self.base.section_slope(shape) * (1.0 - self.share + self.share * math.sqrt(self.square))

    def shape_slope(self, sqdist: Tensor, shape: Tensor, value: Tensor) -> Tensor:
        parts = (self.base.shape_slope(s, shape, self.base.value(s, shape)) for s in (sqdist, self.square * sqdist))
        return torch.lerp(*parts, self.share)


def two_scales(share: float, times: float, names: tuple[str, ...] = EXPERTS) -> tuple[str, ...]:
    kernels = [TwoScales(get_kernel(name), share, times) for name in names]
    for kernel in kernels:
        if kernel.name not in KERNELS:
            register(kernel)
    return tuple(kernel.name for kernel in kernels)


CONTEXT_DISTRIBUTIONS: dict[str, ContextDistribution] = {"kde": KDE(samples=256)}
SURROGATES: dict[str, Surrogate] = {
    "scale": Surrogate(priors=prior(outputscale=LogNormal(0.0, 0.5))),
    "scale1": Surrogate(priors=prior(outputscale=LogNormal(0.5, 1.0))),
    "prior.5": Surrogate(priors=lengths(0.5)),
    "prior.35": Surrogate(priors=lengths(0.35)),
    "prior1": Surrogate(priors=lengths(1.0)),
    "prior.7n": Surrogate(priors=lengths(0.7, 0.4)),
    "prior.5n": Surrogate(priors=lengths(0.5, 0.4)),
    "prior.35n": Surrogate(priors=lengths(0.35, 0.4)),
    "noise-6": Surrogate(priors=prior(noise_variance=LogNormal(-6.0, 1.5))),
    "evidence": Surrogate(weighting="evidence"),
    "matern": Surrogate(experts=("matern32", "matern52")),
    "matern32": Surrogate(experts=("matern32",)),
    "prior.5noise-6": Surrogate(priors=lambda d: replace(lengths(0.5)(d), noise_variance=LogNormal(-6.0, 1.5))),
    "noise-8": Surrogate(priors=prior(noise_variance=LogNormal(-8.0, 2.0))),
    **{
        f"two{share}/{times}": Surrogate(experts=two_scales(share, times))
        for share in (0.03, 0.1, 0.3)
        for times in (3, 6, 12)
    },
    **{
        f"two{share}/{times}noise-6": Surrogate(
            experts=two_scales(share, times), priors=prior(noise_variance=LogNormal(-6.0, 1.5))
        )
        for share in (0.03, 0.1, 0.3)
        for times in (3, 6, 12)
    },
    "half two0.1/6": Surrogate(experts=("se", "matern52", *two_scales(0.1, 6, ("se", "matern52")))),
    "half two0.3/3": Surrogate(experts=("se", "matern52", *two_scales(0.3, 3, ("se", "matern52")))),
}
