"""The best points of a cloud of which no two are close."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

BLOCK = 96  # points whose distances from each other are looked at together


def best_apart(points: Tensor, values: Tensor, count: int, apart: float) -> Tensor:
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
