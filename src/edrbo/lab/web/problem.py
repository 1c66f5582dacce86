"""Errors as RFC 9457 has them (``application/problem+json``), with our codes."""

from __future__ import annotations

from typing import Any

KIND = "application/problem+json"


def problem_body(status: int, title: str, detail: str = "", code: str = "") -> dict[str, Any]:
    """The members of a problem.

    Args:
        status: of the response.
        title: what is wrong.
        detail: what to do about it.
        code: that of the error in Python, ``invalid-design`` for one; the type is made of it.
    """
    kind = f"urn:edrbo:error:{code}" if code else "about:blank"
    return {"type": kind, "title": title, "status": status, "detail": detail, "code": code}
