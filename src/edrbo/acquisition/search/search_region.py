"""Where a search for designs may go, and designs there: quasi-random ones, neighbors, some that are far apart.

A search goes everywhere in the unit cube, or in a region of it. Neighbors differ from a design in the level of one
discrete variable. ``MaximinDistance`` is how far a design is from all that were tried, whatever a model says of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from edrbo.acquisition.objective import Objective
from edrbo.contexts.distributions import sobol_points
from edrbo.space import Region, Space

WALL = 2.0  # a bound counts as tried at so many times its distance: corners are far from all, but seldom good


@dataclass(frozen=True, eq=False)
class MaximinDistance(Objective):
    """The distance of a design from the nearest of ``tried`` (n × d_x), or from a bound if that is nearer.

    Only numbers have bounds (``walled``, d_x); without any, tried designs alone count.
    """

    tried: Tensor
    walled: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """Of designs ``x`` (N × d_x), N numbers; differentiable but where two designs are equally near."""
        apart = (x.unsqueeze(-2) - self.tried).square().sum(-1).amin(-1)
        free = x[:, self.walled]
        if free.shape[1]:
            apart = torch.minimum(apart, WALL**2 * torch.minimum(free, 1.0 - free).square().amin(-1))
        return apart.clamp_min(1e-300).sqrt()


BLOCK = 96  # points whose distances from each other are looked at together


def select_diverse(points: Tensor, values: Tensor, count: int, apart: float) -> Tensor:
    """Indices of the best points, each more than ``apart`` (largest coordinate) from those already taken."""
    order = values.argsort(descending=True, stable=True).numpy()
    columns = points.numpy()[order].T.copy()  # d × N: a maximum over few columns is faster than one along short rows
    taken: list[int] = []  # by rank
    for start in range(0, len(order), BLOCK):  # the best are apart long before the worst are looked at
        block = columns[:, start : start + BLOCK]
        near = np.abs(block[:, :, None] - block[:, None]).max(axis=0) <= apart
        free = (np.abs(columns[:, taken, None] - block[:, None]).max(axis=0) > apart).all(axis=0)
        while len(taken) < count and free.any():
            best = int(free.argmax())
            taken.append(start + best)
            free &= ~near[best]
            free[best] = False  # near itself unless it is not a number
        if len(taken) >= count:
            break
    return torch.from_numpy(order[taken])


def neighbors(space: Space, x: Tensor, most: int = 32) -> Tensor:
    """Designs that differ from ``x`` in one discrete variable; of a long integer range the nearest and a spread."""
    rows = []
    for column in space.columns:
        if column.kind == "real":
            continue
        here = x[column.start : column.stop].numpy()
        levels = torch.from_numpy(space.design[column.name].neighbors(here, most))
        changed = x.repeat(len(levels), 1)
        changed[:, column.start : column.stop] = levels
        rows.append(changed)
    return torch.cat(rows)


@dataclass(frozen=True, eq=False)
class SearchRegion:
    """``region`` is None where nothing limits the designs of ``space``."""

    space: Space
    region: Region | None = None

    @cached_property
    def free(self) -> Tensor:
        """The columns (d_x) that may stop anywhere, as far as the search goes: those of real variables."""
        free = torch.ones(self.space.d_x, dtype=torch.bool)
        for column in self.space.columns:
            free[column.start : column.stop] = column.kind == "real"
        return free if self.region is None else free & torch.from_numpy(self.region.free)

    @property
    def constrained(self) -> bool:
        return self.region is not None and self.region.constrained

    def cloud(self, count: int, seed: int) -> Tensor:
        """Quasi-random designs (N × d_x), in a region at most ``count``."""
        points = sobol_points(self.space.d_x, count, seed)
        if self.region is None:
            return self.admit(points)
        return torch.from_numpy(self.region.points(points.numpy(), count, seed))

    def admit(self, points: Tensor) -> Tensor:
        """Designs with levels that exist near ``points`` (N × d_x); in a region those that can be brought inside."""
        if self.region is not None:
            return torch.from_numpy(self.region.admit(points.numpy()))
        return points if self.space.continuous else torch.from_numpy(self.space.snap(points.numpy()))

    def moved(self, points: Tensor) -> Tensor:
        """``points`` (N × d_x) that differ from a design inside: in a region those that ``free`` can bring inside."""
        if self.region is None:
            return points
        near = self.region.onto(self.region.hold(points.numpy()), self.free.numpy())
        return torch.from_numpy(near[self.region.inside(near)])
