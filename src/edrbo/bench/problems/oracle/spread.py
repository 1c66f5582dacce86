"""How f(x, ·) is distributed when the context varies: its distribution function, quantiles and tails, without draws.

The cube is cut into cells whose masses under P are exact. Within a cell f is taken as linear, so that its values there
are spread evenly: over f(center) ± slope·width/2 with one context variable, over an interval of the same variance with
several. Atoms of P are cells without width. The error is of the second order in the width of the cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from edrbo.bench.problems.oracle.context_distributions import Clipped, Product, gauss_legendre, panel_edges
from edrbo.bench.problems.oracle.distributions import Array
from edrbo.errors import InvalidValueError

# Cells a line for one, two, three context variables; a rough look takes a fraction of them.
CELLS = {1: 16384, 2: 256, 3: 48}
ROUGH_CELLS = {1: 256, 2: 40, 3: 12}
NODES_PER_CELL = 4
BISECTIONS = 60
PRUNE_EVERY = 8


@dataclass(frozen=True, eq=False)
class Cells:
    """Of a distribution: for each context variable the cells' centers (their conditional means) and widths, and all
    masses."""

    centers: tuple[Array, ...]
    widths: tuple[Array, ...]
    masses: Array  # (m_1 ⋯ m_d_c,)


@lru_cache(maxsize=32)
def cells_of(context_distribution: Product, breaks: tuple[float, ...], rough: bool = False) -> Cells:
    sizes = ROUGH_CELLS if rough else CELLS
    if context_distribution.d_c not in sizes:
        raise InvalidValueError(
            f"the goals over {context_distribution.d_c} context variables are not known exactly",
            "problems of one to three have them",
        )
    lines = [_line(component, breaks, sizes[context_distribution.d_c]) for component in context_distribution.components]
    masses = lines[0][2]
    for _, _, more in lines[1:]:
        masses = masses[..., None] * more
    return Cells(tuple(line[0] for line in lines), tuple(line[1] for line in lines), masses.reshape(-1))


def _line(context_distribution: Clipped, breaks: tuple[float, ...], size: int) -> tuple[Array, Array, Array]:
    """Centers, widths and masses of one context variable, atoms among them; cells without mass are left out."""
    edges = panel_edges((*breaks, *context_distribution.base.kinks()), size)
    nodes, weights = gauss_legendre(edges, NODES_PER_CELL)
    density = (weights * context_distribution.density(nodes)).reshape(len(edges) - 1, -1)
    masses = np.diff(context_distribution.base.cdf(edges))
    values, points = context_distribution.base.points()  # which are edges: each counts for the cell that it ends
    for value, mass in zip(values[(values > 0) & (values <= 1)], points[(values > 0) & (values <= 1)], strict=True):
        cell = int(np.searchsorted(edges, value)) - 1
        masses[cell] = max(0.0, masses[cell] - mass)
    middle = (edges[1:] + edges[:-1]) / 2
    moments, totals = (density * nodes.reshape(density.shape)).sum(1), density.sum(1)
    centers = np.where(totals > 0, moments / np.where(totals > 0, totals, 1.0), middle)
    locations, atoms = context_distribution.atoms()
    centers, masses = np.concatenate([centers, locations]), np.concatenate([masses, atoms])
    widths = np.concatenate([np.diff(edges), 0.0 * locations])
    order = np.argsort(centers, kind="stable")
    order = order[masses[order] > 0]
    return centers[order], widths[order], masses[order] / masses.sum()


@dataclass(frozen=True, eq=False)
class Spread:
    """f of one design as a mixture of even spreads: ``centers`` ± ``halves`` with ``masses``, (m,) each."""

    centers: Array
    halves: Array
    masses: Array

    @property
    def mean(self) -> float:
        return float(self.centers @ self.masses)

    @property
    def variance(self) -> float:
        return float(((self.centers - self.mean) ** 2 + self.halves**2 / 3) @ self.masses)

    def share_below(self, level: float) -> float:
        """P(f < level)."""
        above = level - (self.centers - self.halves)
        width = 2 * self.halves
        share = np.where(width > 0, above / np.where(width > 0, width, 1.0), above > 0)
        return float(np.clip(share, 0.0, 1.0) @ self.masses)

    def mean_below(self, level: float) -> float:
        """E max(level − f, 0)."""
        short = level - self.centers
        inside = np.abs(short) < self.halves
        halves = np.where(inside, self.halves, 1.0)
        return float(np.where(inside, (short + halves) ** 2 / (4 * halves), np.maximum(short, 0)) @ self.masses)

    def quantile(self, share: float) -> float:
        """The least value that f stays at or below with probability ``share``.

        By bisection; now and then cells that lie wholly on one side of the bracket are taken out of it.
        """
        wanted, part = share * (1 - 1e-12), self
        low, high = float((self.centers - self.halves).min()), float((self.centers + self.halves).max())
        for step in range(1, BISECTIONS + 1):
            middle = (low + high) / 2
            # A hair above the middle, so that a plateau of f counts as reached where it lies.
            if part.share_below(float(np.nextafter(middle, np.inf))) >= wanted:
                high = middle
            else:
                low = middle
            if step % PRUNE_EVERY == 0:
                below = part.centers + part.halves < low
                wanted -= float(part.masses[below].sum())
                kept = ~below & (part.centers - part.halves <= np.nextafter(high, np.inf))
                part = Spread(part.centers[kept], part.halves[kept], part.masses[kept])
        return high

    def tail_mean(self, share: float) -> float:
        """The mean of f over its lowest ``share``: max_t t − E max(t − f, 0)/share, reached at the quantile."""
        level = self.quantile(share)
        return level - self.mean_below(level) / share


def spread_of(values: Array, cells: Cells) -> Spread:
    """The spread of f from its values (m_1 ⋯ m_d_c,) at the cells' centers."""
    shape = tuple(len(line) for line in cells.centers)
    table = values.reshape(shape)
    variance = np.zeros(shape)
    for axis, (line, widths) in enumerate(zip(cells.centers, cells.widths, strict=True)):
        if len(line) > 1:
            slope = np.gradient(table, line, axis=axis)
            variance += (slope * widths.reshape([-1 if k == axis else 1 for k in range(len(shape))])) ** 2 / 12
    return Spread(values, np.sqrt(3 * variance).reshape(-1), cells.masses)
