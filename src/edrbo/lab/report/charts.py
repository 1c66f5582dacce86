"""The charts of a report, one function each."""

from __future__ import annotations

from typing import Any

import numpy as np

from edrbo.acquisition.scores import SQRT2
from edrbo.lab.report.contents import Facts, Slice
from edrbo.lab.report.svg import Chart, number, span
from edrbo.optimizer.calibration import Z95
from edrbo.optimizer.tradeoff import Tradeoff
from edrbo.records.descriptions import describe_context, format_outcome, heading

MOST_DOTS = 1_500  # dots in one chart


def progress(facts: Facts) -> Chart:
    """Reported values in order, with the best so far and the expected value of the recommendation."""
    y = facts.optimizer.observations.y
    sign = 1.0 if facts.optimizer.direction == "maximize" else -1.0
    best = sign * np.maximum.accumulate(sign * y)
    order = np.arange(1, len(y) + 1, dtype=float)
    chart = Chart("Progress", (0.4, len(y) + 0.6), shared_span(facts), "results, in their order", outcome_axis(facts))
    expected = [facts.recommendation.expected] * 2
    ends = [0.4, len(y) + 0.6]
    chart.band(ends, [facts.recommendation.interval[0]] * 2, [facts.recommendation.interval[1]] * 2, "green")
    chart.line(ends, expected, "green dashed")
    chart.line(order.tolist(), best.tolist(), "grey")
    keep = _thin(len(y))
    tips = [_tip(facts, i) for i in keep]
    chart.dots(order[keep].tolist(), y[keep].tolist(), tips, "blue")
    return chart


def _tip(facts: Facts, row: int) -> str:
    """What a dot stands for: a run, its result, and the conditions it met."""
    state = facts.optimizer.state
    words = f"run {state.owners[row]}: {format_outcome(state.settings, float(state.observations.y[row]))}"
    met = state.space.name_contexts(state.observations.c[row][None])[0]
    return words + (f" at {describe_context(state.space, met)}" if met else "")


def progress_by_cost(facts: Facts) -> Chart:
    """Reported values against what all runs had cost by then, with the best so far."""
    state, spent = facts.optimizer.state, facts.study.spending
    assert spent is not None
    sign = 1.0 if facts.optimizer.direction == "maximize" else -1.0
    total, places = 0.0, dict[int, float]()
    for key, cost in spent.costs.items():
        total += cost
        places[key] = total
    owners, y = state.owners, facts.optimizer.observations.y
    known = [i for i in range(len(y)) if owners[i] in places]
    at, reported = [places[owners[i]] for i in known], y[known]
    best = sign * np.maximum.accumulate(sign * reported) if len(reported) else reported
    chart = Chart(
        "Progress by cost", (0.0, 1.05 * total or 1.0), shared_span(facts), "cost so far", outcome_axis(facts)
    )
    chart.line(at, best.tolist(), "grey")
    keep = _thin(len(known))
    tips = [f"{_tip(facts, known[i])}, cost {number(spent.costs[owners[known[i]]])}" for i in keep]
    chart.dots([at[i] for i in keep], reported[keep].tolist(), tips, "blue")
    return chart


def goal_chart(facts: Facts, part: Slice) -> Chart:
    """The goal's value along one design variable with its 95 % band."""
    posterior = part.posterior
    settings = facts.study.settings
    axis = settings.goal.axis(settings.direction, settings.outcome, settings.unit)
    low, high = span(np.concatenate([posterior.value_lower, posterior.value_upper]).tolist())
    title = f"{facts.goal} along {part.name}"
    if (labels := part.variable.labels()) is not None:
        chart = Chart(title, (-0.6, len(labels) - 0.4), (low, high), part.name, axis, labels=labels)
        places = list(map(float, range(len(labels))))
        chart.whiskers(places, posterior.value_lower.tolist(), posterior.value_upper.tolist(), "blue")
        said = [f"{label}: {number(value)}" for label, value in zip(labels, posterior.value, strict=True)]
        chart.dots(places, posterior.value.tolist(), said, "blue", 5.0)
        chart.mark(float(part.values.index(part.recommended)), "orange")
        return chart
    values = [float(value) for value in part.values]
    chart = Chart(title, (min(values), max(values)), (low, high), part.name, axis, log=part.variable.log)
    chart.band(values, posterior.value_lower.tolist(), posterior.value_upper.tolist(), "blue")
    chart.line(values, posterior.value.tolist(), "blue")
    chart.mark(float(part.recommended), "orange")
    return chart


