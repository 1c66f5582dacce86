"""Outcomes of one design in one context that differ, all told with no noise: then there is noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def reconciled(inputs: Array, y: Array, noise: Array) -> Array:
    """Noise variances (n, NaN where not known) of outcomes ``y`` (n) at ``inputs`` (n × d), where those told as zero at
    one input are the variance of what was found there."""
    exact = np.flatnonzero(noise == 0.0)
    if len(exact) < 2:
        return noise
    found = noise.copy()
    _, group = np.unique(inputs[exact], axis=0, return_inverse=True)
    for number in np.flatnonzero(np.bincount(group.ravel()) > 1):
        rows = exact[group.ravel() == number]
        found[rows] = y[rows].var(ddof=1)
    return found
