"""Distributions on the real line, before clipping: normal, Cauchy, Burr XII, uniform, discrete, mixtures, shifts.

Densities and distribution functions accept complex arguments and are analytic in them between their kinks:
gradients of oracles are taken by the complex step (see :mod:`edrbo.bench.problems.problem`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from edrbo.errors import InvalidValueError

Array = NDArray[np.float64]
# Real in public use; complex during a complex step.
AnyArray = NDArray[Any]


class Distribution(ABC):
    """A distribution on the real line, before clipping."""

    @abstractmethod
    def pdf(self, c: AnyArray) -> AnyArray: ...

    @abstractmethod
    def cdf(self, c: AnyArray) -> AnyArray: ...

    @abstractmethod
    def quantile(self, p: Array) -> Array: ...

    @abstractmethod
    def from_uniform(self, u: Array) -> Array:
        """Turn uniforms on [0, 1) into draws, one for one: shifted distributions share their random numbers."""

    @abstractmethod
    def kinks(self) -> tuple[float, ...]:
        """Points where the density is not smooth; quadrature panels end there."""

    @abstractmethod
    def describe(self) -> str: ...

    def points(self) -> tuple[Array, Array]:
        """Locations and masses, shapes (k,), of single values that carry mass; ``pdf`` is that of the rest."""
        return np.zeros(0), np.zeros(0)


@dataclass(frozen=True)
class Normal(Distribution):
    mean: float
    sd: float

    def __post_init__(self) -> None:
        _require_positive("sd", self.sd)

    def pdf(self, c: AnyArray) -> AnyArray:
        z = (c - self.mean) / self.sd
        return np.asarray(np.exp(-(z**2) / 2) / (self.sd * np.sqrt(2 * np.pi)))

    def cdf(self, c: AnyArray) -> AnyArray:
        return np.asarray(special.ndtr((c - self.mean) / self.sd))

    def quantile(self, p: Array) -> Array:
        return np.asarray(self.mean + self.sd * special.ndtri(p))

    def from_uniform(self, u: Array) -> Array:
        return self.quantile(u)

    def kinks(self) -> tuple[float, ...]:
        return ()

    def describe(self) -> str:
        return f"N({self.mean:g}, {self.sd:g}²)"


@dataclass(frozen=True)
class Cauchy(Distribution):
    location: float
    scale: float

    def __post_init__(self) -> None:
        _require_positive("scale", self.scale)

    def pdf(self, c: AnyArray) -> AnyArray:
        z = (c - self.location) / self.scale
        return np.asarray(1 / (np.pi * self.scale * (1 + z**2)))

    def cdf(self, c: AnyArray) -> AnyArray:
        return np.asarray(0.5 + np.arctan((c - self.location) / self.scale) / np.pi)

    def quantile(self, p: Array) -> Array:
        # The ends are set by hand: tan(±π/2) is only large in floating point, not infinite.
        inner = self.location + self.scale * np.tan(np.pi * (p - 0.5))
        return np.where(p <= 0, -np.inf, np.where(p >= 1, np.inf, inner))

    def from_uniform(self, u: Array) -> Array:
        return self.quantile(u)

    def kinks(self) -> tuple[float, ...]:
        return ()

    def describe(self) -> str:
        return f"Cauchy({self.location:g}, {self.scale:g})"


@dataclass(frozen=True)
class BurrXII(Distribution):
    """Burr XII on (0, ∞): F(c) = 1 − (1 + c^shape)^(−tail)."""

    shape: float
    tail: float

    def __post_init__(self) -> None:
        _require_positive("shape", self.shape)
        _require_positive("tail", self.tail)

    def pdf(self, c: AnyArray) -> AnyArray:
        positive = np.where(np.real(c) > 0, c, 0)
        density = self.shape * self.tail * positive ** (self.shape - 1)
        return np.asarray(density * (1 + positive**self.shape) ** (-self.tail - 1))

    def cdf(self, c: AnyArray) -> AnyArray:
        positive = np.where(np.real(c) > 0, c, 0)
        return np.asarray(1 - (1 + positive**self.shape) ** (-self.tail))

    def quantile(self, p: Array) -> Array:
        # expm1/log1p keep the lower tail exact; p = 1 gives infinity, as it should.
        with np.errstate(divide="ignore"):
            return np.asarray(np.expm1(-np.log1p(-np.asarray(p)) / self.tail) ** (1 / self.shape))

    def from_uniform(self, u: Array) -> Array:
        return self.quantile(u)

    def kinks(self) -> tuple[float, ...]:
        return (0.0,)

    def describe(self) -> str:
        return f"Burr XII({self.shape:g}, {self.tail:g})"


@dataclass(frozen=True)
class Uniform(Distribution):
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _require_positive("high - low", self.high - self.low)

    def pdf(self, c: AnyArray) -> AnyArray:
        inside = (np.real(c) >= self.low) & (np.real(c) <= self.high)
        return np.asarray(inside / (self.high - self.low))

    def cdf(self, c: AnyArray) -> AnyArray:
        z = (c - self.low) / (self.high - self.low)
        return np.where(np.real(z) <= 0, 0, np.where(np.real(z) >= 1, 1, z))

    def quantile(self, p: Array) -> Array:
        return np.asarray(self.low + (self.high - self.low) * p)

    def from_uniform(self, u: Array) -> Array:
        return self.quantile(u)

    def kinks(self) -> tuple[float, ...]:
        return (self.low, self.high)

    def describe(self) -> str:
        return f"U({self.low:g}, {self.high:g})"


@dataclass(frozen=True)
class Discrete(Distribution):
    """Σ_k masses_k δ(c − values_k), values in increasing order."""

    values: tuple[float, ...]
    masses: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.values) != len(self.masses) or not self.values or list(self.values) != sorted(set(self.values)):
            raise InvalidValueError("A discrete distribution needs increasing values and a mass for each.")
        if min(self.masses) <= 0 or abs(sum(self.masses) - 1) > 1e-12:
            raise InvalidValueError("The masses of a discrete distribution must be positive and sum to one.")

    def pdf(self, c: AnyArray) -> AnyArray:
        return np.zeros(np.shape(c))

    def cdf(self, c: AnyArray) -> AnyArray:
        return self._edges()[np.searchsorted(self.values, np.real(c), side="right")]

    def quantile(self, p: Array) -> Array:
        return self._at(np.searchsorted(self._edges()[1:], p, side="left"))

    def from_uniform(self, u: Array) -> Array:
        return self._at(np.searchsorted(self._edges()[1:], u, side="right"))

    def kinks(self) -> tuple[float, ...]:
        return self.values

    def points(self) -> tuple[Array, Array]:
        return np.array(self.values), np.array(self.masses)

    def describe(self) -> str:
        return f"{len(self.values)} values"

    def _edges(self) -> Array:
        """Values of the distribution function, from 0 to 1."""
        edges = np.concatenate([[0.0], np.cumsum(self.masses)])
        edges[-1] = 1.0
        return edges

    def _at(self, index: NDArray[np.intp]) -> Array:
        return np.array(self.values)[np.minimum(index, len(self.values) - 1)]


@dataclass(frozen=True)
class Mixture(Distribution):
    """Σ_k weights_k · parts_k."""

    parts: tuple[Distribution, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.parts) != len(self.weights) or not self.parts:
            raise InvalidValueError("A mixture needs one weight per part.", "give parts and weights alike")
        if min(self.weights) < 0 or abs(sum(self.weights) - 1) > 1e-12:
            raise InvalidValueError("Mixture weights must be non-negative and sum to one.")

    def pdf(self, c: AnyArray) -> AnyArray:
        return np.asarray(sum(w * part.pdf(c) for w, part in zip(self.weights, self.parts, strict=True)))

    def cdf(self, c: AnyArray) -> AnyArray:
        return np.asarray(sum(w * part.cdf(c) for w, part in zip(self.weights, self.parts, strict=True)))

    def quantile(self, p: Array) -> Array:
        """Bisection between the smallest and the largest quantile of the parts, which bracket it."""
        p = np.asarray(p, dtype=float)
        of_parts = np.stack([part.quantile(p) for part in self.parts])
        low, high = of_parts.min(axis=0), of_parts.max(axis=0)
        inner = (p > 0) & (p < 1)
        left, right = np.where(inner, low, 0.0), np.where(inner, high, 0.0)
        for _ in range(200):
            middle = (left + right) / 2
            below = self.cdf(middle) < p
            left, right = np.where(below, middle, left), np.where(below, right, middle)
        return np.where(inner, right, np.where(p <= 0, low, high))

    def from_uniform(self, u: Array) -> Array:
        """One uniform picks the part, and what is left of it is the uniform given to the part."""
        edges = np.concatenate([[0.0], np.cumsum(self.weights)])
        edges[-1] = 1.0
        draws = np.empty_like(u)
        for k, part in enumerate(self.parts):
            mine = (u >= edges[k]) & (u < edges[k + 1])
            draws[mine] = part.from_uniform((u[mine] - edges[k]) / (edges[k + 1] - edges[k]))
        return draws

    def kinks(self) -> tuple[float, ...]:
        return tuple(kink for part in self.parts for kink in part.kinks())

    def points(self) -> tuple[Array, Array]:
        of_parts = [part.points() for part in self.parts]
        masses = [weight * mass for weight, (_, mass) in zip(self.weights, of_parts, strict=True)]
        return np.concatenate([values for values, _ in of_parts]), np.concatenate(masses)

    def describe(self) -> str:
        if len(self.parts) > 3:
            kinds = ", ".join(dict.fromkeys(type(part).__name__ for part in self.parts))
            return f"mixture of {len(self.parts)} ({kinds})"
        named = zip(self.weights, self.parts, strict=True)
        return " + ".join(f"{weight:g}·{part.describe()}" for weight, part in named)


@dataclass(frozen=True)
class Affine(Distribution):
    """The distribution of ``center + shift + spread·(c − center)`` when c follows ``base``."""

    base: Distribution
    shift: float = 0.0
    spread: float = 1.0
    center: float = 0.5

    def __post_init__(self) -> None:
        _require_positive("spread", self.spread)

    def _pull_back(self, c: AnyArray) -> AnyArray:
        return np.asarray(self.center + (c - self.center - self.shift) / self.spread)

    def _push(self, c: Array) -> Array:
        return np.asarray(self.center + self.shift + self.spread * (c - self.center))

    def pdf(self, c: AnyArray) -> AnyArray:
        return np.asarray(self.base.pdf(self._pull_back(c)) / self.spread)

    def cdf(self, c: AnyArray) -> AnyArray:
        return self.base.cdf(self._pull_back(c))

    def quantile(self, p: Array) -> Array:
        return self._push(self.base.quantile(p))

    def from_uniform(self, u: Array) -> Array:
        return self._push(self.base.from_uniform(u))

    def kinks(self) -> tuple[float, ...]:
        return tuple(self._push(np.array(self.base.kinks(), dtype=float)).tolist())

    def points(self) -> tuple[Array, Array]:
        values, masses = self.base.points()
        return self._push(values), masses

    def describe(self) -> str:
        text = self.base.describe()
        if self.spread != 1:
            text += f" spread ×{self.spread:g}"
        return text + (f" shifted by {self.shift:+g}" if self.shift else "")


def _require_positive(name: str, value: float) -> None:
    if not (np.isfinite(value) and value > 0):
        raise InvalidValueError(f"{name} must be a positive number, got {value}.")


def equal_mixture(parts: Sequence[Distribution]) -> Mixture:
    return Mixture(tuple(parts), (1 / len(parts),) * len(parts))
