"""Other ways to fit the experts, for benchmarks/trials.py: what might keep a model from being too sure of itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from edrbo.context.laws import KDE, Law
from edrbo.surrogate.ensemble import Surrogate, _as_rows
from edrbo.surrogate.fit import Likelihood, default_theta, fit, pack, unpack
from edrbo.surrogate.hyperparameters import LogNormal, Priors, ensemble_priors
from edrbo.surrogate.kernels import EXPERTS, KERNELS, Kernel, get_kernel, register
from edrbo.surrogate.scaling import Scaling


def prior(**changes: object) -> Callable[[int], Priors]:
    return lambda d: replace(ensemble_priors(d), **changes)  # type: ignore[arg-type]


def lengths(median: float, scale: float = 0.75) -> Callable[[int], Priors]:
    return prior(lengthscale=LogNormal(math.log(median), scale))


@dataclass(frozen=True)
class Thinned(Surrogate):
    """Hyper-parameters are fitted to ``most`` observations that are far from each other, or to those that are ``apart``
    (unit cube), whichever are more: a crowd around one design counts as few."""

    most: int = 40
    apart: float = 0.0

    def _fit(self, X, Y, Yvar, scaling, start, cold):  # type: ignore[no-untyped-def]
        some = self._some(X)
        kernels, priors = tuple(get_kernel(name) for name in self.experts), self.priors(X.shape[-1])
        x, y, noise, repeats = _as_rows(X[some], scaling.standardize(Y)[some], None)
        theta = default_theta(kernels, X.shape[-1], priors)
        if start is not None:
            theta = torch.cat([pack(start), theta]) if cold else pack(start)
        hyper = fit(kernels, Likelihood(x, y, noise, priors, repeats), theta)
        return self._at(X, Y, Yvar, hyper, scaling)

    def _some(self, X: Tensor) -> Tensor:
        if len(X) <= self.most:
            return torch.arange(len(X))
        points = X.numpy()
        taken = [0]
        away = np.square(points - points[0]).sum(1)
        while len(taken) < len(points):
            at = int(np.round(away, 9).argmax())
            if len(taken) >= self.most and away[at] < self.apart**2:
                break
            taken.append(at)
            away = np.minimum(away, np.square(points - points[at]).sum(1))
            if len(taken) >= self.most and self.apart == 0.0:
                break
        return torch.tensor(sorted(taken))


@dataclass(frozen=True)
class SpreadScaled(Surrogate):
    """Outcomes are standardized by those of ``most`` places far from each other: what was tried over and over tells
    little of how far outcomes are apart."""

    most: int = 40

    def fit(self, X, Y, Yvar=None, *, start=None, cold=True):  # type: ignore[no-untyped-def]
        return self._fit(X, Y, Yvar, self._of(X, Y), start, cold)

    def at(self, X, Y, Yvar, hyper):  # type: ignore[no-untyped-def]
        return self._at(X, Y, Yvar, hyper, self._of(X, Y))

    def extend(self, model, X, Y, Yvar=None):  # type: ignore[no-untyped-def]
        return self._at(X, Y, Yvar, model.gp.hyper, self._of(X, Y))

    def _of(self, X: Tensor, Y: Tensor) -> Scaling:
        some = Thinned(most=self.most)._some(X)
        wide, all_ = Scaling.of(Y[some]), Scaling.of(Y)
        return Scaling(wide.shift, max(wide.scale, all_.scale))


@dataclass(frozen=True)
class Doubled(Surrogate):
    """Each expert once at its mode and once beside it: what is not known of hyper-parameters widens the barycentre."""

    experts: tuple[str, ...] = EXPERTS * 2

    def _fit(self, X, Y, Yvar, scaling, start, cold):  # type: ignore[no-untyped-def]
        names = self.experts[: len(EXPERTS)]
        kernels, priors = tuple(get_kernel(name) for name in names), self.priors(X.shape[-1])
        x, y, noise, repeats = _as_rows(X, scaling.standardize(Y), scaling.noise(Yvar, Y))
        likelihood = Likelihood(x, y, noise, priors, repeats)
        theta = default_theta(kernels, X.shape[-1], priors)
        if start is not None:
            warm = pack(start)[: len(names)]
            theta = torch.cat([warm, theta]) if cold else warm
        mode = pack(fit(kernels, likelihood, theta))
        return self._at(X, Y, Yvar, unpack(torch.cat([mode, self._beside(mode, likelihood)])), scaling)

    def _beside(self, mode: Tensor, likelihood: Likelihood) -> Tensor:
        raise NotImplementedError


@dataclass(frozen=True)
class Drawn(Doubled):
    """A draw of the lengthscales from the Gaussian approximation of their posterior, ``wide`` times as wide."""

    wide: float = 1.0

    def _beside(self, mode: Tensor, likelihood: Likelihood) -> Tensor:
        kernels = tuple(get_kernel(name) for name in EXPERTS)
        _, _, curvature = likelihood.evaluate(mode, kernels, curved=True)
        assert curvature is not None
        z = torch.from_numpy(np.random.default_rng(likelihood.observations).standard_normal(mode.shape))
        step = torch.linalg.solve_triangular(torch.linalg.cholesky(curvature).mT, z.unsqueeze(-1), upper=True)
        step = step.squeeze(-1).clamp(-1.5, 1.5)
        step[:, -3:] = 0.0
        return mode + self.wide * step


@dataclass(frozen=True)
class Rougher(Doubled):
    """The same with ``factor`` times the lengthscales."""

    factor: float = 0.5

    def _beside(self, mode: Tensor, likelihood: Likelihood) -> Tensor:
        rough = mode.clone()
        rough[:, :-3] += math.log(self.factor)
        return rough


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


LAWS: dict[str, Law] = {"kde": KDE(samples=256)}
SURROGATES: dict[str, Surrogate] = {
    "scale": Surrogate(priors=prior(outputscale=LogNormal(0.0, 0.5))),
    "scale1": Surrogate(priors=prior(outputscale=LogNormal(0.5, 1.0))),
    "thin40": Thinned(most=40),
    "thin80": Thinned(most=80),
    "apart.1": Thinned(most=20, apart=0.1),
    "apart.2": Thinned(most=20, apart=0.2),
    "spread40": SpreadScaled(most=40),
    "drawn": Drawn(),
    "drawn2": Drawn(wide=2.0),
    "rougher": Rougher(),
    "prior.5": Surrogate(priors=lengths(0.5)),
    "prior.35": Surrogate(priors=lengths(0.35)),
    "prior1": Surrogate(priors=lengths(1.0)),
    "prior.7n": Surrogate(priors=lengths(0.7, 0.4)),
    "prior.5n": Surrogate(priors=lengths(0.5, 0.4)),
    "prior.35n": Surrogate(priors=lengths(0.35, 0.4)),
    "noise-6": Surrogate(priors=prior(noise=LogNormal(-6.0, 1.5))),
    "evidence": Surrogate(weighting="evidence"),
    "matern": Surrogate(experts=("matern32", "matern52")),
    "matern32": Surrogate(experts=("matern32",)),
    "prior.5noise-6": Surrogate(priors=lambda d: replace(lengths(0.5)(d), noise=LogNormal(-6.0, 1.5))),
    "noise-8": Surrogate(priors=prior(noise=LogNormal(-8.0, 2.0))),
    **{
        f"two{share}/{times}": Surrogate(experts=two_scales(share, times))
        for share in (0.03, 0.1, 0.3)
        for times in (3, 6, 12)
    },
    **{
        f"two{share}/{times}noise-6": Surrogate(
            experts=two_scales(share, times), priors=prior(noise=LogNormal(-6.0, 1.5))
        )
        for share in (0.03, 0.1, 0.3)
        for times in (3, 6, 12)
    },
    "half two0.1/6": Surrogate(experts=("se", "matern52", *two_scales(0.1, 6, ("se", "matern52")))),
    "half two0.3/3": Surrogate(experts=("se", "matern52", *two_scales(0.3, 3, ("se", "matern52")))),
}
