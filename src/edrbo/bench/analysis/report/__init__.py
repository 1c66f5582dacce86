"""One self-contained page of results: works offline, on a phone, and shows everything the tables and figures show."""

from __future__ import annotations

import json
import math
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from edrbo.bench.analysis.method_style import style
from edrbo.bench.analysis.results import PUBLISHED, Results
from edrbo.bench.analysis.stats import (
    IN_QUESTION,
    NOTE,
    STATISTICS,
    Series,
    cumulative_regret,
    curve_of,
    days_text,
    in_question,
    seeds_text,
    significance,
    smoothed_regret,
    summarize,
    title_of,
)
from edrbo.bench.analysis.table import Table
from edrbo.bench.analysis.tables import notes
from edrbo.bench.problems.oracle.distributions import Array
from edrbo.palette import DARK

MOST_POINTS = 200  # of a curve; longer ones are thinned
MOST_METHODS = 40  # critical values are stored up to here
ALPHA = 0.05


def page_data(results: Results, published: Results | None, title: str, against: str = IN_QUESTION) -> dict[str, Any]:
    """``against`` is the method in question, which the page shows strongly and tests against the others."""
    shown = results if published is None else Results((*results.runs, *published.runs), goal=results.goal)
    return {
        "title": title,
        "origin": "; ".join(filter(None, (seeds_text(results), days_text(results), f"written on {date.today()}"))),
        "against": in_question(results, against),
        "problems": shown.problems,
        "methods": [_method(name, shown) for name in shown.methods],
        "curves": {
            "cumulative": _curves(shown, cumulative_regret),
            "instantaneous": _curves(shown, smoothed_regret),
        },
        "statistics": {name: title_of(name, results.goal) for name in STATISTICS},
        "cells": {name: _cells(shown, name) for name in STATISTICS},
        "critical": _critical_values(),
        "alpha": ALPHA,
        "tests": _tests(results, in_question(results, against)),
        "notes": notes(results),
        "settings": _settings(results),
        "failures": [
            {"name": f"{one.problem} / {one.method} / {one.seed}", **vars(one.failure)} for one in results.failures
        ],
    }


def _method(name: str, results: Results) -> dict[str, Any]:
    runs = [run for run in results.runs if run.method == name]
    color, dashes = style(name, results.methods)
    later = [run.seconds[run.initial :] if len(run.seconds) > run.initial else run.seconds for run in runs]
    return {
        "name": name,
        "color": color,
        "dark": style(name, results.methods, DARK)[0],
        "dashes": dashes,
        "published": PUBLISHED in name,
        "runs": len(runs),
        "seconds": _number(float(np.mean(np.concatenate(later)))),
        "total": _number(float(sum(run.seconds.sum() for run in runs))),
    }


def _curves(results: Results, of: Series) -> dict[str, Any]:
    """problem → {"steps", "methods": method → {"mean", "low", "high"}}, the last two of the mean's 95 % interval."""
    table: dict[str, Any] = {}
    for problem in results.problems:
        found = {m: list(results.of(problem, m).values()) for m in results.methods}
        drawn = {method: curve_of(runs, of) for method, runs in found.items() if runs}
        length = min(len(curve.steps) for curve in drawn.values())
        keep = np.unique(np.linspace(0, length - 1, min(length, MOST_POINTS)).round().astype(int))
        table[problem] = {
            "steps": (keep + 1).tolist(),
            "methods": {
                method: {part: _numbers(getattr(curve, part)[keep]) for part in ("mean", "low", "high")}
                for method, curve in drawn.items()
            },
        }
    return table


def _cells(results: Results, name: str) -> dict[str, dict[str, list[Any]]]:
    table: dict[str, dict[str, list[Any]]] = {}
    for (problem, method), cell in summarize(results, name).items():
        table.setdefault(problem, {})[method] = [_number(cell.mean), _number(cell.std), cell.seeds]
    return table


def _critical_values() -> list[float | None]:
    """q_α of Nemenyi's test for k = 0, 1, 2, … methods, so that a page can leave methods out."""
    from scipy.stats import studentized_range

    values = np.asarray(studentized_range.ppf(1 - ALPHA, np.arange(2, MOST_METHODS + 1), np.inf))
    return [None, None, *(round(float(value) / math.sqrt(2), 4) for value in values)]


def _tests(results: Results, against: str) -> dict[str, Any]:
    """The tests of every statistic, as text, and how to read them."""
    found = {name: significance(results, name, against) for name in STATISTICS}
    return {"note": NOTE, "tables": {name: _texts(one.table()) for name, one in found.items() if one is not None}}


def _texts(table: Table) -> list[list[str]]:
    """Heading and rows."""
    rows = [[row.name, *(entry.shown for entry in row.entries)] for row in table.rows]
    return [[table.corner, *table.columns], *rows]


def _settings(results: Results) -> list[list[str]]:
    """Rows of (name, value) for the last part of the page."""
    rows = [["replicates", f"{len(results.runs)} finished, {len(results.failures)} failed"]]
    rows.append(["seeds", ", ".join(map(str, sorted({run.seed for run in results.runs})))])
    for key in ("settings", "versions", "machine"):
        for value in results.distinct(key):
            if isinstance(value, dict):
                rows.append([key, ", ".join(f"{name} {entry}" for name, entry in value.items())])
    return rows


def _number(value: float) -> float | None:
    return float(f"{value:.5g}") if math.isfinite(value) else None


def _numbers(values: Array) -> list[float | None]:
    return [_number(float(value)) for value in values]


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
