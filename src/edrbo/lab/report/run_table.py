"""Runs as a table: every status, units in the headings, names beside the values where a screen is narrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edrbo.lab.report.parts import DataTable, Row
from edrbo.lab.report.svg import number
from edrbo.records.descriptions import STATUSES, heading, outcome_headings, outcome_of, remarks_of
from edrbo.records.run import Run
from edrbo.records.spending import spending
from edrbo.records.state import State


def run_table(state: State, runs: Sequence[Run]) -> DataTable:
    space, settings = state.space, state.settings
    variables = {**space.design, **space.context}
    heads = [heading(name, variable.unit) for name, variable in variables.items()]
    spent = spending(state)
    costs = None if spent is None else spent.costs
    numbers = [*outcome_headings(settings).values(), *["cost"] * (costs is not None)]
    levels = [not variable.numeric for variable in variables.values()]
    said = remarks_of(state)
    rows = [
        Row(
            [*_cells(state, run, costs), ", ".join([*_marks(run), *said.get(run.id, [])])],
            faded=run.dropped or run.status != "reported",
        )
        for run in runs
    ]
    return DataTable(["run", *heads, *numbers, "remark"], [False, *levels, *(False for _ in numbers), True], rows)


def _cells(state: State, run: Run, costs: Mapping[int, float] | None) -> list[str]:
    space = state.space
    design = space.decode_designs(run.x)[0]
    context = {} if run.context is None else space.name_contexts(run.context[None])[0]
    cells = [variable.text(design[name]) for name, variable in space.design.items()]
    cells += [variable.text(context[name]) if name in context else "" for name, variable in space.context.items()]
    reported = [outcome_of(run, name, state.settings) for name in outcome_headings(state.settings)]
    values = ["" if value is None else number(value) for value in reported]
    paid = [] if costs is None else [number(costs[run.id]) if run.id in costs else ""]
    return [str(run.id), *cells, *values, *paid]


def _marks(run: Run) -> list[str]:
    return [word for word in (STATUSES[run.status], _expected(run), "left out" * run.dropped, run.why) if word]


def _expected(run: Run) -> str:
    """What a run that is being tried is expected to give and to cost, if that was worked out."""
    if run.status != "pending":
        return ""
    cost = "" if run.cost_expected is None else f"will cost {number(run.cost_expected)}"
    if not run.outcome_forecast or not {"low", "high"} <= run.outcome_forecast.keys():
        return cost
    outcome = f"expected {number(float(run.outcome_forecast['low']))} to {number(float(run.outcome_forecast['high']))}"
    return ", ".join(filter(None, [outcome, cost]))
