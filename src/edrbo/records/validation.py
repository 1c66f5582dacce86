"""What a field of an event may hold. Plain Python and NumPy numbers are taken; text, booleans and nonsense are not."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import InvalidContextError, InvalidDesignError, InvalidEventError, InvalidValueError
from edrbo.records.events import KINDS, Event
from edrbo.space import Space
from edrbo.space.space import check_levels

Array = NDArray[np.float64]

LARGEST_ID = 2**53  # what every reader of JSON holds exactly
SNAP_TOLERANCE = 1e-9  # how far a coded design may be from a point of its space
LONGEST_TEXT = 10_000
LARGEST_COST = 1e100  # so that sums of them are numbers
LATEST = 1e11  # seconds since 1970: the year 5138


def plain(event: Any) -> Event:
    """The event with every field in plain types, which nobody else can change: what is kept can be stored and read."""
    if type(event) not in KINDS.values():
        raise InvalidEventError(f"{type(event).__name__} is no event", "see edrbo.records.events")
    check_texts(event)
    parts = {part.name: getattr(event, part.name) for part in fields(event)}
    read = {name: READERS[name](name, given) for name, given in parts.items() if name in READERS}
    checked: Event = replace(event, **read)
    return checked


def read_id(given: Any) -> int:
    """The number of a run."""
    try:
        key = None if isinstance(given, bool | np.bool_) else operator.index(given)
    except TypeError:
        key = None
    if key is None or abs(key) > LARGEST_ID:
        raise InvalidEventError(f"{given!r} is not the number of a run", "give a Suggestion or its id")
    return key


def read_number(given: Any) -> float:
    """A float, also of an array or a pandas column that holds one number; NaN for what is no number."""
    if hasattr(given, "to_numpy"):
        given = given.to_numpy()
    if isinstance(given, np.ndarray) and given.size == 1:
        given = given.item()
    if isinstance(given, bool | np.bool_ | str | bytes):
        return math.nan
    try:
        return float(given) if np.ndim(given) == 0 else math.nan
    except (TypeError, ValueError, OverflowError):
        return math.nan


def holds_unusable(given: Any) -> bool:
    """Whether a number in ``given`` is NaN or infinite, as simulators say that they failed."""
    if given is None or isinstance(given, str | bytes):
        return False
    if isinstance(given, Mapping):
        return any(map(holds_unusable, given.values()))
    if np.iterable(given):
        return any(map(holds_unusable, given))
    try:
        return not math.isfinite(given)
    except (TypeError, ValueError, OverflowError):
        return False  # no number, which ``tell`` refuses in words


def read_value(given: Any, what: str = "value") -> float:
    """An outcome, or what a control run gave."""
    number = read_number(given)
    if not math.isfinite(number):
        hint = (
            "give a number, not text"
            if isinstance(given, str)
            else "give a finite number, or tell a failed run as failed"
        )
        raise InvalidValueError(f"the {what} is {given!r}", hint)
    return number


def read_noise(given: Any) -> float | None:
    """A variance, or None if it is not known."""
    if given is None:
        return None
    number = read_number(given)
    if not (math.isfinite(number) and number >= 0):
        raise InvalidValueError(
            f"the noise variance is {given!r}", "it is one number of zero or more; leave it out if it is not known"
        )
    return number


def read_cost(given: Any) -> float | None:
    """What a run cost, or None if that is not known."""
    if given is None:
        return None
    number = read_number(given)
    if not 0 <= number <= LARGEST_COST:
        raise InvalidValueError(f"the cost is {given!r}", "it is one number of zero or more, in a unit of your own")
    return number


def read_others(name: str, given: Any) -> dict[str, float] | None:
    """Outcomes by name, or with "noise" in ``name`` their variances; None without any."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise InvalidEventError(f"the field {name!r} of an event is {type(given).__name__}", "it is numbers by name")
    read: Callable[[Any], float | None] = read_noise if "noise_variance" in name else read_value
    found = {key: number for key, part in given.items() if (number := read(part)) is not None}
    check_characters(name, "".join(found))
    return found or None


def read_columns(name: str, given: Any) -> dict[str, list[float | None]] | None:
    """Rows of outcomes by name, or with "noise" in ``name`` their variances; None where there is none."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise InvalidEventError(f"the field {name!r} of an event is {type(given).__name__}", "it is lists by name")
    if any(isinstance(part, str | bytes | Mapping) or not np.iterable(part) for part in given.values()):
        raise InvalidEventError(f"the field {name!r} of an event holds no lists", "it is lists of numbers by name")
    check_characters(name, "".join(given))
    read: Callable[[Any], float | None] = read_noise if "noise_variance" in name else read_value
    columns = {key: [None if part is None else read(part) for part in column] for key, column in given.items()}
    return columns or None


def read_design(given: Any, space: Space) -> Array:
    """A coded design (d_x) that is a point of the space."""
    x = read_floats(given)
    if x is None or x.shape != (space.d_x,) or not np.isfinite(x).all():
        raise InvalidDesignError("a coded design is not a row of numbers", f"it has {space.d_x} of them")
    if ((x < 0) | (x > 1)).any() or np.abs(space.settle(x) - x).max(initial=0.0) > SNAP_TOLERANCE:
        raise InvalidDesignError("a coded design is not a point of the space", "use Space.encode_designs")
    x.setflags(write=False)
    return x


def read_context(given: Any, space: Space) -> Array:
    """A context (d_c) in the user's units, NaN where it is not known; something is."""
    row = read_floats(given)
    if row is not None and not space.d_c and len(np.atleast_1d(row)):
        raise InvalidContextError("this space has no context variables", "name them in Space(context=...)")
    if row is None or row.shape != (space.d_c,) or not _partly_finite(row[None]):
        raise InvalidContextError("a context is not a row of finite numbers", f"it has {space.d_c} of them")
    _check_levels(row[None], space)
    row.setflags(write=False)
    return row


