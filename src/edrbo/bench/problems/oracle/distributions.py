"""Distributions on the real line, before clipping: normal, Cauchy, Burr XII, uniform, discrete, mixtures, shifts.

Densities and distribution functions accept complex arguments and are analytic in them between their kinks:
gradients of oracles are taken by the complex step (see :mod:`edrbo.bench.problems.problem`).

Distributions of the context on the unit cube: clipped distributions with their atoms, and products of them.

A context distribution that is no product is a list of contexts (:class:`Scenarios`) or a sampler (:class:`MonteCarlo`).

:class:`Clipped` moves the mass a distribution has outside [0, 1] to the nearest end, which leaves atoms at 0
and 1. :class:`Product` joins independent clipped distributions into a distribution on [0, 1]^d_c. Expectations are
deterministic: composite Gauss–Legendre on the interior plus the atoms with their exact masses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

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


PANELS = 64
NODES_PER_PANEL = 16


def panel_edges(breaks: tuple[float, ...] = (), panels: int = PANELS) -> Array:
    """Edges of equal panels on [0, 1], split further at every one of ``breaks`` that lies inside."""
    edges = np.unique(np.concatenate([np.linspace(0.0, 1.0, panels + 1), np.asarray(breaks, dtype=float)]))
    return edges[(edges >= 0) & (edges <= 1)]


def gauss_legendre(edges: Array, order: int = NODES_PER_PANEL) -> tuple[Array, Array]:
    """``order`` Gauss–Legendre nodes and weights on each panel between consecutive ``edges``."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    return (middle[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()


@dataclass(frozen=True)
class Clipped:
    """``base`` with the values outside [0, 1] moved to the nearest end."""

    base: Distribution

    def from_uniform(self, u: Array) -> Array:
        """Draws from uniforms, one for one."""
        return np.clip(self.base.from_uniform(u), 0.0, 1.0)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """n draws, shape (n,)."""
        return self.from_uniform(rng.random(n))

    def cdf(self, c: Array) -> Array:
        c = np.asarray(c, dtype=float)
        inside = self.base.cdf(np.clip(c, 0.0, 1.0))
        return np.where(c < 0, 0.0, np.where(c >= 1, 1.0, inside))

    def quantile(self, p: Array) -> Array:
        return np.clip(self.base.quantile(np.asarray(p, dtype=float)), 0.0, 1.0)

    def density(self, c: AnyArray) -> AnyArray:
        """Density of the part of the distribution that lies strictly inside (0, 1), but for single points with mass."""
        return self.base.pdf(c)

    def atoms(self) -> tuple[Array, Array]:
        """Locations and masses, shapes (k,), of the ends and the single points inside that carry mass."""
        values, masses = self.base.points()
        inside, at_one = (values > 0) & (values < 1), float(masses[values == 1].sum())
        ends = [float(self.base.cdf(np.array(0.0))), 1 - float(self.base.cdf(np.array(1.0))) + at_one]
        locations = np.concatenate([[0.0], values[inside], [1.0]])
        weights = np.concatenate([ends[:1], masses[inside], ends[1:]])
        return locations[weights > 0], weights[weights > 0]

    def quadrature(
        self, breaks: tuple[float, ...] = (), panels: int = PANELS, order: int = NODES_PER_PANEL
    ) -> tuple[Array, Array]:
        """Nodes in increasing order and weights, shapes (m,), with the atoms among them."""
        return _quadrature(self, breaks, panels, order)

    def expected_minimum(self, x: AnyArray) -> AnyArray:
        """E min(x, c) = ∫₀ˣ P(c > t) dt for x in [0, 1], exact in spite of the kink at c = x."""
        edges, below = _survival_integral(self)
        panel = np.clip(np.searchsorted(edges, np.real(x), side="right") - 1, 0, len(edges) - 2)
        left = edges[panel]
        nodes, weights = np.polynomial.legendre.leggauss(NODES_PER_PANEL)
        half = np.asarray((x - left) / 2)
        t = left[..., None] + half[..., None] * (1 + nodes)
        return np.asarray(below[panel] + half * ((1 - self.base.cdf(t)) @ weights))

    def describe(self) -> str:
        values, masses = self.base.points()
        below = float(self.base.cdf(np.array(0.0))) - masses[values == 0].sum()
        clipped = " clipped" if below > 0 or float(self.base.cdf(np.array(1.0))) < 1 else ""
        return self.base.describe() + clipped


@lru_cache(maxsize=256)
def _quadrature(
    context_distribution: Clipped, breaks: tuple[float, ...], panels: int, order: int
) -> tuple[Array, Array]:
    nodes, weights = gauss_legendre(panel_edges((*breaks, *context_distribution.base.kinks()), panels), order)
    locations, masses = context_distribution.atoms()
    weights = weights * context_distribution.density(nodes)
    if context_distribution.base.points()[0].size:  # where points carry the mass, most nodes may have none
        nodes, weights = nodes[weights > 0], weights[weights > 0]
    nodes, weights = np.concatenate([nodes, locations]), np.concatenate([weights, masses])
    increasing = np.argsort(nodes)
    nodes, weights = nodes[increasing], weights[increasing]
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


@lru_cache(maxsize=256)
def _survival_integral(context_distribution: Clipped) -> tuple[Array, Array]:
    """Panel edges and ∫₀^edge P(c > t) dt at each of them."""
    edges = panel_edges(context_distribution.base.kinks())
    nodes, weights = gauss_legendre(edges)
    pieces = (weights * (1 - context_distribution.base.cdf(nodes))).reshape(len(edges) - 1, -1).sum(axis=1)
    return edges, np.concatenate([[0.0], np.cumsum(pieces)])


