"""Designs before there is a model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edrbo.context.laws import sobol_points
from edrbo.space import Region, Space

Array = NDArray[np.float64]

BLOCK = 64  # designs that fill a region together, and
CLOUD = 1024  # quasi-random points from which they are taken


def initial_design(space: Space, index: int, seed: int, region: Region | None = None) -> Array:
    """Number ``index`` of a quasi-random sequence of designs (d_x); ``region`` in place of the space's own."""
    region = space.region if region is None else region
    if region is None:
        points = sobol_points(space.d_x, index + 1, seed)
        design: Array = space.snap(points[-1].numpy())
        return design
    count = BLOCK * (index // BLOCK + 1)
    found = region.points(sobol_points(space.d_x, CLOUD * (index // BLOCK + 1), seed).numpy(), count, seed)
    chosen: Array = found[index % len(found)]
    return chosen
