"""Designs that differ in the level of one discrete variable: what the exchange of levels looks at."""

from __future__ import annotations

import torch
from torch import Tensor

from edrbo.space import Space


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
