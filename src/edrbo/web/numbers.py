"""Numbers as people type them and as they read them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from edrbo.errors import InvalidValueError


def read_number(given: Any, name: str = "the value") -> float:
    """A finite number; text may have a decimal comma, a true minus sign and thin spaces."""
    if isinstance(given, int | float) and not isinstance(given, bool):
        number = _float(given)
    elif isinstance(given, str):
        text = "".join(given.split()).replace("−", "-")
        if text.count(",") == 1 and "." not in text:
            text = text.replace(",", ".")
        number = _float(text) if text.isascii() and "_" not in text else math.nan
    else:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidValueError(f"{name} is {str(given)[:40]!r}", "give a number, as 1.7 or 1,7")
    return number


def _float(given: Any) -> float:
    try:
        return float(given)
    except (ValueError, OverflowError):
        return math.nan


def shown(value: Any, digits: int = 4) -> str:
    """A value for people: a few figures, no noise."""
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    if not math.isfinite(value):
        return "not known"
    if value != 0 and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}".replace("-", "−")
    places = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:.{places}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")


def shown_of(value: Any, variable: Mapping[str, Any]) -> str:
    """A value of a variable, with its digits if they were said."""
    digits = variable.get("digits")
    if digits is not None and isinstance(value, float) and math.isfinite(value):
        return f"{value:.{digits}f}".replace("-", "−")
    return shown(value)


def when(at: float | None) -> str:
    """A time as it is on the clock here."""
    if at is None:
        return ""
    then = datetime.fromtimestamp(at)
    return then.strftime("%d %b %H:%M" if then.year == datetime.now().year else "%d %b %Y %H:%M").lstrip("0")
