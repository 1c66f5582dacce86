"""Outcomes so far from all others that they cannot belong to them: they are kept on record and not learned from.

One y of −10,000 among values near 0 would make the unit of every model so large that it sees nothing else. Judged is
each beside the others, by the whole range of these: what is rough or heavy-tailed, a needle or a penalty that somebody
gives every failure stays. ``Settings.outliers`` turns it off.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edrbo.records.robust_spread import is_far
from edrbo.records.state import State

Array = NDArray[np.float64]
Rows = NDArray[np.bool_]

MIN_OTHERS = 9  # others before one can be judged
FAR_RANGES, FAR_RANGES_FEW = 10.0, 100.0  # ranges of the n others between them and an outlier: FAR + FEW / n …
HEAVY = 100.0  # … or, up to this, as many as their farthest is farther from their middle than half of them
SHARE = 20  # one outlier in so many outcomes, or one
# too good to be true is what this many runs so near, in every coded variable, contradict
CONTRADICTION_DISTANCE, CONTRADICTING_RUNS = 0.1, 2


def outliers(state: State) -> Rows:
    """Which of the observations (n) are not to be learned from."""
    data = state.observations
    y = data.y if state.settings.direction == "maximize" else -data.y
    found = np.zeros(len(y), dtype=np.bool_)
    if state.settings.outliers == "keep":
        return found
    for row in _apart(y):
        too_good = y[row] > np.delete(y, row).max()
        explained = any(is_far(np.delete(known, row), known[row]) for known in data.c.T if np.isfinite(known).all())
        if not explained and not (too_good and not _contradicted(data.x, row)):
            found[row] = True
    return found


def _apart(y: Array) -> NDArray[np.intp]:
    """The fewest rows that are far beyond all others; none twice the same, which would be meant."""
    y = y / (float(np.abs(y).max(initial=0.0)) or 1.0)  # so that nothing overflows
    order = np.argsort(-np.abs(y - np.quantile(y, 0.5)), kind="stable") if len(y) else np.zeros(0, dtype=np.intp)
    for count in range(1, min(max(1, len(y) // SHARE), len(y) - MIN_OTHERS) + 1):
        away, body = order[:count], y[order[count:]]
        low, high = float(body.min()), float(body.max())
        gap = np.maximum(low - y[away], y[away] - high)
        # less is needed of none, and quantiles take time
        if not (high > low and (gap > FAR_RANGES * (high - low)).all()):
            continue
        if (gap > _needed(body) * (high - low)).all() and len(np.unique(y[away])) == count:
            return away
    return order[:0]


def _needed(body: Array) -> float:
    """In ranges of ``body``."""
    distance = np.abs(body - np.quantile(body, 0.5))
    half = float(np.quantile(distance, 0.5))
    heavy = HEAVY if half == 0.0 else min(float(distance.max()) / half, HEAVY)
    return max(FAR_RANGES + FAR_RANGES_FEW / len(body), heavy)


def _contradicted(x: Array, row: int) -> bool:
    near = (np.abs(x - x[row]) <= CONTRADICTION_DISTANCE).all(axis=1)
    return int(near.sum()) > CONTRADICTING_RUNS
