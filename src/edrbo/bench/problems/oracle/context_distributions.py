"""Distributions of the context on the unit cube: clipped distributions with their atoms, and products of them.

:class:`Clipped` moves the mass a distribution has outside [0, 1] to the nearest end, which leaves atoms at 0
and 1. :class:`Product` joins independent clipped distributions into a distribution on [0, 1]^d_c. Expectations are
deterministic: composite Gauss–Legendre on the interior plus the atoms with their exact masses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from edrbo.bench.problems.oracle.distributions import AnyArray, Array, BurrXII, Distribution, Normal, Uniform
from edrbo.errors import InvalidValueError

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


@dataclass(frozen=True)
class Product:
    """Independent contexts c_1, …, c_d_c, one clipped distribution each."""

    components: tuple[Clipped, ...]

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
