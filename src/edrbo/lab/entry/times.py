"""Times as people read them and as records keep them: seconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_DAY_FIRST = ("%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y", "%d.%m.%y %H:%M", "%d.%m.%y")
_SLASHES = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})(.*)")


def time_text(at: float | None) -> str:
    """ISO 8601 in UTC, exact to the microsecond; empty if it is not known."""
    return "" if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")


def local_text(at: float | None) -> str:
    """To the minute, in the time of this place, for people."""
    return "" if at is None else datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M")


def read_time(text: str) -> float:
    """Seconds since 1970 of a date or a time, as 2026-03-14 15:30 or 14.03.2026; one without a zone is local.

    ValueError says why a text is none.
    """
    words = text.strip()
    if found := _SLASHES.fullmatch(words):
        first, second = int(found[1]), int(found[2])
        if first <= 12 and second <= 12 and first != second:
            raise ValueError("ambiguous: day and month cannot be told apart")
        day, month = (first, second) if first > 12 else (second, first)
        words = f"{found[3]}-{month:02}-{day:02}{found[4]}"
    for form in _DAY_FIRST:
        try:
            return datetime.strptime(words, form).timestamp()
        except ValueError:
            continue
    try:
        return datetime.fromisoformat(words).timestamp()
    except (ValueError, OverflowError):
        raise ValueError("not a date") from None
