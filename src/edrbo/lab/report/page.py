"""A study as one HTML page: no network, no library, every name escaped, readable on a phone."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from edrbo import __version__
from edrbo.charts import Chart, chart_html, number, one_line, typeset
from edrbo.lab import Study
from edrbo.lab.entry import local_text
from edrbo.lab.report.contents import NOTE, Facts, chart_sections, front_sections, gather
from edrbo.plot import Pictures
from edrbo.records.descriptions import (
    STATUSES,
    aim_text,
    constraint_texts,
    describe_context,
    describe_design,
    describe_purpose,
    describe_spending,
    heading,
    limit_needs,
    measured,
    notes_of,
    outcome_headings,
    outcome_of,
    remarks_of,
)
from edrbo.records.run import Run
from edrbo.records.state import State, spending
from edrbo.records.suggested_ranges import describe_range
from edrbo.space.variables import format_value
from edrbo.surrogate.kernels import get_kernel
from edrbo.text import Fact, answer_text, describe_doubt, describe_hypervolume, front_table, with_unit

if TYPE_CHECKING:
    from jinja2 import Environment

ROWS = 300  # runs in the table
Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Row:
    """``run`` is the number that charts lead to."""

    cells: list[str]
    faded: bool = False
    run: int | None = None


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
    charts: Sequence[Chart] = ()
    warnings: Sequence[str] = ()
    facts: Sequence[tuple[str, Rows]] = ()
    table: DataTable | None = None
    design: Sequence[tuple[str, str]] = ()
    near: bool = False


def report_page(study: Study, context: Mapping[str, float] | None = None) -> str:
    """The page as text, with advice for one ``context`` if it is given; of several main outcomes their front, and the
    plan of a study without a result."""
    if not study.state.reported:
        return _plan_page(study)
    if study.settings.has_front:
        return _front_page(study, context)
    facts = gather(study, context)
    drawn = [Section(part.title, part.note, part.charts, part.warnings) for part in chart_sections(facts)]
    notes = _notes(facts.state)
    sections = [_answer(facts), *_advice(facts), _nearest(facts), *notes, *drawn, _errors(facts), _runs(facts.state)]
    return _whole_page(study, facts.made, sections, _data(facts))


# -------------------------------------------------------------------- one main outcome


def _answer(facts: Facts) -> Section:
    found, text = facts.recommendation, answer_text(facts.recommendation, facts.settings)
    price = [Fact("", "this answer", "best on average"), *text.price] if text.price else []
    return Section(
        "Set this",
        f"The goal: {text.goal}.",
        warnings=text.doubts,
        facts=[("", text.facts), ("Where the uncertainty comes from", text.sources), ("Price of robustness", price)],
        design=[(name, format_value(facts.space.design[name], value)) for name, value in found.design.items()],
    )


def _advice(facts: Facts) -> list[Section]:
    """What to set for the context that was asked about."""
    if facts.advice is None:
        return []
    found, space = facts.advice.recommendation, facts.space
    words = (
        f"When {describe_context(space, facts.advice.context)} is known to come: "
        f"{describe_design(space, found.design)}."
    )
    return [Section("For these conditions", words, facts=[("", answer_text(found, facts.settings).facts)])]


def _nearest(facts: Facts) -> Section:
    """Has something like it been tried?"""
    found = facts.recommendation
    runs = [facts.state.runs[tried.run] for tried in found.nearest]
    words = "The runs nearest to it, nearest first."
    if found.is_extrapolation:
        words += " Even the nearest is far away: what is expected of the answer is a guess between runs."
    return Section("What was tried near the answer", words, table=run_table(facts.state, runs), near=True)


def _errors(facts: Facts) -> Section:
    """How far off each model is."""
    found = facts.calibration
    if found is None:
        return Section("The models", "Too few complete results to judge the model yet.")

    def error(value: float) -> str:
        return with_unit(number(float(facts.units.spread_to_user(value))), facts.settings.unit)

    names = facts.optimizer.method.surrogate.experts
    rows = [("model", "typical error, leaving one out")]
    rows += [(get_kernel(name).title, error(one)) for name, one in zip(names, found.expert_rmse.tolist(), strict=True)]
    rows += [("together", error(found.rmse))] * (len(names) > 1)
    return Section("The models", _disagreement(facts), facts=[("", rows)])


def _disagreement(facts: Facts) -> str:
    found = facts.recommendation
    if len(facts.optimizer.method.surrogate.experts) == 1:
        return "This method has one model, so nobody disagrees."
    half = (found.interval[1] - found.interval[0]) / 2
    share = found.disagreement / half if half > 0 else 0.0
    kind = "little beside" if share < 0.5 else "about as much as" if share < 1.5 else "more than"
    apart = with_unit(number(found.disagreement), facts.settings.unit)
    return f"At the answer the models are {apart} apart: {kind} the uncertainty each of them states."


def _data(facts: Facts) -> dict[str, Any]:
    """The numbers behind the page, for programs."""
    found = facts.recommendation
    ends = [end if math.isfinite(end) else None for end in found.interval]
    return {
        "name": facts.study.name,
        "settings": facts.settings.to_dict(),
        "recommendation": {"design": found.design, "expected": found.expected, "interval": ends},
        "y": facts.optimizer.observations.y.tolist(),
        "shift": None if facts.shift is None else {"distance": facts.shift.distance, "p": facts.shift.p_value},
        "coverage": None if facts.calibration is None else facts.calibration.coverage,
    }


# -------------------------------------------------------------------- several main outcomes, or none yet


def _front_page(study: Study, context: Mapping[str, Any] | None) -> str:
    """The designs of which none is better than another in all, for the learned distribution or for one ``context``."""
    front = study.front(context=dict(context)) if context else study.front()
    state, pictures = study.state, Pictures(study.optimizer)
    words = f"When {describe_context(state.space, context)} is known to come. " if context else ""
    doubt = describe_doubt(front)
    heads, rows = front_table(state.settings, front)
    table = DataTable(heads, [False] * len(heads), [Row(row) for row in rows])
    warnings = [] if doubt is None else [doubt]
    first = Section("Set one of these", f"{words}{NOTE} {describe_hypervolume(front)}", (), warnings, table=table)
    drawn = [Section(part.title, part.note, part.charts) for part in front_sections(pictures, front)]
    points = [{"design": point.design, "values": point.values} for point in front.points]
    data: dict[str, Any] = {"name": study.name, "settings": state.settings.to_dict(), "front": points}
    data |= {"hypervolume": front.hypervolume, "reference": front.reference}
    return _whole_page(study, None, [first, *_notes(state), *drawn, _runs(state)], data)


def _plan_page(study: Study) -> str:
    """What is to be found out, and what is being tried."""
    state = study.state
    settings, space = state.settings, state.space
    variables = [
        ("Settings we choose", [(name, describe_range(space, name)) for name in space.design]),
        ("Conditions we meet", [(name, variable.describe()) for name, variable in space.context.items()]),
    ]
    outcomes = settings.outcomes
    wanted = (
        [(settings.outcome, settings.direction)]
        if outcomes is None
        else [(name, aim_text(name, part)) for name, part in outcomes.items()]
    )
    held = [("", text) for text in constraint_texts(space)]
    plan = Section(
        "The plan",
        "Nothing was measured yet: this is what is to be found out.",
        warnings=limit_needs(settings, len(state.log)),
        facts=[("What is measured", wanted), *variables, *([("What must hold between them", held)] if held else [])],
    )
    data = {"name": study.name, "settings": settings.to_dict()}
    return _whole_page(study, None, [plan, *_notes(state), *([_runs(state)] if state.runs else [])], data)


# -------------------------------------------------------------------- runs


def _runs(state: State) -> Section:
    runs = list(state.runs.values())[::-1]
    note = f"The last {ROWS} of {len(runs)}." if len(runs) > ROWS else "Newest first."
    if (spent := describe_spending(state)) is not None:
        note += f" {spent[0].upper()}{spent[1:]}."
    return Section("Runs", note, table=run_table(state, runs[:ROWS]))


def _notes(state: State) -> list[Section]:
    """What people wrote about the study."""
    rows = [(" ".join(filter(None, [local_text(one.at), one.by])), one.note or "") for one in notes_of(state)]
    return [Section("Notes", facts=[("", rows)])] if rows else []


def run_table(state: State, runs: Sequence[Run]) -> DataTable:
    """Runs of every status, with units in the headings, who measured them and when."""
    space, settings = state.space, state.settings
    variables = {**space.design, **space.context}
    heads = [heading(name, variable.unit) for name, variable in variables.items()]
    spent = spending(state)
    costs = None if spent is None else spent.costs
    controlled = any(run.control is not None for run in runs)
    numbers = [*outcome_headings(settings).values(), *["control"] * controlled, *["cost"] * (costs is not None)]
    levels = [not variable.numeric for variable in variables.values()]
    said, stamps = remarks_of(state), measured(state)
    rows = []
    for run in runs:
        stamp = stamps.get(run.id)
        who = [] if stamp is None else [local_text(stamp.at), stamp.by or ""]
        remarks = ", ".join([*_marks(run), *said.get(run.id, [])])
        cells = [*_cells(state, run, costs, controlled), ", ".join(filter(None, who)), remarks]
        rows.append(Row(cells, faded=run.dropped or run.status != "reported", run=run.id))
    words = [False, *levels, *(False for _ in numbers), True, True]
    return DataTable(["run", *heads, *numbers, "when, who", "remark"], words, rows)


def _cells(state: State, run: Run, costs: Mapping[int, float] | None, controlled: bool) -> list[str]:
    space = state.space
    design = space.decode_designs(run.x)[0]
    context = {} if run.context is None else space.name_contexts(run.context[None])[0]
    cells = [variable.text(design[name]) for name, variable in space.design.items()]
    cells += [variable.text(context[name]) if name in context else "" for name, variable in space.context.items()]
    reported = [outcome_of(run, name, state.settings) for name in outcome_headings(state.settings)]
    values = ["" if value is None else number(value) for value in reported]
    values += ["" if run.control is None else number(run.control)] * controlled
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


# -------------------------------------------------------------------- the page


def _whole_page(study: Study, made: float | None, sections: Sequence[Section], data: Mapping[str, Any]) -> str:
    """One HTML page without network, ``made`` at a time (seconds since 1970; None: now); ``data`` are the numbers
    behind it, for programs."""
    environment, trusted = _environment()
    assets = [
        files(room).joinpath(name).read_text("utf-8")
        for room, name in (
            ("edrbo.charts", "static/chart.css"),
            ("edrbo.lab.report", "page.css"),
            ("edrbo.charts", "static/chart.js"),
        )
    ]
    style, script = assets[0] + assets[1], assets[2]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # nothing in the data can end the script element
    record = json.dumps(data).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    shown = [{**vars(part), "charts": [trusted(chart_html(chart)) for chart in part.charts]} for part in sections]
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
        return value if isinstance(value, Markup) else typeset(one_line(value)) if isinstance(value, str) else value

    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=clean)
    return made, Markup


def _counts(study: Study) -> list[tuple[str, str]]:
    """How far the study is."""
    state = study.state
    not_tried = sum(run.status == "cancelled" for run in state.runs.values())
    left_out = sum(run.dropped for run in state.runs.values())
    counts = [(len(state.observations), "results"), (len(state.failed), "failed"), (len(state.pending), "being tried")]
    counts += [(not_tried, "not tried")] * bool(not_tried) + [(left_out, "left out")] * bool(left_out)
    counts += [(len(state.log), "conditions met")]
    spent = [] if study.spending is None else [(number(study.spending.total), "cost so far")]
    return [*((str(count), word) for count, word in counts), *spent]


def _about(study: Study, made: float | None) -> str:
    """When this was made, and what the study is about; not where it is kept, since pages are sent around."""
    settings = study.settings
    words = f"{local_text(time.time() if made is None else made)}; {describe_purpose(settings)}"
    if settings.context_distribution is not None:
        words += f"; conditions are known to follow {settings.context_distribution.to_text()}"
    if settings.cost is not None:
        words += f"; a run costs {settings.cost.to_text()}"
    if settings.earlier is not None:
        words += f"; learns from {settings.earlier.to_text()}"
    if study.space.constraints:
        words += f"; so that {', '.join(constraint.describe() for constraint in study.space.constraints)}"
    return words
