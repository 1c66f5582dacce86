"""Times as people read them and as records keep them: seconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime


def time_text(at: float | None) -> str:
    """ISO 8601 in UTC, exact to the microsecond; empty if it is not known."""
    return "" if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")


def read_time(text: str) -> float:
    """Seconds since 1970 of an ISO 8601 time; one without a zone is local. ValueError for anything else."""
    return datetime.fromisoformat(text).timestamp()
