"""NAME=VALUE words and numbers as people type them; what is implausible is asked about before it is stored."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edrbo.errors import InvalidValueError, StudyError
from edrbo.lab.cli.output import confirm, say, wants_json, warn

if TYPE_CHECKING:
    from edrbo.optimizer.candidates import RequestOptions
    from edrbo.records.settings import Settings
    from edrbo.space import Space
    from edrbo.space.variables import Variable


def read_context(space: Space, words: Sequence[str] | None) -> dict[str, Any] | None:
    """A context; None without any word."""
    from edrbo.lab.entry import read_context

    return read_context(space, _named(words, space.context)) if words else None


def read_design(space: Space, words: Sequence[str] | None) -> dict[str, Any]:
    """Some of a design's variables, or all."""
    from edrbo.lab.entry import read_design

    return read_design(space, _named(words or (), space.design))


def _named(words: Sequence[str], variables: Mapping[str, Variable]) -> dict[str, str]:
    """Texts by name."""
    example = next((f"{name}={_example(variable)}" for name, variable in variables.items()), "humidity=55")
    found: dict[str, str] = {}
    for word in words:
        name, text = split_argument(word, example)
        if found.get(name, text) != text:
            raise InvalidValueError(f"{name} is given twice: {found[name]} and {text}", "give it once")
        found[name] = text
    return found


def _example(variable: Variable) -> str:
    """A value that it may have."""
    if not variable.numeric:
        return variable.text(variable.grid(1)[0])
    ends = [end for end in variable.limits() if math.isfinite(end)]
    return variable.text(ends[0] if variable.size else sum(ends) / len(ends)) if ends else "55"


def read_amount(text: str | None, what: str) -> float | None:
    """A plain number, such as a cost."""
    from edrbo.lab.entry import read_amount

    return read_amount(text, what)


def read_result(settings: Settings, words: Sequence[str] | None) -> float | dict[str, float | None] | None:
    """One result, or several by name; None without any word."""
    from edrbo.lab.entry import read_result

    return None if not words else read_result(settings, _one_or_named(settings, words, "the value"))


def read_variances(settings: Settings, words: Sequence[str] | None) -> float | dict[str, float | None] | None:
    """What is known of the noise; None without any word."""
    from edrbo.lab.entry import read_variances

    return None if not words else read_variances(settings, _one_or_named(settings, words, "the noise"))


def _one_or_named(settings: Settings, words: Sequence[str], what: str) -> str | dict[str, str]:
    if len(words) == 1 and "=" not in words[0]:
        return words[0]
    if settings.outcomes is None and len(words) > 1:
        raise InvalidValueError(f"{what} is given {len(words)} times", "this study has one outcome")
    for word in words:
        if "=" not in word:
            hint = f"write NAME={word}; the outcomes are {', '.join(settings.outcomes or ())}"
            raise InvalidValueError(f"{what} is {word!r}, and this study has several outcomes", hint)
    found: dict[str, str] = {}
    for word in words:
        name, text = split_argument(word)
        if name in found:
            raise InvalidValueError(f"{name} is given twice", "give it once")
        found[name] = text
    return found


def read_moment(text: str | None) -> float | None:
    if text is None:
        return None
    from edrbo.lab.entry import read_time

    try:
        return read_time(text)
    except ValueError as problem:
        raise InvalidValueError(f"the time is {text!r}: {problem}", "write it as 2026-03-14 15:30") from None


def split_argument(word: str, example: str = "humidity=55") -> tuple[str, str]:
    name, sign, text = word.partition("=")
    if not sign or not name.strip():
        raise StudyError(f"{word!r} is not NAME=VALUE", f"write for instance {example}")
    return name.strip(), text.strip()


def read_forecast(space: Space, path: Path | None) -> Any:
    if path is None:
        return None
    from edrbo.lab.tables.csv_import import read_contexts

    return read_contexts(space, path)[0]


def read_candidates(space: Space, path: Path | None) -> Any:
    if path is None:
        return None
    from edrbo.lab.tables.csv_import import read_designs

    return read_designs(space, path)


def read_request_options(
    space: Space,
    forecast: Path | None,
    fix: Sequence[str] | None,
    candidates: Path | None,
    context: Sequence[str] | None = None,
) -> RequestOptions:
    """What is known and wanted of a design, as ``ask``, ``recommend`` and ``front`` take it."""
    return {
        "forecast": read_forecast(space, forecast),
        "context": read_context(space, context),
        "fixed": read_design(space, fix) or None,
        "candidates": read_candidates(space, candidates),
    }


def settle(found: Sequence[str], *, yes: bool) -> None:
    """Show doubts about what is to be stored, and ask; where nobody can be asked they are warnings."""
    if not found or yes:
        return
    if wants_json() or not sys.stdin.isatty():
        for doubt in found:
            warn(f"{doubt} (stored as it is)")
        return
    for doubt in found:
        say(doubt, style="yellow")
    confirm("Store it as it is?", yes=yes)
