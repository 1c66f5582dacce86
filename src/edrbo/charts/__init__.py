"""Charts: what they show, said once, and drawn as SVG for pages or with matplotlib for notebooks."""

from __future__ import annotations

from edrbo.charts.description import (
    Axis,
    Band,
    Bars,
    Chart,
    Heat,
    Line,
    Mark,
    Numbers,
    Points,
    Rule,
    Shape,
    Spans,
    number,
    one_line,
    span,
    typeset,
)
from edrbo.charts.svg import chart_html, chart_image

__all__ = [
    "Axis",
    "Band",
    "Bars",
    "Chart",
    "Heat",
    "Line",
    "Mark",
    "Numbers",
    "Points",
    "Rule",
    "Shape",
    "Spans",
    "chart_html",
    "chart_image",
    "number",
    "one_line",
    "span",
    "typeset",
]
