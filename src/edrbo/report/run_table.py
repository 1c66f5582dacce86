"""Runs as an HTML table: every status, units in the headings, names beside the values where a screen is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from edrbo.records.run import Run
from edrbo.records.state import State
from edrbo.records.words import heading, outcome_headings, outcome_of
from edrbo.report.svg import number, one_line

MARKS = {"told": "", "pending": "being tried", "failed": "failed", "cancelled": "cancelled"}


def run_table(state: State, runs: Sequence[Run]) -> str:
    space, settings = state.space, state.settings
    variables = {**space.design, **space.context}
    heads = [heading(name, variable.unit) for name, variable in variables.items()]
    names = ["run", *heads, *outcome_headings(settings).values(), "remark"]
    top = "".join(f"<th>{escape(one_line(name))}</th>" for name in names)
    body = "".join(_row(names, _cells(state, run), run) for run in runs)
    return f'<div class="scroll"><table class="data"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _cells(state: State, run: Run) -> list[str]:
    space = state.space
    design = space.decode_designs(run.x)[0]
    context = {} if run.context is None else space.name_contexts(run.context[None])[0]
    cells = [variable.text(design[name]) for name, variable in space.design.items()]
    cells += [variable.text(context[name]) if name in context else "" for name, variable in space.context.items()]
    told = [outcome_of(run, name, state.settings) for name in outcome_headings(state.settings)]
    values = ["" if value is None else number(value) for value in told]
    remarks = [MARKS[run.status], _expected(run), "left out" * run.dropped, run.why or ""]
    return [str(run.id), *cells, *values, ", ".join(filter(None, remarks))]


def _expected(run: Run) -> str:
    """What the outcome of a run that is being tried was expected to be, if that was worked out."""
    if run.status != "pending" or not run.expects or not {"low", "high"} <= run.expects.keys():
        return ""
    return f"expected {number(float(run.expects['low']))} to {number(float(run.expects['high']))}"


def _row(names: list[str], cells: list[str], run: Run) -> str:
    kind = ' class="faded"' if run.dropped or run.status != "told" else ""
    texts = (
        f'<td data-name="{escape(one_line(name))}">{escape(one_line(cell))}</td>'
        for name, cell in zip(names, cells, strict=True)
    )
    return f"<tr{kind}>{''.join(texts)}</tr>"
