"""``records.compression`` for tensors: a distribution of many weighted atoms by one of few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.records import compression

__all__ = ["Compressed", "compress"]


@dataclass(frozen=True, eq=False)
class Compressed:
    """A small distribution; ``error`` and ``w1`` are its Wasserstein-2 and -1 distances from the one it stands for."""

    atoms: Tensor  # k × d_c
    weights: Tensor  # k
    error: float
    w1: float


def compress(
    atoms: Tensor, weights: Tensor, size: int, seed: int = 0, discrete: NDArray[np.bool_] | None = None
) -> Compressed:
    """At most ``size`` weighted atoms for the distribution (``atoms``: n × d_c, ``weights``: n); ``discrete`` columns
    (d_c) keep their levels."""
    points, mass = (part.detach().to(torch.float64).numpy() for part in (atoms, weights))
    small = compression.compress(points, mass, size, seed, discrete)
    return Compressed(torch.from_numpy(small.atoms), torch.from_numpy(small.weights), small.error, small.w1)
