"""NAME=VALUE words and numbers as people type them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edrbo.errors import EdrboError, InvalidContextError, InvalidDesignError, InvalidValueError, StudyError
from edrbo.space.tables import close_match

if TYPE_CHECKING:
    from edrbo.optimizer.choice import Wishes
    from edrbo.records.settings import Settings
    from edrbo.space import Space
    from edrbo.space.variables import Variable


def read_context(space: Space, words: Sequence[str] | None) -> dict[str, Any] | None:
    """A context; None without any word."""
    return _read_settings("context", space.context, words, InvalidContextError) if words else None


def read_design(space: Space, words: Sequence[str] | None) -> dict[str, Any]:
    """Some of a design's variables, or all."""
    return _read_settings("design", space.design, words or (), InvalidDesignError)


def _read_settings(
    kind: str, variables: Mapping[str, Variable], words: Sequence[str], error: type[EdrboError]
) -> dict[str, Any]:
    from edrbo.study.number_text import read_setting

    found = {}
    for name, text in map(split_word, words):
        if name not in variables:
            known = (
                f"the {kind} variables are {', '.join(variables)}"
                if variables
                else f"this study has no {kind} variables"
            )
            raise error(f"{name!r} is not a {kind} variable", close_match(name, variables, known))
        try:
            found[name] = read_setting(text, variables[name])
        except ValueError as problem:
            raise error(f"{name} is {text!r}: {problem}", "it must be a number") from None
    return found


def read_value(text: str | None, what: str = "the value") -> float | None:
    """A number from the command line."""
    if text is None:
        return None
    from edrbo.study.number_text import read_number

    try:
        return read_number(text)
    except ValueError as problem:
        raise InvalidValueError(f"{what} is {text!r}: {problem}", "it must be a number") from None


def read_values(
    settings: Settings, words: Sequence[str] | None, what: str = "the value"
) -> float | dict[str, float | None] | None:
    """One number, or in a study of several outcomes numbers by name; None without any word."""
    if not words:
        return None
    if settings.outcomes is None:
        if len(words) > 1:
            raise InvalidValueError(f"{what} is given {len(words)} times", "this study has one outcome")
        return read_value(words[0], what)
    found: dict[str, float | None] = {}
    for word in words:
        if "=" not in word:
            hint = f"write NAME={word}; the outcomes are {', '.join(settings.outcomes)}"
            raise InvalidValueError(f"{what} is {word!r}, and this study has several outcomes", hint)
        name, text = split_word(word)
        found[settings.outcomes.known(name)] = read_value(text, f"{what} of {name}")
    return found


def read_moment(text: str | None) -> float | None:
    if text is None:
        return None
    from edrbo.study.times import read_time

    try:
        return read_time(text)
    except ValueError as problem:
        raise InvalidValueError(f"the time is {text!r}: {problem}", "write it as 2026-03-14 15:30") from None


def split_word(word: str) -> tuple[str, str]:
    name, sign, text = word.partition("=")
    if not sign or not name.strip():
        raise StudyError(f"{word!r} is not NAME=VALUE", "write for instance humidity=0.4")
    return name.strip(), text.strip()


def read_forecast(space: Space, path: Path | None) -> Any:
    if path is None:
        return None
    from edrbo.study.csv_import import read_contexts

    return read_contexts(space, path)[0]


def read_candidates(space: Space, path: Path | None) -> Any:
    if path is None:
        return None
    from edrbo.study.csv_import import read_designs

    return read_designs(space, path)


def read_wishes(
    space: Space,
    forecast: Path | None,
    fix: Sequence[str] | None,
    candidates: Path | None,
    context: Sequence[str] | None = None,
) -> Wishes:
    """What is known and wanted of a design, as ``ask``, ``recommend`` and ``front`` take it."""
    return {
        "forecast": read_forecast(space, forecast),
        "context": read_context(space, context),
        "fixed": read_design(space, fix) or None,
        "candidates": read_candidates(space, candidates),
    }
