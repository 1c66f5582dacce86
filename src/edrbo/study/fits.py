"""Hyper-parameters kept between processes.

A fit belongs to the observations it was made on. It is used only where these come first, bit for bit, in the present
ones; then going on from it and computing everything anew give the same numbers (surrogate/schedule.py).
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import Any

import numpy as np

from edrbo import __version__
from edrbo.errors import StudyError
from edrbo.optimizer.optimizer import Optimizer
from edrbo.records.observations import Observations
from edrbo.records.state import State
from edrbo.study.ledger import Ledger
from edrbo.surrogate.exact_gp import Hyperparameters


class Fits:
    """The stored fit of a study, and the rules for its use."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._saved = 0  # rows of the fit stored last

    def restore(self, optimizer: Optimizer, state: State) -> None:
        """Give ``optimizer`` the state just read, and keep its model where the data allow it."""
        if same_state(optimizer.state, state):
            return
        old = optimizer.observations
        if optimizer.fit is not None and begins_with(state.observations, old):
            optimizer.restore(state, optimizer.fit)
        else:
            optimizer.restore(state, self._load(state.observations))

    def _load(self, observations: Observations) -> tuple[int, Any] | None:
        record = self._ledger.load_fit()
        if record is None or record["version"] != __version__:
            return None
        count = record["observations"]
        if count > len(observations) or record["digest"] != digest(observations, count):
            return None
        return record["rows"], Hyperparameters.from_dict(record)

    def save(self, optimizer: Optimizer) -> None:
        """Store the present fit, if it is a new one and the study may be written."""
        if optimizer.fit is None or optimizer.fit[0] <= self._saved:
            return
        rows, hyper = optimizer.fit
        count = len(optimizer)
        record = {
            "version": __version__,
            "observations": count,
            "digest": digest(optimizer.observations, count),
            "rows": rows,
            **hyper.to_dict(),
        }
        with suppress(StudyError):  # nothing is lost but time
            self._ledger.save_fit(record)
            self._saved = rows


def digest(observations: Observations, count: int) -> str:
    """A fingerprint of the first ``count`` observations."""
    parts = (observations.x, observations.c, observations.y, observations.noise)
    text = b"".join(np.ascontiguousarray(part[:count]).tobytes() for part in parts)
    return hashlib.sha256(text).hexdigest()


def begins_with(observations: Observations, start: Observations) -> bool:
    """Whether ``start`` comes first, bit for bit, in ``observations``."""
    count = len(start)
    return count <= len(observations) and digest(observations, count) == digest(start, count)


def same_state(one: State, other: State) -> bool:
    """Whether two states hold the same data, bit for bit."""
    if one is other:
        return True
    if one.asked != other.asked or one.told != other.told or len(one.observations) != len(other.observations):
        return False
    if digest(one.observations, len(one.observations)) != digest(other.observations, len(one.observations)):
        return False
    for mine, theirs in ((one.pending, other.pending), (one.failed, other.failed)):
        if list(mine) != list(theirs) or any(not np.array_equal(mine[key], theirs[key]) for key in mine):
            return False
    if len(one.log.batches) != len(other.log.batches):
        return False
    return all(
        a.count == b.count and np.array_equal(a.rows, b.rows) and np.array_equal(a.weights, b.weights)
        for a, b in zip(one.log.batches, other.log.batches, strict=True)
    )
