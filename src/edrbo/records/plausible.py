"""Is this what was meant? Numbers that look mistyped are questioned before they are stored, never refused.

What is expected comes from the suggestion itself where it says so (``Run.expects``), else from what was told so far:
the middle and the spread of the others, both such that a few wild ones do not move them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from edrbo.records.run import Run
from edrbo.records.state import State
from edrbo.records.words import outcome_words
from edrbo.space.variables import Real, value_words

Array = NDArray[np.float64]

FEWEST = 5  # numbers before anything can be called unusual
FAR = 5.0  # spreads from the middle, and beyond all seen: a context; a normal law goes there once in a million
FAR_VALUE = 8.0  # the same of an outcome: good designs are meant to stand out
FAR_EXPECTED = 3.0  # half-widths of a 95 % interval
SCALES = (100.0, 10.0, 0.1, 0.01)  # a slip of the point, or percent for a share


def doubts(state: State, run: Run | None, value: float | None, context: Mapping[str, float] | None) -> list[str]:
    """Questions about an outcome and a context that are about to be told, one text each; none if all looks well."""
    found = [] if context is None else context_doubts(state, context)
    if value is not None:
        text = _expected_doubt(state, run, value) if run is not None and run.expects else _value_doubt(state, value)
        found += [text] if text else []
    return found


def context_doubts(state: State, context: Mapping[str, float]) -> list[str]:
    """Of one context, by name, in the user's units."""
    found = []
    rows = [row for batch in state.log.batches for row in batch.rows]
    seen = np.array(rows, dtype=np.float64).reshape(len(rows), state.space.d_c)
    for k, (name, variable) in enumerate(state.space.context.items()):
        if name not in context:
            continue
        number = float(context[name])
        words = value_words(variable, number)
        lower = -np.inf if variable.lower is None else variable.lower
        upper = np.inf if variable.upper is None else variable.upper
        if not lower <= number <= upper:
            found.append(f"{name} is {words}, outside {variable.words()}")
        elif _is_far(seen[:, k], number):
            found.append(f"{name} is {words}, far from {_range(variable, seen[:, k])}{_meant(seen[:, k], number)}")
    return found


def _expected_doubt(state: State, run: Run, value: float) -> str | None:
    assert run.expects is not None
    try:
        middle, low, high = (float(run.expects[name]) for name in ("value", "low", "high"))
    except (KeyError, TypeError, ValueError):
        return _value_doubt(state, value)
    reach = FAR_EXPECTED * max(high - middle, middle - low)
    told = state.observations.y
    if not reach > 0 or abs(value - middle) <= reach or not _is_far(told, value, FAR):
        return None
    settings = state.settings
    expected = f"{outcome_words(settings, low)} to {outcome_words(settings, high)}"
    return f"{settings.outcome} is {outcome_words(settings, value)}, expected was {expected}{_meant(told, value)}"


def _value_doubt(state: State, value: float) -> str | None:
    told, settings = state.observations.y, state.settings
    if not _is_far(told, value, FAR_VALUE):
        return None
    ends = f"{outcome_words(settings, float(told.min()))} to {outcome_words(settings, float(told.max()))}"
    words = outcome_words(settings, value)
    return f"{settings.outcome} is {words}, far from the {ends} told so far{_meant(told, value)}"


def _is_far(seen: Array, number: float, far: float = FAR) -> bool:
    if len(seen) < FEWEST:
        return False
    low, middle, high = (float(end) for end in np.quantile(seen, (0.1, 0.5, 0.9)))  # np.median would load numpy.ma
    spread = max(1.4826 * float(np.quantile(np.abs(seen - middle), 0.5)), (high - low) / 2.563)
    spread = max(spread, 1e-3 * abs(middle), 1e-9 * float(np.abs(seen).max(initial=0.0)))
    outside = number < float(seen.min()) or number > float(seen.max())
    return outside and abs(number - middle) > far * spread


def _range(variable: Real, seen: Array) -> str:
    low, high = (value_words(variable, float(end)) for end in (seen.min(), seen.max()))
    return f"the {low} to {high} seen so far"


def _meant(seen: Array, number: float) -> str:
    """A guess at a slip of the decimal point."""
    for scale in SCALES:
        if not _is_far(seen, number * scale, 3.0) and number != 0:
            return f"; did you mean {number * scale:.6g}?"
    return ""
