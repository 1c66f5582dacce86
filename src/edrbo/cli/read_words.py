"""NAME=VALUE words and numbers as people type them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edrbo.errors import InvalidContextError, InvalidDesignError, InvalidValueError, StudyError
from edrbo.space.tables import close_match

if TYPE_CHECKING:
    from edrbo.records.settings import Settings
    from edrbo.space import Space


def read_context(space: Space, words: Sequence[str] | None) -> dict[str, Any] | None:
    """A context; None without any word."""
    if not words:
        return None
    from edrbo.study.number_text import read_setting

    context = {}
    for name, text in map(split_word, words):
        if name not in space.context:
            hint = close_match(name, space.context, _they_are("context", list(space.context)))
            raise InvalidContextError(f"{name!r} is not a context variable", hint)
        try:
            context[name] = read_setting(text, space.context[name])
        except ValueError as problem:
            raise InvalidContextError(f"{name} is {text!r}: {problem}", "it must be a number") from None
    return context


def read_design(space: Space, words: Sequence[str] | None) -> dict[str, Any]:
    """Some of a design's variables, or all."""
    from edrbo.study.number_text import read_setting

    design = {}
    for name, text in map(split_word, words or ()):
        if name not in space.design:
            hint = close_match(name, space.design, _they_are("design", list(space.design)))
            raise InvalidDesignError(f"{name!r} is not a design variable", hint)
        try:
            design[name] = read_setting(text, space.design[name])
        except ValueError as problem:
            raise InvalidDesignError(f"{name} is {text!r}: {problem}", "it must be a number") from None
    return design


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


def _they_are(kind: str, names: list[str]) -> str:
    return f"the {kind} variables are {', '.join(names)}" if names else f"this study has no {kind} variables"
