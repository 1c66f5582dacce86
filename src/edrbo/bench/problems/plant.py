"""Plants of many variables whose mean is exact: earnings less losses, each a function of one weighted sum.

f(x, c) = base + g·x − Σ_i w_i φ_i(a_i·x + r_i·c − s_i), where φ is a square (off a target), an exponential (what gets
out of hand) or 1 − cos (what comes and goes). Whole numbers enter by their place in [0, 1], a choice by one number a
level.
The mean over independent contexts needs their moments and transforms alone:

    E (u + r·c)²        = u² + 2u E r·c + E (r·c)²
    E exp(u + r·c)      = exp(u) Π_k E exp(r_k c_k)
    E cos(u + r·c)      = cos(u) Re z − sin(u) Im z,   z = Π_k E exp(i r_k c_k)

Without waves −f is convex in x, so E f is concave between levels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from edrbo.bench.problems.oracle.distributions import AnyArray, Array, Product
from edrbo.errors import InvalidValueError
from edrbo.space import Space

Shape = Literal["square", "exp", "wave"]
Weights = Mapping[str, float | Sequence[float]]  # by variable; of a choice one number a level


@dataclass(frozen=True)
class Loss:
    """``weight`` · φ(of − at), φ of this ``shape`` of a weighted sum ``of`` designs and contexts."""

    shape: Shape
    weight: float
    of: Weights
    at: float = 0.0


@dataclass(frozen=True, eq=False)
class Plant:
    """The losses as arrays: ``weights`` and ``offsets`` (k,), ``designs`` (k × d_x), ``contexts`` (k × d_c)."""

    base: float
    gains: Array
    shapes: tuple[Shape, ...]
    weights: Array
    designs: Array
    contexts: Array
    offsets: Array

    @classmethod
    def of(cls, space: Space, contexts: Sequence[str], base: float, earnings: Weights, losses: Sequence[Loss]) -> Plant:
        rows = [_row(space, contexts, loss.of) for loss in losses]
        gains, outside = _row(space, contexts, earnings)
        if outside.any():
            raise InvalidValueError("a context earns nothing by itself", "let it meet a design in a loss")
        return cls(
            base,
            gains,
            tuple(loss.shape for loss in losses),
            np.array([loss.weight for loss in losses]),
            np.array([design for design, _ in rows]),
            np.array([context for _, context in rows]),
            np.array([loss.at for loss in losses]),
        )

    def _are(self, shape: Shape) -> list[int]:
        return [i for i, one in enumerate(self.shapes) if one == shape]

    def value(self, x: AnyArray, c: AnyArray) -> AnyArray:
        """(…, d_x), (…, d_c) → (…)."""
        u = x @ self.designs.T + c @ self.contexts.T - self.offsets
        squares, exps, waves = (u[..., self._are(shape)] for shape in ("square", "exp", "wave"))
        lost = self._weighted("square", squares**2) + self._weighted("exp", np.exp(exps))
        return np.asarray(self.base + x @ self.gains - lost - self._weighted("wave", 1 - np.cos(waves)))

    def _weighted(self, shape: Shape, terms: AnyArray) -> AnyArray:
        return np.asarray(terms @ self.weights[self._are(shape)])

    def expected(self, x: AnyArray, context_distribution: Product) -> AnyArray:
        """(n, d_x) → (n,), real or complex."""
        mean, second, growth, turn = _transforms(self, context_distribution)
        u = x @ self.designs.T - self.offsets
        squares, exps, waves = (u[:, self._are(shape)] for shape in ("square", "exp", "wave"))
        lost = self._weighted("square", squares**2 + 2 * squares * mean + second)
        lost = lost + self._weighted("exp", np.exp(exps) * growth)
        swing = np.cos(waves) * turn.real - np.sin(waves) * turn.imag
        return np.asarray(self.base + x @ self.gains - lost - self._weighted("wave", 1 - swing))


def _row(space: Space, contexts: Sequence[str], of: Weights) -> tuple[Array, Array]:
    """Weights by name as weights of the coded columns (d_x,) and of the contexts (d_c,)."""
    design, context = np.zeros(space.d_x), np.zeros(len(contexts))
    places = {column.name: slice(column.start, column.stop) for column in space.columns}
    for name, weight in of.items():
        if name in places:
            design[places[name]] = weight
        else:
            context[list(contexts).index(name)] = weight
    return design, context


@lru_cache(maxsize=64)
def _transforms(plant: Plant, context_distribution: Product) -> tuple[Array, Array, Array, AnyArray]:
    """E r·c and E (r·c)² of the squares, E exp(r·c) of the exponentials, E exp(i r·c) of the waves."""
    squares, exps, waves = (plant.contexts[plant._are(shape)] for shape in ("square", "exp", "wave"))
    rules = [component.quadrature() for component in context_distribution.components]
    means = np.array([weights @ nodes for nodes, weights in rules])
    variances = np.array([weights @ (nodes - mean) ** 2 for (nodes, weights), mean in zip(rules, means, strict=True)])
    growth, turn = np.ones(len(exps)), np.ones(len(waves), dtype=complex)
    for k, (nodes, weights) in enumerate(rules):
        growth = growth * (np.exp(exps[:, k, None] * nodes) @ weights)
        turn = turn * (np.exp(1j * waves[:, k, None] * nodes) @ weights)
    mean = squares @ means
    return mean, mean**2 + squares**2 @ variances, growth, turn
