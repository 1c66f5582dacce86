"""What a report's page is made of: sections of facts, charts and tables, which the template ``page.html`` shows."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from edrbo import __version__
from edrbo.lab import Study
from edrbo.lab.entry import local_text
from edrbo.lab.report.svg import Chart, number, one_line
from edrbo.lab.store.place import describe
from edrbo.records.descriptions import describe_purpose

if TYPE_CHECKING:
    from jinja2 import Environment

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Row:
    cells: list[str]
    faded: bool = False


@dataclass(frozen=True)
class DataTable:
    """``words`` says which columns hold words and no numbers."""

    heads: list[str]
    words: list[bool]
    rows: list[Row]


@dataclass(frozen=True)
class Section:
    """Texts as they are: the template escapes them. ``facts`` are tables of rows, each with a heading or none;
    ``design`` is what to set, by name; ``near`` marks a short table."""

    title: str
    note: str = ""
    drawn: Sequence[Chart] = ()
    warnings: Sequence[str] = ()
    facts: Sequence[tuple[str, Rows]] = ()
    table: DataTable | None = None
    design: Sequence[tuple[str, str]] = ()
    near: bool = False


def whole_page(study: Study, made: float, sections: Sequence[Section], data: Mapping[str, Any]) -> str:
    """One HTML page without network, ``made`` at a time (seconds since 1970); ``data`` are the numbers behind it, for
    programs."""
    environment, trusted = _environment()
    style, script = (files("edrbo.lab.report").joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # nothing in the data can end the script element
    record = json.dumps(data).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    shown = [{**vars(part), "charts": [trusted(chart.svg()) for chart in part.drawn]} for part in sections]
    text: str = environment.from_string(files("edrbo.lab.report").joinpath("page.html").read_text("utf-8")).render(
        version=__version__,
        policy=trusted(f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"),
        title=study.settings.title or study.name,
        about=_about(study, made),
        counts=_counts(study),
        sections=shown,
        style=trusted(style),
        script=trusted(script),
        data=trusted(record),
    )
    return text


def _environment() -> tuple[Environment, Any]:
    """Of templates that escape whatever is not marked as trusted, and the mark."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    def clean(value: Any) -> Any:
        return value if isinstance(value, Markup) else one_line(value) if isinstance(value, str) else value

    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=clean)
    return made, Markup


def _counts(study: Study) -> list[tuple[str, str]]:
    """How far the study is."""
    state = study.state
    not_tried = sum(run.status == "cancelled" for run in state.runs.values())
    left_out = sum(run.dropped for run in state.runs.values())
    counts = [(len(state.observations), "results"), (len(state.failed), "failed"), (len(state.pending), "being tried")]
    counts += [(not_tried, "not tried")] * bool(not_tried) + [(left_out, "left out")] * bool(left_out)
    counts += [(len(state.log), "times conditions")]
    spent = [] if study.spending is None else [(number(study.spending.total), "cost so far")]
    return [*((str(count), word) for count, word in counts), *spent]


def _about(study: Study, made: float) -> str:
    """When this was made, and what the study is about."""
    settings = study.settings
    words = f"{local_text(made)}; {describe_purpose(settings)}; kept in {describe(study.where)}"
    if settings.context_distribution is not None:
        words += f"; conditions are known to follow {settings.context_distribution.to_text()}"
    if settings.cost is not None:
        words += f"; a run costs {settings.cost.to_text()}"
    if study.space.constraints:
        words += f"; so that {', '.join(constraint.describe() for constraint in study.space.constraints)}"
    return words


def value_text(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)
