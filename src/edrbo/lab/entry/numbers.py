"""Numbers as people and spreadsheets write them: 1.5, 1,5, 1 234,5, 55 %, 38 m/min."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any, Literal

Point = Literal[".", ","]

_SPACES = "\u00a0\u2009\u202f "  # between groups of three digits, as are apostrophes
_GROUPED = re.compile(
    r"[+-]?[0-9]{1,3}(?:(?P<sign>[\u00a0\u2009\u202f '’])[0-9]{3})(?:(?P=sign)[0-9]{3})*([.,][0-9]*)?"
)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
_ENDLESS = ("nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity")


class NotANumberError(ValueError):
    """Why a text is no number, and what to write."""

    def __init__(self, reason: str, hint: str = "write a number, as 1.7 or 1,7") -> None:
        super().__init__(reason)
        self.hint = hint


def read_number(
    given: Any, unit: str = "", *, share: bool = False, percent: bool = True, point: Point | None = None
) -> float:
    """A finite number from text, or from a number as JSON and TOML have it; NotANumberError says why it is none.

    Args:
        given: what was entered. A unit behind the number is passed over if it is ``unit``.
        unit: of what is entered.
        share: whether it lies between 0 and 1, so that a percent sign means hundredths.
        percent: whether a percent sign may stand behind a number without a unit.
        point: the decimal sign, if that is known.
    """
    if isinstance(given, str):
        number = _read_text(given.strip().replace("−", "-"), unit, share, percent, point)
    elif isinstance(given, int | float) and not isinstance(given, bool):
        try:
            number = float(given)
        except OverflowError:
            number = math.inf
    else:
        raise NotANumberError("not a number")
    if not math.isfinite(number):
        raise NotANumberError("not a finite number")
    return number


def _read_text(words: str, unit: str, share: bool, percent: bool, point: Point | None) -> float:
    try:
        return _read_plain(words, point)
    except NotANumberError as problem:
        number, behind = _split(words, unit)
        if unit and behind and _bare(behind) == _bare(unit):
            return _read_plain(number, point)
        if not behind or not _reads(number, point):
            raise
        if behind == "%" and percent and not unit:
            return _hundredth(_read_plain(number, point)) if share else _read_plain(number, point)
        hint = f"give it in {unit}" if unit else "write the number alone"
        raise NotANumberError(f"not in {unit}" if unit else str(problem), hint) from None


def is_percent_format(code: str) -> bool:
    """Whether a spreadsheet shows numbers of this format as hundredths with a per cent sign."""
    return "%" in re.sub(r'"[^"]*"|\\.|_.|\*.', "", code)


def percent_text(share: float) -> str:
    """``share`` as such a cell shows it, with all its digits: 52% for 0.52."""
    return f"{(Decimal(repr(share)) * 100).normalize():f}%"


def _split(words: str, unit: str) -> tuple[str, str]:
    """A number and what stands behind it; a unit may begin with a digit, after a space."""
    head, tail = words[: len(words) - len(unit)], words[len(words) - len(unit) :]
    if unit and head[-1:].isspace() and tail.casefold() == unit.casefold():
        return head.rstrip(), unit
    letters = enumerate(words)
    first = next((k for k, one in letters if not (one in "+-.,'’0123456789eE" or one in _SPACES)), len(words))
    number = words[:first].rstrip(f"{_SPACES}'’")
    if number[-1:] in ("e", "E"):  # the first letter of what stands behind
        number = number[:-1].rstrip(_SPACES)
    return number, words[len(number) :].strip()


def _bare(unit: str) -> str:
    return "".join(unit.split()).casefold()


def _hundredth(number: float) -> float:
    """As the decimal that people mean: 55 % is 0.55."""
    return float(f"{number / 100:.15g}")


def _reads(words: str, point: Point | None) -> bool:
    try:
        _read_plain(words, point)
    except NotANumberError:
        return False
    return True


def _read_plain(words: str, point: Point | None) -> float:
    if words.casefold() in _ENDLESS:
        return math.nan
    return float(_plain(words, point))


def _plain(words: str, point: Point | None) -> str:
    """The digits with a point, as Python reads them."""
    compact = words
    if any(space in words for space in f"{_SPACES}'’"):
        if not _GROUPED.fullmatch(words):
            raise NotANumberError("not a number")
        compact = re.sub(rf"[{_SPACES}'’]", "", words)
    if point == ".":
        compact = _without_groups(compact, ",")
    elif point == ",":
        compact = _without_groups(compact, ".").replace(",", ".")
    elif "," in compact and "." in compact:
        last, other = (",", ".") if compact.rindex(",") > compact.rindex(".") else (".", ",")
        compact = _without_groups(compact, other).replace(last, ".")
    elif compact.count(",") > 1:
        compact = _without_groups(compact, ",")
    elif re.fullmatch(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}", compact):
        dot, none = compact.replace(",", "."), compact.replace(",", "")
        raise NotANumberError("ambiguous: it can be read in two ways", f"write {dot} or {none}")
    else:
        compact = compact.replace(",", ".")
    if not _NUMBER.fullmatch(compact):
        raise NotANumberError("not a number")
    return compact


def _without_groups(words: str, sign: str) -> str:
    """Without the signs between groups of three digits."""
    if sign not in words:
        return words
    if not re.fullmatch(rf"[+-]?[0-9]{{1,3}}({re.escape(sign)}[0-9]{{3}})+([^0-9].*)?", words):
        raise NotANumberError("not a number")
    return words.replace(sign, "")
