"""A variable as people write it: 10-60 m/min, 1e-4:1:log, 1 to 8 int, plain,glossy."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from edrbo.errors import InvalidSpaceError
from edrbo.lab.entry.values import read_variable_value
from edrbo.space import Categorical, Integer, Real, Variable

NUMBER = r"[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?"
RANGE = re.compile(rf"\s*({NUMBER})?\s*(?::|\.\.+|…|–|—|-|\bto\b|\bbis\b)\s*({NUMBER})?(.*)", re.DOTALL)
STEP = re.compile(rf"\b(?:in )?steps?(?: of|=| )\s*({NUMBER})")
DEFAULT = re.compile(r"\bdefault[= ]\s*(\S+)")
DIGITS = re.compile(r"\bdigits[= ](\d+)")
UNIT = re.compile(r"\bunit=(\S+)")
MARKS = {  # as people write them; a unit of such a name is given by unit=
    **dict.fromkeys(("int", "integer", "integers", "whole"), "int"),
    **dict.fromkeys(("log", "logarithmic"), "log"),
}
HELP = (
    "write speed=10:60, 'speed=10:60 m/min step 0.5', rate=1e-4:1:log, layers=1:8:int, kind=a,b,c or size=small<large"
)


def read_variable_argument(word: str) -> tuple[str, Variable]:
    """``NAME=SPECIFICATION``, or a name alone for a context without bounds."""
    name, _, text = word.partition("=")
    return name.strip(), read_specification(text)


def read_specification(text: str) -> Variable:
    """A range (LOW:HIGH, LOW-HIGH, LOW..HIGH, LOW to HIGH) with marks and a unit, or names with
    commas between, with < if they have an order."""
    if not text.strip():
        return Real()
    default = DEFAULT.search(text)
    if default:
        variable = read_specification(DEFAULT.sub("", text))
        return replace(variable, default=read_variable_value(default[1], variable))
    found = RANGE.fullmatch(text)
    if found is None or (found[1] is None and found[2] is None):
        if "<" in text and "," not in text:
            return Categorical(tuple(part.strip() for part in text.split("<") if part.strip()), ordered=True)
        if len(levels := read_levels(text)) < 2:
            raise InvalidSpaceError(f"{text!r} is neither a range nor a list of names", HELP)
        return Categorical(levels)
    low, high = (None if part is None else part.replace(",", ".") for part in (found[1], found[2]))
    rest, extras = _extras(found[3])
    words = [word for word in re.split(r"[:\s]+", rest) if word]
    marks = {MARKS[word.casefold()] for word in words if word.casefold() in MARKS}
    unit = " ".join(word for word in words if word.casefold() not in MARKS)
    if unit:
        extras["unit"] = unit
    if "int" in marks:
        whole = {key: part for key, part in extras.items() if key == "unit"}
        return Integer(_whole(low), _whole(high), log="log" in marks, **whole)
    ends = [None if part is None else float(part) for part in (low, high)]
    return Real(ends[0], ends[1], log="log" in marks, **extras)


LAST = re.compile(r"\s+(?:or|and|oder|und)\s+")


def read_levels(text: str) -> tuple[str, ...]:
    """Names with commas or bars between, or with "or" and "and" before the last: A, B or C. What stands in quotation
    marks is one name."""
    text = " ".join(text.split())
    bars = "|" in text and '"' not in text
    *first, last = next(csv.reader([text], delimiter="|" if bars else ",", skipinitialspace=True), [""]) or [""]
    rest = [last] if bars or text.endswith('"') else LAST.split(last)
    return tuple(name.strip() for name in (*first, *rest) if name.strip())


def levels_text(choices: Sequence[Any]) -> str:
    """The inverse of ``read_levels``."""
    names = list(map(str, choices))
    return ", ".join(_quoted(name) if read_levels(name) != (name,) or '"' in name else name for name in names)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _whole(text: str | None) -> int:
    if text is None:
        raise InvalidSpaceError("a whole number needs both bounds", HELP)
    number = float(text)
    if not number.is_integer():
        raise InvalidSpaceError(f"the bound {text} is not a whole number", HELP)
    return int(number)


def _extras(rest: str) -> tuple[str, dict[str, Any]]:
    """Step, digits and unit, and what is left of the text without them."""
    extras: dict[str, Any] = {}
    if step := STEP.search(rest):
        extras["step"] = float(step[1].replace(",", "."))
    if digits := DIGITS.search(rest):
        extras["digits"] = int(digits[1])
    if unit := UNIT.search(rest):
        extras["unit"] = unit[1]
    for pattern in (STEP, DIGITS, UNIT):
        rest = pattern.sub("", rest)
    return rest, extras


def specification(variable: Variable) -> str:
    """The inverse of ``read_specification`` for what people typed here."""
    record = variable.to_dict()
    if record["kind"] == "categorical":
        return "<".join(map(str, record["choices"])) if "ordered" in record else levels_text(record["choices"])
    ends = ["" if record[end] is None else f"{record[end]:.17g}" for end in ("lower", "upper")]
    text = "" if ends == ["", ""] else ":".join(ends)
    text += ":int" * (record["kind"] == "integer") + ":log" * record["log"]
    text += f" step {record['step']:.17g}" if "step" in record else ""
    unit = record.get("unit", "")
    return f"{text} {'unit=' if unit.casefold() in MARKS else ''}{unit}".rstrip()
