"""The report of a study of several main outcomes: the designs of which none is better than another in all."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from typing import Any

from edrbo.lab import Study
from edrbo.lab.report.parts import DataTable, Row, Section, whole_page
from edrbo.lab.report.run_table import run_table
from edrbo.lab.report.svg import Chart, number, span
from edrbo.optimizer.pareto import ParetoFront
from edrbo.records.descriptions import (
    describe_context,
    describe_design,
    describe_spending,
    outcome_headings,
    outcome_of,
)
from edrbo.records.state import State
from edrbo.text import describe_doubt, describe_hypervolume, front_table

ROWS = 300  # runs in the table
NOTE = (
    "No design is better than one of these in every main outcome; the best in the first one comes first. Each value is "
    "that of its goal, with the interval in which it lies with 95 %."
)


def front_page(study: Study, context: Mapping[str, Any] | None = None) -> str:
    """The page as text, for the learned distribution or for one ``context``."""
    front = study.front(context=dict(context)) if context else study.front()
    state, made = study.state, time.time()
    words = f"When {describe_context(state.space, context)} is known to come. " if context else ""
    drawn = [front_chart(state, front, *pair) for pair in itertools.combinations(front.reference, 2)]
    doubt = describe_doubt(front)
    heads, rows = front_table(state.settings, front)
    table = DataTable(heads, [False] * len(heads), [Row(row) for row in rows])
    warnings = [] if doubt is None else [doubt]
    sections = [
        Section("ParetoFront", f"{words}{NOTE} {describe_hypervolume(front)}", drawn, warnings, table=table),
        _runs(state),
    ]
    points = [{"design": point.design, "values": point.values} for point in front.points]
    data: dict[str, Any] = {"name": study.name, "settings": state.settings.to_dict(), "front": points}
    return whole_page(study, made, sections, data | {"hypervolume": front.hypervolume, "reference": front.reference})


def front_chart(state: State, front: ParetoFront, one: str, other: str) -> Chart:
    """Two main outcomes of the designs of a front, with what runs gave."""
    axes = outcome_headings(state.settings)
    reported = [run for run in state.runs.values() if run.status == "reported" and not run.dropped]
    pairs = [(run, outcome_of(run, one, state.settings), outcome_of(run, other, state.settings)) for run in reported]
    seen = [(run.id, x, y) for run, x, y in pairs if x is not None and y is not None]
    places = [(point.values[one], point.values[other]) for point in front.points]
    across, up = (span([*(place[k] for place in places), *(run[k + 1] for run in seen)]) for k in (0, 1))
    chart = Chart(f"{other} against {one}", across, up, axes[one], axes[other])
    tips = [f"run {key}: {number(x)}, {number(y)}" for key, x, y in seen]
    chart.dots([x for _, x, _ in seen], [y for _, _, y in seen], tips, "faint")
    order = sorted(places)
    chart.line([x for x, _ in order], [y for _, y in order], "blue")
    said = [describe_design(state.space, point.design) for point in front.points]
    chart.dots([x for x, _ in places], [y for _, y in places], said, "blue", 5.0)
    return chart


def _runs(state: State) -> Section:
    runs = list(state.runs.values())[::-1]
    note = f"The last {ROWS} of {len(runs)}." if len(runs) > ROWS else "Newest first."
    if (spent := describe_spending(state)) is not None:
        note += f" {spent[0].upper()}{spent[1:]}."
    return Section("Runs", note, table=run_table(state, runs[:ROWS]))
