"""Settings besides the space, as people enter them: each by its name as a text, outcomes as a word each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

from edrbo.errors import InvalidValueError
from edrbo.lab.entry.numbers import NotANumberError, read_number
from edrbo.records import outcomes as o
from edrbo.records.outcomes import Direction
from edrbo.records.settings import METHOD_NAMES, Outliers, Purpose, Settings
from edrbo.space.point_tables import close_match

NOTHING = ("", "none")
OPTIONS: dict[str, tuple[str, ...]] = {
    "method": METHOD_NAMES,
    "direction": get_args(Direction),
    "aim": get_args(Purpose),
    "outliers": get_args(Outliers),
}
Aim = o.Maximize | o.Minimize | o.Limit
BOUND = re.compile(r"\s*(?P<name>[^<>≤≥=]+?)\s*(?P<sign><=|>=|≤|≥)\s*(?P<number>.+)")
COMMA = re.compile(r"=\s*([+-]?[0-9]+),([0-9]+)(?=\s*(?:,|$))")
PERCENT = re.compile(r"=\s*([0-9]+(?:\.[0-9]+)?)\s*%")


def read_setting(name: str, given: Any) -> Any:
    """The value of the setting ``name``; None for "none". What it may be is checked by ``Settings``."""
    kinds = {choice.name: choice.metadata["kind"] for choice in Settings.choices()}
    if name not in kinds:
        raise InvalidValueError(f"{name!r} is no setting", close_match(name, kinds, f"they are {', '.join(kinds)}"))
    if isinstance(given, str) and given.strip().casefold() in NOTHING:
        return None
    if name == "outcome_range" and isinstance(given, str):
        return _read_range(given)
    if kinds[name] not in (int, float):
        return given.strip() if isinstance(given, str) else given
    try:
        number = read_number(given, share=name == "least_success")
    except NotANumberError as problem:
        raise InvalidValueError(f"{name.replace('_', ' ')} is {given!r}: {problem}", problem.hint) from None
    return int(number) if kinds[name] is int and number.is_integer() else number


def _read_range(text: str) -> tuple[float | None, ...]:
    """Two ends, as in 0:100 or 0:; how many there are is checked by ``Settings``."""
    try:
        return tuple(read_number(part) if part.strip() else None for part in text.split(":"))
    except NotANumberError as problem:
        raise InvalidValueError(f"outcome range is {text!r}: {problem}", problem.hint) from None


def read_outcome_words(words: Iterable[str]) -> dict[str, Aim]:
    """What each outcome is for, from words as roughness=limit,upper=2 or roughness <= 2 um."""
    found: dict[str, Aim] = {}
    for name, part in map(_read_word, words):
        if name in found:
            raise InvalidValueError(f"the outcome {name!r} is given twice", "each has a name of its own")
        found[name] = part
    return found


def with_units(outcomes: Mapping[str, Aim], old: Settings) -> dict[str, Aim]:
    """``outcomes`` with the units they had, where nothing is said of them."""
    return {name: part if part.unit else replace(part, unit=_unit_of(name, old)) for name, part in outcomes.items()}


def _read_word(word: str) -> tuple[str, Aim]:
    if bound := BOUND.fullmatch(word):
        end: Literal["upper", "lower"] = "upper" if bound["sign"] in ("<=", "≤") else "lower"
        number = re.fullmatch(r"([+-]?[0-9.,]+)\s*(.*)", bound["number"])
        unit = number[2] if number else ""
        try:
            limit = read_number(bound["number"], unit)
        except NotANumberError as problem:
            words = f"the limit of {bound['name']} is {bound['number']!r}: {problem}"
            raise InvalidValueError(words, problem.hint) from None
        return bound["name"], o.Limit(**{end: limit}, unit=unit)
    plain = COMMA.sub(r"=\1.\2", word)
    return o.read_outcome_argument(PERCENT.sub(lambda found: f"={float(found[1]) / 100:.15g}", plain))


def _unit_of(name: str, old: Settings) -> str:
    known: Mapping[str, Aim] = old.outcomes or {}
    return known[name].unit if name in known else old.unit if name == old.outcome else ""


def format_outcome(settings: Settings) -> list[str]:
    """The inverse of ``read_outcome_words``; none where there is one outcome."""
    return [] if settings.outcomes is None else settings.outcomes.to_text().split("; ")
