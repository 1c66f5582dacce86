"""``edrbo report``: a study as a self-contained HTML page. Pictures of an optimizer alone do without studies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edrbo.lab.report.page import report_page

__all__ = ["report_page"]


def __getattr__(name: str) -> Any:
    if name != "report_page":
        raise AttributeError(f"module 'edrbo.lab.report' has no attribute {name!r}")
    from edrbo.lab.report.page import report_page

    return report_page
