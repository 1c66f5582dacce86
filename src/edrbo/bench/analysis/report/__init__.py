"""One self-contained page of results: works offline, on a phone, and shows everything the tables and figures show."""

from __future__ import annotations

import json
from pathlib import Path

from edrbo.bench.analysis.curves import IN_QUESTION
from edrbo.bench.analysis.report.data import page_data
from edrbo.bench.analysis.results import Results

HERE = Path(__file__).parent


def write_report(
    results: Results,
    path: Path,
    published: Results | None = None,
    title: str = "edrbo benchmark",
    against: str = IN_QUESTION,
) -> None:
    """Write the page of ``results`` to ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(build_page(results, published, title, against), encoding="utf-8")


def build_page(
    results: Results,
    published: Results | None = None,
    title: str = "edrbo benchmark",
    against: str = IN_QUESTION,
) -> str:
    """The page as text: template, style, program and data in one."""
    found = page_data(results, published, title, against)
    data = json.dumps(found, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    parts = {
        "/*style*/": (HERE / "page.css").read_text(encoding="utf-8"),
        # A "</script>" inside the data would end them; JSON has another way to write "<".
        "/*data*/": data.replace("<", "\\u003c"),
        "/*program*/": (HERE / "page.js").read_text(encoding="utf-8"),
    }
    page = (HERE / "page.html").read_text(encoding="utf-8")
    for mark, text in parts.items():
        page = page.replace(mark, text, 1)
    return page