def tradeoff_chart(found: Tradeoff) -> Chart:
    """The frontier between the mean and the goal, a dot a design."""
    mean, value = found.mean.tolist(), found.value.tolist()
    chart = Chart("Mean against the goal", span(mean), span(value), found.mean_axis, found.value_axis)
    chart.line(mean, value, "blue")
    said = [", ".join(f"{name} = {_describe(part)}" for name, part in design.items()) for design in found.designs]
    chart.dots(mean, value, said, "blue", 5.0)
    return chart


def slice_chart(facts: Facts, part: Slice) -> Chart:
    """The expected value along one design variable with its 95 % band, and what was observed."""
    posterior = part.posterior
    y = facts.optimizer.observations.y
    low, high = shared_span(facts)
    keep = _thin(len(y))
    tips = [f"{part.name} = {_describe(part.observed[i])}: {number(y[i])}" for i in keep]
    title = f"Expected value along {part.name}"
    if (labels := part.variable.labels()) is not None:
        chart = Chart(
            title,
            (-0.6, len(labels) - 0.4),
            (low, high),
            variable_axis(facts, part.name),
            outcome_axis(facts),
            labels=labels,
        )
        places = list(map(float, range(len(labels))))
        seen = [float(part.values.index(part.observed[i])) + 0.18 for i in keep]
        chart.dots(seen, y[keep].tolist(), tips, "faint")
        chart.whiskers(places, posterior.lower.tolist(), posterior.upper.tolist(), "blue")
        said = [f"{label}: {number(value)}" for label, value in zip(labels, posterior.expected, strict=True)]
        chart.dots(places, posterior.expected.tolist(), said, "blue", 5.0)
        chart.mark(float(part.values.index(part.recommended)), "orange")
        return chart
    log = part.variable.log
    ends = part.variable.limits()
    if part.variable.size and not log:
        ends = (ends[0] - 0.5, ends[1] + 0.5)
    values = [float(value) for value in part.values]
    chart = Chart(title, ends, (low, high), variable_axis(facts, part.name), outcome_axis(facts), log=log)
    chart.band(values, posterior.lower.tolist(), posterior.upper.tolist(), "blue")
    chart.dots([float(part.observed[i]) for i in keep], y[keep].tolist(), tips, "faint")
    if len(facts.optimizer.method.surrogate.experts) > 1:
        worse = -SQRT2 if facts.optimizer.direction == "maximize" else SQRT2
        chart.line(values, (posterior.expected + worse * posterior.disagreement).tolist(), "green dashed")
    chart.line(values, posterior.expected.tolist(), "blue")
    chart.mark(float(part.recommended), "orange")
    return chart


def shared_span(facts: Facts) -> tuple[float, float]:
    """One axis of outcomes for all charts that show them: a flat line is seen to be flat, and a dot is where it was."""
    found = facts.recommendation
    reach = [facts.optimizer.observations.y, np.array([found.expected, *found.interval])]
    for part in facts.slices:
        robust = SQRT2 * part.posterior.disagreement
        reach += [
            part.posterior.lower,
            part.posterior.upper,
            part.posterior.expected - robust,
            part.posterior.expected + robust,
        ]
    return span(np.concatenate(reach).tolist())


def outcome_axis(facts: Facts) -> str:
    settings = facts.study.settings
    return heading(settings.outcome, settings.unit)


def variable_axis(facts: Facts, name: str) -> str:
    variable = facts.space.design.get(name) or facts.space.context[name]
    return heading(name, variable.unit)


def outcome_by_context(facts: Facts, k: int) -> Chart:
    """What was reported against one context variable."""
    name, data = facts.space.context_names[k], facts.optimizer.observations
    rows = np.flatnonzero(np.isfinite(data.c[:, k]))
    values, y = data.c[rows, k], data.y[rows]
    title = f"{facts.study.settings.outcome} against {name}"
    reach, labels = _context_axis(facts, k, values)
    axis = variable_axis(facts, name)
    chart = Chart(title, reach, shared_span(facts), axis, outcome_axis(facts), labels=labels)
    ids = facts.optimizer.state.owners
    keep = _thin(len(rows))
    tips = [f"run {ids[rows[i]]}: {name} {_met(values[i], labels)}, {number(y[i])}" for i in keep]
    chart.dots(values[keep].tolist(), y[keep].tolist(), tips, "blue")
    return chart


