"""What a field of an event may hold. Plain Python and NumPy numbers are taken; text, booleans and nonsense are not."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import InvalidContextError, InvalidDesignError, InvalidEventError, InvalidValueError
from edrbo.records.events import Event
from edrbo.space import Space

Array = NDArray[np.float64]

LARGEST_ID = 2**53  # what every reader of JSON holds exactly
NEAR = 1e-9  # how far a coded design may be from a point of its space
LONGEST_TEXT = 10_000
LATEST = 1e11  # seconds since 1970: the year 5138


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
    """A float; NaN for what is no number."""
    if isinstance(given, bool | np.bool_ | str | bytes) or np.ndim(given) != 0:
        return math.nan
    try:
        return float(given)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def read_value(given: Any) -> float:
    """An outcome."""
    number = read_number(given)
    if not math.isfinite(number):
        raise InvalidValueError(f"the value is {given!r}", "give a finite number, or tell a failed run as failed")
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


def read_design(given: Any, space: Space) -> Array:
    """A coded design (d_x) that is a point of the space."""
    x = _floats(given)
    if x is None or x.shape != (space.d_x,) or not np.isfinite(x).all():
        raise InvalidDesignError("a coded design is not a row of numbers", f"it has {space.d_x} of them")
    if ((x < 0) | (x > 1)).any() or np.abs(space.settle(x) - x).max(initial=0.0) > NEAR:
        raise InvalidDesignError("a coded design is not a point of the space", "use Space.encode_designs")
    x.setflags(write=False)
    return x


def read_context(given: Any, space: Space) -> Array:
    """A context (d_c) in the user's units."""
    row = _floats(given)
    if row is not None and not space.d_c and len(np.atleast_1d(row)):
        raise InvalidContextError("this space has no context variables", "name them in Space(context=...)")
    if row is None or row.shape != (space.d_c,) or not np.isfinite(row).all():
        raise InvalidContextError("a context is not a row of finite numbers", f"it has {space.d_c} of them")
    row.setflags(write=False)
    return row


def read_contexts(given: Any, space: Space) -> Array:
    """Contexts (n × d_c) in the user's units."""
    rows = _floats(given)
    if rows is None or rows.ndim != 2 or rows.shape[1] != space.d_c or not np.isfinite(rows).all() or not space.d_c:
        raise InvalidContextError("contexts are not rows of finite numbers", f"each has {space.d_c} of them")
    rows.setflags(write=False)
    return rows


def read_version(given: Any, latest: int) -> int:
    """How many amendments of the space an event knew of."""
    version = read_id(given)
    if not 0 <= version <= latest:
        raise InvalidEventError(f"there is no version {version} of the space", f"the latest is {latest}")
    return version


def check_words(event: Event) -> None:
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
    if "\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InvalidEventError(f"{name} holds characters that cannot be stored", "leave out NUL and half characters")


def _floats(given: Any) -> Array | None:
    try:
        array = np.array(given)
    except ValueError:
        return None
    if array.dtype.kind == "O":
        try:
            array = np.array(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            return None
    if array.size == 0:
        return array.astype(np.float64)
    return array.astype(np.float64) if array.dtype.kind in "iuf" else None