class JointDistribution(ABC):
    """A distribution of contexts on [0, 1]^d_c."""

    exact: ClassVar[bool] = True  # whether expectations by ``quadrature`` have no error of chance
    components: tuple[Clipped, ...] = ()  # of independent contexts, one for each; of others none

    @property
    @abstractmethod
    def d_c(self) -> int: ...

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """n draws, shape (n, d_c)."""

    @abstractmethod
    def quadrature(self, breaks: tuple[float, ...] = ()) -> tuple[Array, Array]:
        """Contexts (m, d_c) and weights (m,) that stand for it."""

    @abstractmethod
    def describe(self) -> str: ...


@dataclass(frozen=True, eq=False)
class Scenarios(JointDistribution):
    """Finitely many contexts: data, levels, or anything else that can be listed. ``points`` (m, d_c), ``weights`` (m,)
    or all alike."""

    points: Array
    weights: Array | None = None

    def __post_init__(self) -> None:
        points = np.asarray(self.points, dtype=float)
        masses = np.ones(len(points)) if self.weights is None else np.asarray(self.weights, dtype=float)
        if points.ndim != 2 or points.size == 0 or not ((points >= 0) & (points <= 1)).all():
            raise InvalidValueError(f"contexts of shape {points.shape}", "give m × d_c numbers between 0 and 1")
        if masses.shape != points.shape[:1] or not (masses >= 0).all() or not 0 < masses.sum() < np.inf:
            raise InvalidValueError(f"weights of shape {masses.shape}", "give one for each context, none negative")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "weights", masses / masses.sum())

    @property
    def d_c(self) -> int:
        return int(self.points.shape[1])

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        _, weights = self.quadrature()
        edges = np.cumsum(weights)
        rows = np.searchsorted(edges, rng.random(n) * edges[-1], side="right")
        return np.asarray(self.points[np.minimum(rows, len(weights) - 1)])

    def quadrature(self, breaks: tuple[float, ...] = ()) -> tuple[Array, Array]:
        assert self.weights is not None
        return self.points, self.weights

    def describe(self) -> str:
        return f"{len(self.points)} contexts"


@dataclass(frozen=True, eq=False)
class MonteCarlo(JointDistribution):
    """Any distribution that can be drawn from: ``draw(n, rng)`` gives (n, d_c) numbers between 0 and 1.

    Expectations are means over ``size`` draws that never change; ``Problem.standard_error`` says how far they are off.
    """

    exact = False

    draw: Callable[[int, np.random.Generator], Array]
    size: int = 4096
    name: str = "drawn"

    @cached_property
    def points(self) -> Array:
        """What expectations are taken over."""
        return self.sample(self.size, np.random.default_rng(0))

    @property
    def d_c(self) -> int:
        return int(self.points.shape[1])

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        drawn = np.asarray(self.draw(n, rng), dtype=float)
        if drawn.ndim != 2 or len(drawn) != n or not ((drawn >= 0) & (drawn <= 1)).all():
            raise InvalidValueError(f"{n} draws of shape {drawn.shape}", "give n × d_c numbers between 0 and 1")
        return drawn

    def quadrature(self, breaks: tuple[float, ...] = ()) -> tuple[Array, Array]:
        return self.points, np.full(self.size, 1.0 / self.size)

    def describe(self) -> str:
        return f"{self.name}, by {self.size} draws"


@dataclass(frozen=True)
class Product(JointDistribution):
    """Independent contexts c_1, …, c_d_c, one clipped distribution each."""

    components: tuple[Clipped, ...] = ()

    def __post_init__(self) -> None:
        if not self.components:
            raise InvalidValueError("A context distribution needs at least one component.")

    @property
    def d_c(self) -> int:
        return len(self.components)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """n draws, shape (n, d_c); the first k of n draws are the k draws of a smaller request."""
        uniforms = rng.random((n, self.d_c))
        return np.stack(
            [
                context_distribution.from_uniform(uniforms[:, j])
                for j, context_distribution in enumerate(self.components)
            ],
            axis=1,
        )

    def quadrature(
        self, breaks: tuple[float, ...] = (), panels: int = PANELS, order: int = NODES_PER_PANEL
    ) -> tuple[Array, Array]:
        """Tensor rule: nodes (m, d_c) and weights (m,)."""
        return tensor_rule(
            [context_distribution.quadrature(breaks, panels, order) for context_distribution in self.components]
        )

    def describe(self) -> str:
        first = self.components[0]
        if self.d_c > 1 and all(context_distribution == first for context_distribution in self.components):
            return f"iid {first.describe()}"
        return " × ".join(context_distribution.describe() for context_distribution in self.components)


def tensor_rule(rules: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """The product of rules on lines (nodes and weights of shape (m_k,)): nodes (m, d_c) and weights (m,)."""
    weights = rules[0][1]
    for _, more in rules[1:]:
        weights = weights[..., None] * more
    return tensor_nodes([nodes for nodes, _ in rules]), weights.reshape(-1)


def tensor_nodes(lines: Sequence[Array]) -> Array:
    """All nodes of the product of lines (m_k,), the last varying fastest: (m_1 ⋯ m_d_c, d_c)."""
    return np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, len(lines))


def clipped_normal(mean: float, sd: float) -> Clipped:
    return Clipped(Normal(mean, sd))


def clipped_burr(shape: float, tail: float) -> Clipped:
    return Clipped(BurrXII(shape, tail))


def uniform() -> Clipped:
    return Clipped(Uniform(0.0, 1.0))


def iid(context_distribution: Clipped, d_c: int = 1) -> Product:
    """The distribution of d_c independent contexts that all follow ``context_distribution``."""
    return Product((context_distribution,) * d_c)
