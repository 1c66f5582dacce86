"""A study as one HTML page: no network, no library, every name escaped, readable on a phone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from edrbo.records.words import context_words, design_words, spending_words
from edrbo.report import charts
from edrbo.report.contents import Facts, gather
from edrbo.report.front_page import front_page
from edrbo.report.parts import head, section, value_text, whole_page
from edrbo.report.run_table import run_table
from edrbo.report.svg import number, one_line
from edrbo.study import Study
from edrbo.surrogate.kernels import get_kernel
from edrbo.text import Fact, answer_text

ROWS = 300  # runs in the table


def report_page(study: Study, context: Mapping[str, float] | None = None) -> str:
    """The page as text, with advice for one ``context`` if it is given; of several main outcomes their front."""
    if study.settings.has_front:
        return front_page(study, context)
    facts = gather(study, context)
    body = "".join(
        (
            head(study, facts.made),
            _recommendation(facts),
            _advice(facts),
            _nearest(facts),
            _progress(facts),
            _slices(facts),
            _contexts(facts),
            _trust(facts),
            _table(facts),
        )
    )
    return whole_page(study, body, _data(facts))


def _recommendation(facts: Facts) -> str:
    found, text = facts.recommendation, answer_text(facts.recommendation, facts.study.settings)
    design = "".join(
        f"<div><dt>{escape(one_line(name))}</dt><dd>{escape(_with_unit(facts, name, value))}</dd></div>"
        for name, value in found.design.items()
    )
    doubts = "".join(f"<p class='warn'>{escape(one_line(doubt))}</p>" for doubt in text.doubts)
    price = [Fact("", "this answer", "best on average"), *text.price] if text.price else []
    return (
        f'<section class="key"><h2>Set this</h2><dl class="design">{design}</dl>{doubts}{_fact_table(text.facts)}'
        f"<h3>Where the uncertainty comes from</h3>{_fact_table(text.sources)}"
        f"{'<h3>Price of robustness</h3>' if price else ''}{_fact_table(price)}</section>"
    )


def _fact_table(facts: Sequence[Fact]) -> str:
    cells = "".join(
        f"<tr><th>{escape(one_line(label))}</th><td>{escape(one_line(value))}</td><td>{escape(one_line(note))}</td></tr>"
        for label, value, note in facts
    )
    return f'<table class="facts">{cells}</table>' if facts else ""


def _advice(facts: Facts) -> str:
    """What to set for the context that was asked about."""
    if facts.advice is None:
        return ""
    found, space = facts.advice.recommendation, facts.space
    words = f"When {context_words(space, facts.advice.context)} is known to come: {design_words(space, found.design)}."
    table = _fact_table(answer_text(found, facts.study.settings).facts)
    return section("For these conditions", words, [], table)


def _nearest(facts: Facts) -> str:
    """Has something like it been tried?"""
    found = facts.recommendation
    runs = [facts.optimizer.state.runs[tried.run] for tried in found.nearest]
    words = "The runs nearest to it, nearest first."
    if found.untried:
        words += " Even the nearest is far away: what is expected of the recommendation is a guess between runs."
    table = f'<div class="near">{run_table(facts.optimizer.state, runs)}</div>'
    return section("What was tried near the recommendation", words, [], table)


def _outcome(facts: Facts, value: float) -> str:
    """An outcome, or a difference of outcomes, with its unit."""
    return _joined(number(value), facts.study.settings.unit)


def _joined(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit else text


def _with_unit(facts: Facts, name: str, value: Any) -> str:
    variable = facts.space.design[name]
    return one_line(f"{value_text(value)}{variable.unit and ' ' + variable.unit}")


def _progress(facts: Facts) -> str:
    note = "Dots are told values, the grey line is the best so far. The green band is the expected value of the "
    note += "recommended design: a single lucky outcome may lie far above what can be expected again."
    drawn = [charts.progress(facts)]
    if (spent := spending_words(facts.optimizer.state)) is not None:
        drawn.append(charts.progress_by_cost(facts))
        note += f" Beside it, the same against what was spent. {spent[0].upper()}{spent[1:]}."
    return section("Progress", note, drawn)


def _slices(facts: Facts) -> str:
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
    return section("Expected value", note, drawn)


def _contexts(facts: Facts) -> str:
    if not facts.space.d_c or not len(facts.contexts):
        return ""
    words = "Too few contexts to look for a shift yet." if facts.shift is None else facts.shift.words()
    note = f"{words} Blue: earlier, orange: the last {facts.recent}."
    drawn = []
    for k in range(facts.space.d_c):
        drawn += [charts.context_over_time(facts, k), charts.context_law(facts, k)]
        if np.isfinite(facts.optimizer.observations.c[:, k]).any():
            drawn.append(charts.outcome_by_context(facts, k))
    shifted = facts.shift is not None and facts.shift.p_value < 0.05
    advice = ""
    if shifted and facts.shift is not None:
        beyond = facts.shift.distance - facts.shift.usual > facts.recommendation.ball
        advice = "<p class='warn'>The recommendation above is for all contexts seen. "
        advice += "They have moved further than its worst case allows. " if beyond else ""
        advice += "Consider a forecast, or a study with forgetting.</p>"
    return section("Contexts", note, drawn, advice)


def _trust(facts: Facts) -> str:
    found = facts.calibration
    if found is None:
        return section("Trust in the model", "Too few complete outcomes to judge the model yet.", [])
    names = facts.optimizer.method.surrogate.experts
    errors = [_outcome(facts, float(facts.units.spread_to_user(error))) for error in found.expert_rmse.tolist()]
    experts = "".join(
        f"<tr><th>{escape(get_kernel(name).title)}</th><td>{escape(one_line(error))}</td></tr>"
        for name, error in zip(names, errors, strict=True)
    )
    together = escape(one_line(_outcome(facts, float(facts.units.spread_to_user(found.rmse)))))
    both = f"<tr><th>together</th><td>{together}</td></tr>" * (len(names) > 1)
    table = (
        f'<table class="facts"><tr><th>model</th><td>typical error, leaving one out</td></tr>{experts}{both}</table>'
    )
    return section("Trust in the model", f"{facts.trust} {_disagreement(facts)}", [charts.calibration(facts)], table)


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


def _table(facts: Facts) -> str:
    state = facts.optimizer.state
    runs = list(state.runs.values())[::-1]
    note = f"The last {ROWS} of {len(runs)}." if len(runs) > ROWS else "Newest first."
    note += " Runs that are pending, failed, cancelled or left out are marked."
    return section("Runs", note, [], run_table(state, runs[:ROWS]))


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
