"""Numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from edrbo.space.variables import number_text


def shown(value: Any, figures: int = 6) -> str:
    """A value for people, as everywhere; with more ``figures`` in forms, which send back what they show."""
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    if not math.isfinite(value):
        return "not known"
    return number_text(value) if figures == 6 else f"{value:.{figures}g}"


def shown_of(value: Any, variable: Mapping[str, Any]) -> str:
    """A value of a variable, with its digits if they were said."""
    digits = variable.get("digits")
    if digits is not None and isinstance(value, float) and math.isfinite(value):
        return number_text(value, digits)
    return shown(value)


def when(at: float | None) -> str:
    """A time as it is on the clock here."""
    if at is None:
        return ""
    then = datetime.fromtimestamp(at)
    return then.strftime("%d %b %H:%M" if then.year == datetime.now().year else "%d %b %Y %H:%M").lstrip("0")
