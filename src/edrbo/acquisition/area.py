"""Where a search for designs may go: everywhere in the unit cube, or in a region of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from edrbo.context.laws import sobol_points
from edrbo.space import Region, Space


@dataclass(frozen=True, eq=False)
class Area:
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
