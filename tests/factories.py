"""What tests of several packages make or compare."""

from __future__ import annotations

import numpy as np

from edrbo.records.context_log import ContextBatch
from edrbo.records.run import Run
from edrbo.records.state import State


def same_state(one: State, other: State) -> bool:
    """Whether two states say the same of every run and every context, bit for bit, whatever led to them."""
    simple = ("settings", "reported_order", "complete_order", "suggested", "next_id")
    if any(getattr(one, name) != getattr(other, name) for name in simple) or len(one.seen) != len(other.seen):
        return False
    if one.runs.keys() != other.runs.keys():
        return False
    same_runs = all(_same_run(run, other.runs[key]) for key, run in one.runs.items())
    return same_runs and all(_same_entry(a, b) for a, b in zip(one.seen, other.seen, strict=True))


def _same_run(one: Run, other: Run) -> bool:
    simple = (
        "status",
        "value",
        "control",
        "measured",
        "noise_variance",
        "suggested",
        "dropped",
        "why",
        "others",
        "others_noise_variance",
        "cost",
    )
    if any(getattr(one, name) != getattr(other, name) for name in simple):
        return False
    if (one.context is None) != (other.context is None) or not np.array_equal(one.x, other.x):
        return False
    if one.series is not None and other.series is not None:
        return one.series.same(other.series)
    if one.series is not None or other.series is not None:
        return False
    return one.context is None or other.context is None or np.array_equal(one.context, other.context, equal_nan=True)


def _same_entry(one: int | ContextBatch, other: int | ContextBatch) -> bool:
    if isinstance(one, ContextBatch) and isinstance(other, ContextBatch):
        arrays = np.array_equal(one.rows, other.rows, equal_nan=True) and np.array_equal(one.weights, other.weights)
        return arrays and one.count == other.count and one.summary == other.summary
    return one == other
