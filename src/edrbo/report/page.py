"""A study as one HTML page: no network, no library, every name escaped, readable on a phone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from edrbo.optimizer.words import (
    TOO_EARLY,
    interval_words,
    limits_words,
    outcome_rows,
    stopping_words,
    success_words,
    support_words,
)
from edrbo.records.words import context_words, design_words, spending_words
from edrbo.report import charts
from edrbo.report.contents import Facts, gather
from edrbo.report.front_page import front_page
from edrbo.report.parts import head, section, value_text, whole_page
from edrbo.report.run_table import run_table
from edrbo.report.svg import number, one_line
from edrbo.study import Study
from edrbo.surrogate.kernels import get_kernel

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


def _goal_rows(facts: Facts) -> list[tuple[str, str, str]]:
    """The value under a goal that is not the mean, and what the best design on average would have given."""
    found = facts.recommendation
    if facts.goal is None:
        return []
    settings = facts.study.settings
    unit = settings.goal.unit(settings.unit)
    sure = _sure(found.value_interval, unit)
    rows = [
        (found.title, _joined(number(found.value), unit), sure),
        ("", "", interval_words(found.value_interval, found.value_parts)),
    ]
    if facts.space.d_c:
        average = found.price["on average"]
        rows += [
            (name, _outcome(facts, value), f"the design that is best on average: {_outcome(facts, average[name])}")
            for name, value in found.price["recommended"].items()
            if name != "mean"
        ]
    return rows


def _recommendation(facts: Facts) -> str:
    found = facts.recommendation
    design = "".join(
        f"<div><dt>{escape(one_line(name))}</dt><dd>{escape(_with_unit(facts, name, value))}</dd></div>"
        for name, value in found.design.items()
    )
    unit, goal_unit = facts.study.settings.unit, facts.study.settings.goal.unit(facts.study.settings.unit)
    worse = "less" if facts.study.settings.direction == "maximize" else "more"
    rows = [
        *_goal_rows(facts),
        ("expected value", _outcome(facts, found.expected), _sure(found.interval, unit)),
        ("", "", interval_words(found.interval, found.interval_parts)),
        ("next outcome", "", f"a single one: {_sure(found.outcome, unit)}"),
        ("robust value", _outcome(facts, found.robust), f"{worse} hopeful by as much as the models disagree"),
    ]
    if found.context_effect:  # otherwise the worst case is the expected value, and no bound
        ball = f"if contexts move by {100 * found.ball:.0f} % of their range in the worst way; 95 % sure"
        rows.append(("worst case", _outcome(facts, found.worst_case), ball))
        rows += [
            (f"spread due to {name}", _outcome(facts, effect), "standard deviation of the value at this design")
            for name, effect in found.context_effect.items()
        ]
    rows += [
        (name, average, "; ".join(filter(None, [aim, _sure(found.outcomes[name].interval, one_unit), holds])))
        for name, (aim, average, _, holds) in outcome_rows(found).items()
        for one_unit in [found.outcomes[name].unit]
        if name != facts.study.settings.outcome
    ]
    if (success := success_words(facts.study.settings, found)) is not None:
        rows.append(("success", success, "probability that a run of it gives a value"))
    cells = "".join(
        f"<tr><th>{escape(one_line(name))}</th><td>{escape(one_line(value))}</td><td>{escape(one_line(note))}</td></tr>"
        for name, value, note in rows
    )
    warning = limits_words(found) if found.limits_hold is False else support_words(facts.study.settings, found)
    doubt = "" if warning is None else f"<p class='warn'>{escape(one_line(warning))}</p>"
    return (
        f'<section class="key"><h2>Recommendation</h2><dl class="design">{design}</dl>{doubt}'
        f'<table class="facts">{cells}</table><p>{escape(stopping_words(found, goal_unit))}</p></section>'
    )


def _advice(facts: Facts) -> str:
    """What to set for the context that was asked about."""
    if facts.advice is None:
        return ""
    found, space = facts.advice.recommendation, facts.space
    unit = facts.study.settings.unit
    words = f"When {context_words(space, facts.advice.context)} is known to come: {design_words(space, found.design)}. "
    words += f"Expected is {_outcome(facts, found.expected)}, {_sure(found.interval, unit, '')}; "
    words += f"the next single outcome: {_sure(found.outcome, unit, '')}."
    return section("For one context", words, [])


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


def _sure(interval: tuple[float, float], unit: str, what: str = "it is ") -> str:
    low, high = interval
    if not math.isfinite(high - low):
        return f"how sure this is is {TOO_EARLY}"
    return f"95 % sure {what}between {number(low)} and {_joined(number(high), unit)}"


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
