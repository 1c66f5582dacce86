"""The forms in which users hand over points: dicts, rows, columns and data frames, all read into columns.

Designs and contexts share this reader; ``what`` ("design" or "context") and ``error`` say whose words and
which error class to use. Nothing here knows about bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import EdrboError

Array = NDArray[np.float64]
AnyArray = NDArray[Any]


def read_columns(data: Any, names: tuple[str, ...], what: str, error: type[EdrboError]) -> tuple[list[AnyArray], int]:
    """One array of length n per name, in the order of ``names``, and n.

    ``data`` is a dict (one point), a dict of arrays (columns), a sequence of dicts, rows of shape (n,
    len(names)), one such row, a flat sequence when there is a single name, a pandas DataFrame, or a pandas
    Series labeled by the names.
    """
    if hasattr(data, "columns") and hasattr(data, "to_numpy"):
        check_names(list(data.columns), names, what, error)
        return [data[name].to_numpy() for name in names], len(data)
    if _is_labeled_row(data):
        data = dict(zip(data.index, data.to_numpy(), strict=True))
    if isinstance(data, Mapping):
        check_names(data, names, what, error)
        return _from_mapping(data, names, what, error)
    if isinstance(data, list | tuple) and data and isinstance(data[0], Mapping):
        return _from_records(data, names, what, error)
    return _from_rows(data, names, what, error)


def _is_labeled_row(data: Any) -> bool:
    """Whether ``data`` is a pandas Series whose labels are names (a row of a frame) rather than positions."""
    if not (hasattr(data, "index") and hasattr(data, "to_numpy")):
        return False
    return len(data) > 0 and all(isinstance(label, str) for label in data.index)


def _from_mapping(
    data: Mapping[str, Any], names: tuple[str, ...], what: str, error: type[EdrboError]
) -> tuple[list[AnyArray], int]:
    columns = [_as_array(data[name]) for name in names]
    if all(column.ndim == 0 or column.shape == (1,) for column in columns):
        return [column.reshape(1) for column in columns], 1
    lengths = {name: column.shape for name, column in zip(names, columns, strict=True)}
    if any(column.ndim != 1 for column in columns) or len({len(column) for column in columns}) != 1:
        raise error(
            f"the columns of the {what}s differ in shape: {lengths}",
            "give one number per name, or one flat array per name, all of the same length",
        )
    return columns, len(columns[0])


def _from_records(
    data: Sequence[Mapping[str, Any]], names: tuple[str, ...], what: str, error: type[EdrboError]
) -> tuple[list[AnyArray], int]:
    # Equal lengths and successful look-ups imply equal names; testing the sets row by row would be slow for a
    # million rows, so the precise test runs only where this quick one fails.
    try:
        if set(map(len, data)) == {len(names)}:
            return [_as_array(list(map(itemgetter(name), data))) for name in names], len(data)
    except (KeyError, TypeError):
        pass
    for row, record in enumerate(data):
        if not isinstance(record, Mapping):
            raise error(f"row {row} of the {what}s is {record!r}, not a dict", "give dicts or rows, not a mixture")
        check_names(record, names, what, error)
    raise error(f"the {what}s cannot be read", f"give one dict with the names {list(names)} per row")


def _from_rows(data: Any, names: tuple[str, ...], what: str, error: type[EdrboError]) -> tuple[list[AnyArray], int]:
    rows = _as_array(data)
    width = len(names)
    if rows.size == 0 and rows.ndim <= 1:
        rows = rows.reshape(0, width)
    elif width == 1 and rows.ndim <= 1:
        rows = rows.reshape(-1, 1)
    elif rows.ndim == 1:
        rows = rows[None, :]
    if rows.ndim != 2 or rows.shape[1] != width:
        given = "a single value" if rows.ndim == 0 else f"shape {rows.shape}"
        raise error(
            f"a {what} has {width} value{'s' * (width != 1)} but {given} was given",
            f"give the values in the order {list(names)}, or dicts with these names",
        )
    return [rows[:, column] for column in range(width)], len(rows)


def _as_array(values: Any) -> AnyArray:
    """An array that keeps each value as it was given: numbers stay numbers beside strings."""
    try:
        array = np.asarray(values)
    except ValueError:  # ragged
        return _object_array(values)
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        return np.asarray(values, dtype=object)
    return array


def _object_array(values: Any) -> AnyArray:
    items = list(values)
    array = np.empty(len(items), dtype=object)
    for position, item in enumerate(items):
        array[position] = item
    return array


def check_names(given: Iterable[Any], names: tuple[str, ...], what: str, error: type[EdrboError]) -> None:
    """Raise ``error`` unless ``given`` are exactly ``names``, in any order."""
    labels = list(given)
    extra = [label for label in labels if label not in names]
    missing = [name for name in names if name not in labels]
    if extra:
        raise error(
            f"{extra[0]!r} is not a {what} variable",
            close_match(extra[0], names, f"the {what} variables are {list(names)}"),
        )
    if missing:
        raise error(f"the {what} lacks {', '.join(map(repr, missing))}", f"its variables are {list(names)}")
    if len(labels) != len(names):
        raise error(f"a {what} variable is given twice", f"give each of {list(names)} once")


def close_match(label: object, names: Iterable[str], otherwise: str) -> str:
    """A hint that names the known spelling nearest to ``label``, or ``otherwise`` where none is near."""
    from difflib import get_close_matches

    known = list(names)
    match = get_close_matches(str(label), known, n=1) or [
        name for name in known if name.casefold() == str(label).casefold()
    ]
    return f"did you mean {match[0]!r}?" if match else otherwise


def read_numbers(name: str, values: AnyArray, what: str, error: type[EdrboError]) -> Array:
    """``values`` (n,) as finite float64; anything else (text, None, NaN, infinity) is an error."""
    if values.dtype.kind in "iufb":
        with np.errstate(over="ignore"):  # a long double too large for float64 is reported as infinite below
            numbers = values.astype(np.float64)
    elif values.dtype.kind == "O":
        numbers = np.array([_number(name, value, what, error) for value in values], dtype=np.float64)
    else:  # text, dates, complex numbers
        _reject(name, values[0], what, error)
    finite = np.isfinite(numbers)
    if not finite.all():
        row = int(np.argmin(finite))
        _reject(name, values[row], what, error)
    return numbers


def _number(name: str, value: Any, what: str, error: type[EdrboError]) -> float:
    if isinstance(value, str | bytes):
        _reject(name, value, what, error)
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        _reject(name, value, what, error)


def _reject(name: str, value: Any, what: str, error: type[EdrboError]) -> NoReturn:
    shown = value.item() if isinstance(value, np.generic) else value
    raise error(f"{what} variable {name!r} is {shown!r}", "it must be a finite number")
