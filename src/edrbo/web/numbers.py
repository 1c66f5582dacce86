"""Numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any


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
