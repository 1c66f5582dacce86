"""Designs that differ in the level of one discrete variable: what the exchange of levels looks at."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.space import Space

Array = NDArray[np.float64]


def neighbors(space: Space, x: Tensor, most: int = 32) -> Tensor:
    """Designs that differ from ``x`` in one discrete variable; of a long integer range the nearest and a spread."""
    rows = []
    for column in space.columns:
        if column.kind == "real":
            continue
        levels = torch.from_numpy(_some_levels(space, column.name, column.size, x[column.start : column.stop], most))
        changed = x.repeat(len(levels), 1)
        changed[:, column.start : column.stop] = levels
        rows.append(changed)
    return torch.cat(rows)


def _some_levels(space: Space, name: str, size: int, current: Tensor, most: int) -> Array:
    if size <= most:
        return space.levels(name)
    # a long integer: its neighbors on both sides at doubling distances, and an even spread of the range
    step = 1.0 / size
    offsets = step * 2.0 ** np.arange(0, int(np.log2(size)))
    coded = np.concatenate([float(current[0]) + offsets, float(current[0]) - offsets, np.linspace(0, 1, most // 2)])
    column = next(c for c in space.columns if c.name == name)
    probe = np.full((len(coded), space.d_x), 0.5)
    probe[:, column.start] = np.clip(coded, 0.0, 1.0)
    return space.snap(probe)[:, column.start : column.stop]
