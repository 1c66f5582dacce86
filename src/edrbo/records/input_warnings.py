"""Warnings about implausible input in Python, given once it is recorded."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import ImplausibleWarning, NarrowContextsWarning
from edrbo.records.descriptions import format_outcome
from edrbo.records.run import Run
from edrbo.records.sanity import Others, doubts
from edrbo.records.state import State
from edrbo.records.validation import read_number
from edrbo.space.context_scale import seen_of_bounds
from edrbo.space.variable import format_value

Array = NDArray[np.float64]

MAX_WARNED_ROWS = 3  # rows of a run that are warned of one by one


def input_warnings(state: State, suggested: Run | None, value: Any, row: Array | None) -> list[Warning]:
    """Of an outcome of a run in its context (d_c), as far as they are reported; ``suggested`` if that design was
    set."""
    context = None if row is None or not state.space.d_c else state.space.name_contexts(row[None])[0]
    number = read_number(value)
    # A context outside its bounds was warned of when it was read.
    texts = doubts(state, suggested, number if math.isfinite(number) else None, context, bounds=False)
    found: list[Warning] = [ImplausibleWarning(f"{text} (kept as it is; correct it if it is wrong)") for text in texts]
    return found + [NarrowContextsWarning(text) for text in newly_narrow(state, row)]


def other_input_warnings(state: State, others: Mapping[str, Any] | None) -> list[Warning]:
    """Of outcomes besides the main one, by name."""
    numbers = {name: read_number(value) for name, value in (others or {}).items()}
    texts = [text for name, n in numbers.items() for text in doubts(state.of_outcome(name), None, n, None)]
    return [ImplausibleWarning(f"{text} (kept as it is; correct it if it is wrong)") for text in texts]


def series_input_warnings(state: State, suggested: Run | None, parts: Mapping[str, Any]) -> list[Warning]:
    """Of several rows at once, as ``Series.fields`` has them: the first that look wrong, and how many more do."""
    others, texts = Others.of(state), list[str]()
    for k, (row, value) in enumerate(zip(parts["contexts"], parts["values"].tolist(), strict=True)):
        context = state.space.known_numbers(row) if state.space.d_c else None
        known = None if math.isnan(value) else value
        texts += [f"row {k}: {text}" for text in others.doubts(suggested, known, context, bounds=False)]
    for name, column in (parts["others_values"] or {}).items():
        others = Others.of(state.of_outcome(name))
        texts += [f"row {k}: {text}" for k, value in enumerate(column) for text in others.doubts(None, value, None)]
    more = [f"{len(texts) - MAX_WARNED_ROWS} more of these rows look wrong"] if len(texts) > MAX_WARNED_ROWS else []
    shown = [*texts[:MAX_WARNED_ROWS], *more]
    return [ImplausibleWarning(f"{text} (kept as it is; correct it if it is wrong)") for text in shown]


def exact_conflict(
    state: State, key: int, x: Array | None, row: Array | None, value: Any, noise_variance: Any
) -> list[Warning]:
    """Of an outcome reported with no noise at all, if another one of the same design (d_x) and context is too."""
    design = x if x is not None else state.runs[key].x if key in state.runs else None
    if read_number(noise_variance) != 0.0 or design is None or (row is None and state.space.d_c):
        return []
    data = state.observations
    same = (data.x == design).all(axis=1) & (data.noise_variance == 0.0) & (data.y != read_number(value))
    same &= (data.c == (np.empty(0) if row is None else row)).all(axis=1)
    if not same.any():
        return []
    place = int(np.argmax(same))
    other = format_outcome(state.settings, float(data.y[place]))
    text = f"run {state.owners[place]} gave {other} at the same design and context, and both were reported with noise=0"
    return [ImplausibleWarning(f"{text}; their difference is taken for noise")]


def warn(found: Sequence[Warning]) -> None:
    """For a method that the user called."""
    for warning in found:
        warnings.warn(warning, stacklevel=3)


def narrow_contexts(state: State, contexts: Array | None = None) -> dict[str, str]:
    """The context variables that fill a sliver of their bounds only, with what that means; of ``contexts`` (n × d_c) or
    of those that outcomes met."""
    data = state.observations
    rows = data.c[data.complete] if contexts is None else contexts
    found = {}
    for k, (name, variable) in enumerate(state.space.context.items()):
        lower, upper = variable.limits()
        if not (variable.numeric and variable.bounded):
            continue
        if seen_of_bounds(lower, upper, rows[:, k], variable.log) is not None:
            ends = float(rows[:, k].min()), float(rows[:, k].max())
            low, high = (format_value(variable, variable.value_of(end)) for end in ends)
            found[name] = (
                f"{name} was {low} to {high} so far, a small part of {variable.describe()}: the model takes its scale "
                "from what was seen; narrower bounds say the same"
            )
    return found


def newly_narrow(state: State, row: Array | None) -> list[str]:
    """What there is to say of that once ``row`` (d_c) is reported, if it was not so before."""
    if row is None or not state.space.d_c or np.isnan(row).any():
        return []
    data = state.observations
    before, rows = narrow_contexts(state), np.concatenate([data.c[data.complete], row[None]])
    return [text for name, text in narrow_contexts(state, rows).items() if name not in before]


def narrow_with(state: State, key: int) -> list[str]:
    """The same of a run that was reported last."""
    data = state.observations
    others = data.complete.copy()
    others[list(state.rows_of(key))] = False
    before = narrow_contexts(state, data.c[others])
    return [text for name, text in narrow_contexts(state).items() if name not in before]