def context_over_time(facts: Facts, k: int) -> Chart:
    """One context variable in the order of arrival; the recent ones stand out."""
    name, values = facts.space.context_names[k], facts.contexts[:, k]
    order = np.arange(1, len(values) + 1, dtype=float)
    reach, labels = _context_axis(facts, k, values)
    ends, axis = (0.0, len(values) + 1.0), variable_axis(facts, name)
    chart = Chart(f"{name} over time", ends, reach, "context, in order of arrival", axis, y_labels=labels)
    cut = len(values) - facts.recent
    keep = _thin(len(values))
    keep = keep[np.isfinite(values[keep])]
    for chosen, kind in ((keep[keep < cut], "blue"), (keep[keep >= cut], "orange")):
        tips = [f"context {i + 1}: {_met(values[i], labels)}" for i in chosen]
        chart.dots(order[chosen].tolist(), values[chosen].tolist(), tips, kind, 2.6)
    return chart


def context_distribution(facts: Facts, k: int) -> Chart:
    """The distribution of one context variable, earlier and recent."""
    name, values = facts.space.context_names[k], facts.contexts[:, k]
    (low, high), labels = _context_axis(facts, k, values)
    edges = np.linspace(low, high, 19) if labels is None else np.arange(len(labels) + 1) - 0.5
    cut = len(values) - facts.recent
    earlier, recent = (np.histogram(some[np.isfinite(some)], edges)[0] for some in (values[:cut], values[cut:]))
    earlier, recent = earlier / max(cut, 1), recent / max(facts.recent, 1)
    top = 1.1 * float(max(earlier.max(), recent.max(), 0.01))
    chart = Chart(
        f"Distribution of {name}", (low, high), (0.0, top), variable_axis(facts, name), "share", labels=labels
    )
    chart.bars(edges.tolist(), earlier.tolist(), "blue")
    steps = np.repeat(edges, 2)[1:-1]
    chart.line(steps.tolist(), np.repeat(recent, 2).tolist(), "orange")
    return chart


def _context_axis(facts: Facts, k: int, values: Any) -> tuple[tuple[float, float], list[str] | None]:
    """The range of context variable ``k`` on an axis and, of choices, their names."""
    variable = facts.space.context[facts.space.context_names[k]]
    if (labels := variable.labels()) is None:
        return span(values), None
    return (-0.6, len(labels) - 0.4), labels


def _met(value: float, labels: list[str] | None) -> str:
    return number(value) if labels is None else labels[int(value)]


def calibration(facts: Facts) -> Chart:
    """Outcomes against what was predicted of them from the others."""
    found = facts.calibration
    assert found is not None
    actual, predicted = facts.units.to_user(found.y), facts.units.to_user(found.mean)
    reach = facts.units.spread_to_user(Z95 * found.sd)
    low, high = span([*actual.tolist(), *predicted.tolist()])
    chart = Chart("Leave-one-out calibration", (low, high), (low, high), "predicted from the others", "observed")
    chart.line([low, high], [low, high], "grey dashed")
    keep = _thin(len(actual), 300)
    inside = np.abs(actual - predicted) <= reach
    for chosen, kind in ((keep[inside[keep]], "blue"), (keep[~inside[keep]], "orange")):
        lower = np.clip(predicted[chosen] - reach[chosen], low, high)
        upper = np.clip(predicted[chosen] + reach[chosen], low, high)
        _level_whiskers(chart, lower.tolist(), upper.tolist(), actual[chosen].tolist(), kind)
        tips = [f"predicted {number(predicted[i])} ± {number(reach[i])}, observed {number(actual[i])}" for i in chosen]
        chart.dots(predicted[chosen].tolist(), actual[chosen].tolist(), tips, kind)
    return chart


def _level_whiskers(chart: Chart, lower: list[float], upper: list[float], y: list[float], kind: str) -> None:
    for low, high, at in zip(lower, upper, y, strict=True):
        chart.line([low, high], [at, at], f"{kind} thin")


def _thin(count: int, most: int = MOST_DOTS) -> Any:
    """Positions of at most ``most`` of ``count`` things, evenly."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))


def _describe(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)
