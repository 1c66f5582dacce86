"""Numbers as people and spreadsheets write them: 1.5, 1,5, 1 234,5, 55%, 38 m/min."""

from __future__ import annotations

import re
from typing import Any, Literal

from edrbo.space.variables import Categorical, Integer, Real, Variable

Point = Literal[".", ","]

_SPACES = "\u00a0\u2009\u202f "
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def read_number(text: str, variable: Variable | None = None, point: Point | None = None) -> float:
    """A number; ValueError says why a text is none.

    ``point`` is the decimal sign, if that is known. A per cent sign means hundredths for a variable between 0 and 1,
    and nothing for others; a unit is passed over if it is the variable's.
    """
    words = text.strip().replace("−", "-")
    if variable is not None and variable.unit and words.casefold().endswith(variable.unit.casefold()):
        rest = words[: -len(variable.unit)]
        if variable.unit != "%":
            words = rest.rstrip()
    share = words.endswith("%")
    words = words.rstrip("%").strip() if share else words
    number = float(_plain(words, point))
    if share and isinstance(variable, Real) and variable.upper is not None and variable.upper <= 1:
        return number / 100
    return number


def _plain(words: str, point: Point | None) -> str:
    """The digits with a point, as Python reads them."""
    if words.casefold() in ("nan", "inf", "+inf", "-inf", "infinity", "-infinity"):
        return words
    compact = words
    for space in _SPACES:
        compact = compact.replace(space, "")
    if compact != words and not re.fullmatch(r"[+-]?\d{1,3}([^\d.,]\d{3})+([.,]\d*)?", words):
        raise ValueError("not a number")
    if point == ".":
        compact = _without_groups(compact, ",")
    elif point == ",":
        compact = _without_groups(compact, ".").replace(",", ".")
    elif "," in compact and "." in compact:
        last, other = (",", ".") if compact.rindex(",") > compact.rindex(".") else (".", ",")
        compact = _without_groups(compact, other).replace(last, ".")
    elif compact.count(",") > 1:
        compact = _without_groups(compact, ",")
    elif re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", compact):
        raise ValueError("ambiguous: it can be read in two ways, so write it without a comma")
    else:
        compact = compact.replace(",", ".")
    if not _NUMBER.fullmatch(compact):
        raise ValueError("not a number")
    return compact


def _without_groups(words: str, sign: str) -> str:
    """Without the signs between groups of three digits."""
    if sign not in words:
        return words
    if not re.fullmatch(rf"[+-]?\d{{1,3}}({re.escape(sign)}\d{{3}})+(\D.*)?", words):
        raise ValueError("not a number")
    return words.replace(sign, "")


def read_setting(text: str, variable: Variable, point: Point | None = None) -> Any:
    """The value of a design variable that was written as ``text``."""
    if isinstance(variable, Categorical):
        return _choice(text, variable)
    if isinstance(variable, Integer) and re.fullmatch(r"[+-]?\d+", text.strip()):
        return int(text)
    return read_number(text, variable, point)


def _choice(text: str, variable: Categorical) -> Any:
    """By its text, exactly or but for capitals and spaces around; as it is if there is none, to be refused."""
    words = {_text(choice): choice for choice in variable.choices}
    if text in words:
        return words[text]
    loose = [choice for name, choice in words.items() if name.strip().casefold() == text.strip().casefold()]
    return loose[0] if len(loose) == 1 else text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)
