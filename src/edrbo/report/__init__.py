"""``edrbo report``: a study as a self-contained HTML page."""

from edrbo.report.page import report_page

__all__ = ["report_page"]