def read_contexts(given: Any, space: Space) -> Array:
    """Contexts (n × d_c) in the user's units, NaN where they are not known."""
    rows = read_floats(given)
    if rows is None or rows.ndim != 2 or rows.shape[1] != space.d_c or not _partly_finite(rows) or not space.d_c:
        raise InvalidContextError("contexts are not rows of finite numbers", f"each has {space.d_c} of them")
    _check_levels(rows, space)
    rows.setflags(write=False)
    return rows


def _partly_finite(rows: Array) -> bool:
    """Whether rows (n × d_c) hold finite numbers and NaN, none of them NaN alone."""
    unknown = np.isnan(rows)
    return bool((np.isfinite(rows) | unknown).all()) and not bool(unknown.all(axis=1).any() and rows.shape[1])


def _check_levels(rows: Array, space: Space) -> None:
    wrong = check_levels(space._context, rows)
    if wrong is not None:
        raise InvalidContextError(f"a context is not of this space: {wrong}", "use Space.read_contexts")


def read_version(given: Any, latest: int) -> int:
    """How many amendments of the space an event knew of."""
    version = read_id(given)
    if not 0 <= version <= latest:
        raise InvalidEventError(f"there is no version {version} of the space", f"the latest is {latest}")
    return version


def check_texts(event: Event) -> None:
    """Texts are texts of a sensible length that can be stored everywhere, and times are times."""
    for name in ("ref", "by", "note", "key", "why", "of"):
        text = getattr(event, name, None)
        if text is not None and not isinstance(text, str):
            raise InvalidEventError(f"{name} is {text!r}", "it is a text")
        check_text(name, text or "")
    if event.at is not None and not 0 <= read_number(event.at) <= LATEST:
        raise InvalidEventError(f"the time is {event.at!r}", "it is in seconds since 1970")


def check_text(name: str, text: str) -> None:
    if len(text) > LONGEST_TEXT:
        raise InvalidEventError(f"{name} has {len(text)} characters", f"at most {LONGEST_TEXT} can be kept")
    check_characters(name, text)


def check_characters(name: str, text: str) -> None:
    if "\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InvalidEventError(f"{name} holds characters that cannot be stored", "leave out NUL and half characters")


def read_floats(given: Any) -> Array | None:
    """A new array of numbers; None for what is none: text and booleans are no numbers."""
    try:
        array = np.array(given)
    except (TypeError, ValueError, OverflowError):
        return None
    if array.dtype.kind == "O":
        if any(isinstance(part, str | bytes | bool | np.bool_) for part in array.flat):
            return None
        array = np.array([read_number(part) for part in array.flat], dtype=np.float64).reshape(array.shape)
    if array.size == 0:
        return array.astype(np.float64)
    return array.astype(np.float64) if array.dtype.kind in "iuf" else None


# -------------------------------------------------------------------- fields of events


def _array(name: str, given: Any) -> Array | None:
    if given is None:
        return None
    array = read_floats(given)
    if array is None:
        raise InvalidEventError(f"the field {name!r} of an event is not made of numbers", None)
    array.setflags(write=False)
    return array


def _object(name: str, given: Any) -> dict[str, Any] | None:
    if given is None and name == "outcome_forecast":
        return None
    if not isinstance(given, Mapping):
        raise InvalidEventError(f"the field {name!r} of an event is {type(given).__name__}", "it is an object")
    try:
        text = json.dumps(dict(given), allow_nan=False, ensure_ascii=False, default=_without_numpy)
    except (TypeError, ValueError, RecursionError):
        raise InvalidEventError(f"the field {name!r} of an event cannot be stored", "use what JSON knows") from None
    check_characters(name, text)
    read: dict[str, Any] = json.loads(text)
    return read


def _without_numpy(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not known to JSON")


def _flag(name: str, given: Any) -> bool:
    if not isinstance(given, bool | np.bool_):
        raise InvalidEventError(f"{name} is {given!r}", "it is true or false")
    return bool(given)


READERS: dict[str, Callable[[str, Any], Any]] = {
    "id": lambda name, given: None if given is None else read_id(given),
    **dict.fromkeys(("count", "version"), lambda name, given: read_id(given)),
    **dict.fromkeys(("x", "context", "rows", "weights", "contexts", "values", "noise_variances"), _array),
    "row": lambda name, given: None if given is None else read_id(given),
    **dict.fromkeys(("outcome_forecast", "settings", "defaults"), _object),
    "value": lambda name, given: None if given is None else read_value(given),
    "noise_variance": lambda name, given: read_noise(given),
    "control": lambda name, given: None if given is None else read_value(given, "control"),
    "cost": lambda name, given: read_cost(given),
    **dict.fromkeys(("others", "others_noise_variance"), read_others),
    **dict.fromkeys(("others_values", "others_noise_variances"), read_columns),
    "at": lambda name, given: None if given is None else read_number(given),
    "summary": _flag,
}
