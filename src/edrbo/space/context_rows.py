"""Contexts between the user's words and rows of numbers.

A row (d_c) holds one number for each context variable, in the user's units; of a categorical it is the position of the
choice. What is not known of a context is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import InvalidContextError
from edrbo.space.context_scale import ContextScale
from edrbo.space.point_tables import AnyArray, Array, read_columns
from edrbo.space.variable import Scalar, Variable

Contexts = Sequence[tuple[str, Variable]]


def read_rows(variables: Contexts, given: Any, *, partial: bool = False) -> Array:
    """(n, d_c) of contexts as a user gives them.

    ``partial``: of each context something is known, but not all need be; what is None or left out is NaN, and so is an
    empty cell of a data frame.
    """
    names = tuple(name for name, _ in variables)
    columns, count = read_columns(completed(given, names) if partial else given, names, "context", InvalidContextError)
    raw = np.full((count, len(variables)), np.nan)
    for k, ((name, variable), values) in enumerate(zip(variables, columns, strict=True)):
        known = _known(values, frame=hasattr(given, "columns")) if partial else np.ones(count, dtype=np.bool_)
        if known.any() or not partial:
            raw[known, k] = variable.numbers(name, values[known])
    if partial and len(names) and np.isnan(raw).all(axis=1).any():
        raise InvalidContextError("nothing is known of a context", "leave the context out, or give some of it")
    return raw


def completed(given: Any, names: tuple[str, ...]) -> Any:
    """Dicts and data frames with all ``names``, None for what they lack."""
    if hasattr(given, "columns") and hasattr(given, "reindex"):
        return given.reindex(columns=[*given.columns, *(name for name in names if name not in given.columns)])
    if isinstance(given, Mapping):
        missing = [name for name in names if name not in given]
        columns = [part for part in given.values() if isinstance(part, list | tuple | np.ndarray)]
        rows = [len(part) for part in columns if not isinstance(part, np.ndarray) or part.ndim]
        return {**given, **dict.fromkeys(missing, [None] * rows[0] if rows else None)} if missing else given
    if isinstance(given, list | tuple) and given and all(isinstance(row, Mapping) for row in given):
        wanted = len(names)
        if all(len(row) == wanted for row in given):
            return given
        return [row if len(row) == wanted else {**dict.fromkeys(names), **row} for row in given]
    return given


def _known(values: AnyArray, *, frame: bool) -> NDArray[np.bool_]:
    """Which of ``values`` (n) say something. NaN is a mistake, but for a data frame, where it is an empty cell."""
    if values.dtype.kind == "O":
        return np.array([not _is_nothing(value, frame) for value in values], dtype=np.bool_)
    return ~np.isnan(values) if frame and values.dtype.kind == "f" else np.ones(len(values), dtype=np.bool_)


def _is_nothing(value: Any, frame: bool) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (frame and value != value)


def check_levels(variables: Contexts, raw: Array) -> str | None:
    """What is wrong with rows (n, d_c) from a record: a choice that does not exist, a fraction of a whole number."""
    for k, (name, variable) in enumerate(variables):
        if flaw := variable.flaw(name, raw[~np.isnan(raw[:, k]), k]):
            return flaw
    return None


def describe_outside(variables: Contexts, raw: Array) -> list[str]:
    """Which variables leave their bounds in rows (n, d_c), one text each."""
    notes = []
    for (name, variable), values in zip(variables, raw.T, strict=True):
        lower, upper = variable.limits()
        values = values[~np.isnan(values)]
        with np.errstate(over="ignore"):  # an infinite excess is an excess
            excess = np.maximum(lower - values, values - upper)
        count = int((excess > 0).sum())
        if count:
            worst = variable.value_of(float(values[np.argmax(excess)]))
            times = "once" if count == 1 else f"{count} times"
            notes.append(f"{name!r} leaves [{lower!r}, {upper!r}] {times}, worst {worst!r}")
    return notes


def name_rows(variables: Contexts, raw: Array) -> list[dict[str, Scalar]]:
    """Rows (n, d_c) as dicts by name, in the user's values, without what is not known."""
    return [
        {
            name: variable.value_of(number)
            for (name, variable), number in zip(variables, row, strict=True)
            if not math.isnan(number)
        }
        for row in raw.tolist()
    ]


def scale_of(variables: Contexts, raw: Array) -> ContextScale:
    """The coding of each variable: its bounds, or a range learned from what is known of it in rows ``raw`` (n, d_c)."""
    ranges = [variable.coded_range(raw[~np.isnan(raw[:, k]), k]) for k, (_, variable) in enumerate(variables)]
    lower, upper = np.array(ranges, dtype=np.float64).reshape(-1, 2).T
    return ContextScale(
        lower,
        upper,
        tuple(variable.log for _, variable in variables),
        tuple(variable.size > 0 for _, variable in variables),
        tuple(variable.width if variable.width > 1 else 0 for _, variable in variables),
    )


def numbers_of(variables: Contexts, context: Mapping[str, Any]) -> dict[str, float]:
    """Some of a context by name, in the user's values, as the numbers of a row."""
    known = dict(variables)
    return {name: float(known[name].numbers(name, _one(value))[0]) for name, value in context.items()}


def _one(value: Any) -> AnyArray:
    array = np.empty(1, dtype=object)
    array[0] = value
    return array
