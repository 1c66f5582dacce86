"""How each setting is read from what people give: checked, in plain types, with an error that says what to write."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from edrbo.errors import InvalidValueError, UnknownNameError
from edrbo.space.bounds import plain_number
from edrbo.space.point_tables import close_match

LONGEST_TEXT = 200

# The names of acquisition.methods, which must not be imported here: it loads the engine.
METHOD_NAMES = (
    *("edrbo-mean", "edrbo", "edrbo-published", "edrbo-integrated", "edrbo-warped", "erbo", "wdrbo"),
    *("sbo-kde", "drbo-kde", "stableopt", "drbo-mmd", "drbo-mmd-minmax", "ucb"),
)


def read_method(given: Any) -> Any:
    if isinstance(given, str):
        if given not in METHOD_NAMES:
            hint = close_match(given, METHOD_NAMES, f"choose from {', '.join(METHOD_NAMES)}")
            raise UnknownNameError(f"no method is called {given!r}", hint)
        return given
    if isinstance(given, Mapping):
        return dict(given)
    if not hasattr(given, "functional_at"):  # a Method, which cannot be imported here
        raise InvalidValueError(f"a method is a name or a Method, not {type(given).__name__}")
    return given


def read_choice(name: str, words: tuple[str, ...], hint: str) -> Callable[[Any], str]:
    """One of ``words``."""

    def read(given: Any) -> str:
        if not isinstance(given, str) or given not in words:
            raise InvalidValueError(f"{name} is {given!r}", hint)
        return given

    return read


def read_integer(name: str, least: int | None, hint: str) -> Callable[[Any], int]:
    def read(given: Any) -> int:
        try:
            number = None if isinstance(given, bool) else operator.index(given)
        except TypeError:
            number = None
        if number is None or (least is not None and number < least):
            raise InvalidValueError(f"{name} is {given!r}", hint)
        return number

    return read


def read_evaluations(given: Any) -> int | None:
    hint = "a whole number from 1: how many runs there will be"
    return None if given is None else read_integer("evaluations", 1, hint)(given)


def read_forgetting(given: Any) -> float | None:
    if given is None:
        return None
    number = plain_number(given)
    if not (math.isfinite(number) and number > 0):
        raise InvalidValueError(f"forgetting is {given!r}", "give a half-life in contexts, above zero")
    return number


def read_probability(name: str) -> Callable[[Any], float]:
    def read(given: Any) -> float:
        number = plain_number(given)
        if not 0.0 <= number <= 1.0:
            raise InvalidValueError(f"{name} is {given!r}", "give a probability, between 0 and 1")
        return number

    return read


def read_text(name: str) -> Callable[[Any], str]:
    def read(given: Any) -> str:
        if not isinstance(given, str) or len(given) > LONGEST_TEXT or not given.isprintable():
            raise InvalidValueError(f"{name} is {given!r}", f"it is one line of at most {LONGEST_TEXT} characters")
        return given

    return read
