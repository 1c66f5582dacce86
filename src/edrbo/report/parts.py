"""Pieces of a report's page: sections, tables of facts, and what stands at its head."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from edrbo import __version__
from edrbo.entry.times import local_text
from edrbo.records.words import purpose_words
from edrbo.report.svg import Chart, number, one_line
from edrbo.study import Study
from edrbo.study.storage import describe


def whole_page(study: Study, body: str, data: Mapping[str, Any]) -> str:
    """One HTML page without network; ``data`` are the numbers behind it, for programs."""
    style, script = (files("edrbo.report").joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
    title = escape(one_line(study.settings.title or study.name))
    # nothing in the data can end the script element
    record = json.dumps(data).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="edrbo {__version__}">
<title>{title} · edrbo</title>
<style>{style}</style>
</head>
<body>
<main>{body}</main>
<footer>edrbo {__version__}</footer>
<div id="tip" role="tooltip" hidden></div>
<script type="application/json" id="data">{record}</script>
<script>{script}</script>
</body>
</html>
"""


def head(study: Study, made: float) -> str:
    """What the study is about, how far it is and when this was ``made`` (seconds since 1970)."""
    state = study.state
    settings = study.settings
    counts = (
        (len(state.observations), "told"),
        (len(state.failed), "failed"),
        (len(state.pending), "pending"),
        *((count, "cancelled") for count in [sum(run.status == "cancelled" for run in study.runs)] if count),
        *((count, "left out") for count in [sum(run.dropped for run in study.runs)] if count),
        (len(state.log), "contexts"),
        *((number(spent.total), "cost so far") for spent in [study.spending] if spent is not None),
    )
    shown = "".join(f"<li><b>{count}</b> {word}</li>" for count, word in counts)
    words = f"{local_text(made)}; {purpose_words(settings)}; kept in {describe(study.ledger.where)}"
    if settings.law is not None:
        words += f"; contexts are known to follow {settings.law.to_text()}"
    if settings.cost is not None:
        words += f"; a run costs {settings.cost.to_text()}"
    if study.space.constraints:
        words += f"; so that {', '.join(constraint.words() for constraint in study.space.constraints)}"
    name = settings.title or study.name
    return f"<header><h1>{escape(one_line(name))}</h1><p>{escape(one_line(words))}</p><ul>{shown}</ul></header>"


def section(title: str, note: str, drawn: Sequence[Chart], more: str = "") -> str:
    figures = "".join(f"<figure>{chart.svg()}</figure>" for chart in drawn)
    grid = f'<div class="charts">{figures}</div>' if drawn else ""
    return f"<section><h2>{escape(title)}</h2><p>{escape(one_line(note))}</p>{grid}{more}</section>"


def value_text(value: Any) -> str:
    return number(value) if isinstance(value, float) else one_line(str(value))
