"""A study as one HTML page: no network, no library, every name escaped, readable on a phone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from edrbo.lab import Study
from edrbo.lab.report import charts
from edrbo.lab.report.contents import Facts, gather
from edrbo.lab.report.pareto_page import front_page
from edrbo.lab.report.parts import Section, value_text, whole_page
from edrbo.lab.report.run_table import run_table
from edrbo.lab.report.svg import number
from edrbo.records.descriptions import describe_context, describe_design, describe_spending
from edrbo.surrogate.kernels import get_kernel
from edrbo.text import Fact, answer_text

ROWS = 300  # runs in the table


def report_page(study: Study, context: Mapping[str, float] | None = None) -> str:
    """The page as text, with advice for one ``context`` if it is given; of several main outcomes their front."""
    if study.settings.has_front:
        return front_page(study, context)
    facts = gather(study, context)
    parts = (_recommendation, _advice, _nearest, _progress, _slices, _contexts, _trust, _table)
    sections = [section for part in parts if (section := part(facts)) is not None]
    return whole_page(study, facts.made, sections, _data(facts))


def _recommendation(facts: Facts) -> Section:
    found, text = facts.recommendation, answer_text(facts.recommendation, facts.study.settings)
    price = [Fact("", "this answer", "best on average"), *text.price] if text.price else []
    return Section(
        "Set this",
        warnings=text.doubts,
        facts=[("", text.facts), ("Where the uncertainty comes from", text.sources), ("Price of robustness", price)],
        design=[(name, _with_unit(facts, name, value)) for name, value in found.design.items()],
    )


def _advice(facts: Facts) -> Section | None:
    """What to set for the context that was asked about."""
    if facts.advice is None:
        return None
    found, space = facts.advice.recommendation, facts.space
    words = (
        f"When {describe_context(space, facts.advice.context)} is known to come: "
        f"{describe_design(space, found.design)}."
    )
    return Section("For these conditions", words, facts=[("", answer_text(found, facts.study.settings).facts)])


def _nearest(facts: Facts) -> Section:
    """Has something like it been tried?"""
    found = facts.recommendation
    runs = [facts.optimizer.state.runs[tried.run] for tried in found.nearest]
    words = "The runs nearest to it, nearest first."
    if found.is_extrapolation:
        words += " Even the nearest is far away: what is expected of the recommendation is a guess between runs."
    table = run_table(facts.optimizer.state, runs)
    return Section("What was tried near the recommendation", words, table=table, near=True)


def _outcome(facts: Facts, value: float) -> str:
    """An outcome, or a difference of outcomes, with its unit."""
    return _joined(number(value), facts.study.settings.unit)


def _joined(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit else text


def _with_unit(facts: Facts, name: str, value: Any) -> str:
    variable = facts.space.design[name]
    return f"{value_text(value)}{variable.unit and ' ' + variable.unit}"


def _progress(facts: Facts) -> Section:
    note = "Dots are reported values, the grey line is the best so far. The green band is the expected value of the "
    note += "recommended design: a single lucky outcome may lie far above what can be expected again."
    drawn = [charts.progress(facts)]
    if (spent := describe_spending(facts.optimizer.state)) is not None:
        drawn.append(charts.progress_by_cost(facts))
        note += f" Beside it, the same against what was spent. {spent[0].upper()}{spent[1:]}."
    return Section("Progress", note, drawn)


def _slices(facts: Facts) -> Section:
    note = "The expected value over contexts along each design variable, the others as recommended, with its 95 % "
    note += "band. The orange line is the recommendation; faint dots are observations, at whatever context they met."
    if len(facts.optimizer.method.surrogate.experts) > 1:
        note += " Where the dashed green line, the robust value, leaves the blue one, the models disagree."
    drawn = [charts.slice_chart(facts, part) for part in facts.slices]
    if facts.goal is not None:
        drawn += [charts.goal_chart(facts, part) for part in facts.slices]
        note += f" Below, the goal along each of them: {facts.goal}."
    if facts.goal is not None and facts.space.d_c:
        frontier = facts.optimizer.tradeoff()
        if len(frontier.designs) > 1:
            drawn.append(charts.tradeoff_chart(frontier))
            note += " In the end, designs between the best on average and the best under the goal."
        else:
            note += " No design is known that is better under the goal and worse on average."
    return Section("Expected value", note, drawn)


def _contexts(facts: Facts) -> Section | None:
    if not facts.space.d_c or not len(facts.contexts):
        return None
    words = "Too few contexts to look for a shift yet." if facts.shift is None else facts.shift.describe()
    note = f"{words} Blue: earlier, orange: the last {facts.recent}."
    drawn = []
    for k in range(facts.space.d_c):
        drawn += [charts.context_over_time(facts, k), charts.context_distribution(facts, k)]
        if np.isfinite(facts.optimizer.observations.c[:, k]).any():
            drawn.append(charts.outcome_by_context(facts, k))
    shifted = facts.shift is not None and facts.shift.p_value < 0.05
    if not shifted or facts.shift is None:
        return Section("Contexts", note, drawn)
    beyond = facts.shift.distance - facts.shift.usual > facts.recommendation.radius
    advice = "The recommendation above is for all contexts seen. "
    advice += "They have moved further than its worst case allows. " if beyond else ""
    return Section("Contexts", note, drawn, [f"{advice}Consider a forecast, or a study with forgetting."])


def _trust(facts: Facts) -> Section:
    found = facts.calibration
    if found is None:
        return Section("Trust in the model", "Too few complete outcomes to judge the model yet.")
    names = facts.optimizer.method.surrogate.experts
    errors = [_outcome(facts, float(facts.units.spread_to_user(error))) for error in found.expert_rmse.tolist()]
    rows = [("model", "typical error, leaving one out")]
    rows += [(get_kernel(name).title, error) for name, error in zip(names, errors, strict=True)]
    together = _outcome(facts, float(facts.units.spread_to_user(found.rmse)))
    rows += [("together", together)] * (len(names) > 1)
    note = f"{facts.trust} {_disagreement(facts)}"
    return Section("Trust in the model", note, [charts.calibration(facts)], facts=[("", rows)])


def _disagreement(facts: Facts) -> str:
    found = facts.recommendation
    if len(facts.optimizer.method.surrogate.experts) == 1:
        return "This method has one model, so nobody disagrees."
    half = (found.interval[1] - found.interval[0]) / 2
    share = found.disagreement / half if half > 0 else 0.0
    kind = "little beside" if share < 0.5 else "about as much as" if share < 1.5 else "more than"
    return (
        f"At the recommended design the models are {_outcome(facts, found.disagreement)} apart: "
        f"{kind} the uncertainty each of them states."
    )


def _table(facts: Facts) -> Section:
    state = facts.optimizer.state
    runs = list(state.runs.values())[::-1]
    note = f"The last {ROWS} of {len(runs)}." if len(runs) > ROWS else "Newest first."
    note += " Runs that are pending, failed, cancelled or left out are marked."
    return Section("Runs", note, table=run_table(state, runs[:ROWS]))


def _data(facts: Facts) -> dict[str, Any]:
    """The numbers behind the page, for programs."""
    found = facts.recommendation
    ends = [end if math.isfinite(end) else None for end in found.interval]
    return {
        "name": facts.study.name,
        "settings": facts.study.settings.to_dict(),
        "recommendation": {"design": found.design, "expected": found.expected, "interval": ends},
        "y": facts.optimizer.observations.y.tolist(),
        "shift": None if facts.shift is None else {"distance": facts.shift.distance, "p": facts.shift.p_value},
        "coverage": None if facts.calibration is None else facts.calibration.coverage,
    }
