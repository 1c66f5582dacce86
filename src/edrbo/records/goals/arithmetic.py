"""Arithmetic on NumPy arrays and torch tensors alike; ``torch`` is loaded only by those who pass tensors."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from edrbo.errors import InvalidValueError

Array = Any  # a NumPy array or a torch tensor; what comes out is of the kind that came in
Direction = Literal["maximize", "minimize"]


def sign_of(direction: Direction) -> float:
    if direction not in ("maximize", "minimize"):
        raise InvalidValueError(f"direction is {direction!r}", 'write "maximize" or "minimize"')
    return 1.0 if direction == "maximize" else -1.0


def module_of(array: Array) -> Any:
    """``numpy`` or ``torch``, whichever the array belongs to; both have the elementwise functions by the same names."""
    if isinstance(array, np.ndarray | np.generic | float):
        return np
    import torch

    return torch


def from_worst(outcomes: Array, weights: Array) -> tuple[Array, Array]:
    """Outcomes from the worst on, and their probabilities (... × m both)."""
    order = outcomes.argsort(-1)
    numeric = module_of(outcomes)
    return along(outcomes, order), along(numeric.broadcast_to(weights, outcomes.shape), order)


def along(rows: Array, index: Array) -> Array:
    """rows[..., index], index by index."""
    numeric = module_of(rows)
    return np.take_along_axis(rows, index, -1) if numeric is np else numeric.take_along_dim(rows, index, -1)


def mean_and_sd(outcomes: Array, weights: Array) -> tuple[Array, Array]:
    numeric = module_of(outcomes)
    mean = (weights * outcomes).sum(-1)
    variance = (weights * (outcomes - mean[..., None]) ** 2).sum(-1)
    positive = variance > 0  # the root's slope at zero must not spoil a gradient
    return mean, numeric.sqrt(numeric.where(positive, variance, variance * 0.0 + 1.0)) * positive


def as_numpy(rows: Array) -> Array:
    """Without its gradient; many small operations are faster there."""
    return rows if isinstance(rows, np.ndarray) else rows.detach().numpy()


def like(values: Array, rows: Array) -> Array:
    """NumPy's ``values`` as what ``rows`` are."""
    return values if isinstance(rows, np.ndarray) else module_of(rows).from_numpy(values)


def smooth_step(distance: Array, sd: Array) -> Array:
    """Φ(distance / sd): 0 below, 1 above."""
    return normal_cdf(distance / module_of(sd).clip(sd, 1e-150, None))


def normal_cdf(z: Array) -> Array:
    if module_of(z) is np:
        from scipy.special import ndtr

        return ndtr(z)
    import torch

    return torch.special.ndtr(z)


def soft_positive(value: Array, scale: Array) -> Array:
    """E max(N(value, scale²), 0): the positive part, its corner rounded off."""
    z = value / module_of(scale).clip(scale, 1e-150, None)
    density = module_of(z).exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return scale * density + value * normal_cdf(z)
