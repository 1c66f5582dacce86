"""What a report and the page of charts tell: everything is computed here, nothing is drawn."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.charts import Chart
from edrbo.lab import Study
from edrbo.lab.report.diagnostics import MIN_OUTCOMES, ContextShift, context_shift, describe_calibration
from edrbo.optimizer.calibration import one_step_ahead, predicted_when_suggested
from edrbo.optimizer.pareto import ParetoFront
from edrbo.optimizer.recommendation import Recommendation
from edrbo.plot import Pictures
from edrbo.records.descriptions import describe_spending
from edrbo.space import Space
from edrbo.text import describe_hypervolume, sensitivity_text

Array = NDArray[np.float64]

FEWEST_RESULTS = 4  # results of which nobody can say what moves them
MIN_CONTEXTS = 8  # contexts before a shift can be looked for
NOTE = (
    "No settings are better than one of these in every main result; the best in the first one come first. Each value "
    "is that of its goal, with the interval in which it lies with 95 %."
)


@dataclass(frozen=True, eq=False)
class Advice:
    """What to do when ``context`` is known to come."""

    context: dict[str, float]
    recommendation: Recommendation


class Facts(Pictures):
    """The charts of a study, and what is said beside them."""

    def __init__(self, study: Study, context: Mapping[str, Any] | None = None) -> None:
        study.recommend()  # the study reads what others wrote, and keeps the fit
        super().__init__(study.optimizer)
        self.study = study
        self.made = time.time()  # in seconds since 1970
        self.shift = None if not self.space.d_c else _shift_of(self.space, self.contexts)
        self.trust = self._trust()  # how far the model can be trusted, in words
        found = None if not context else self.optimizer.recommend(context=dict(context))
        self.advice = None if found is None or not context else Advice(dict(context), found)

    def _trust(self) -> str:
        if self.calibration is None:
            return ""
        model = self.optimizer.model
        before = predicted_when_suggested(self.state, self.units)
        if model is not None and len(before.y) < MIN_OUTCOMES:
            before = one_step_ahead(model)  # too few of its suggestions were made by a model
        return describe_calibration(self.calibration, before)


def gather(study: Study, context: Mapping[str, Any] | None = None) -> Facts:
    """Everything a report tells about ``study``; an error if nothing was reported yet."""
    return Facts(study, context)


def _shift_of(space: Space, contexts: Array) -> ContextShift | None:
    """Whether the last of the contexts are like those before; None where there are too few."""
    known = contexts[~np.isnan(contexts).any(axis=1)]
    if len(known) < MIN_CONTEXTS:
        return None
    return _shift(space, known, min(max(len(known) // 4, MIN_CONTEXTS // 2), 200))


def _shift(space: Space, contexts: Array, recent: int) -> ContextShift:
    """How far the last ``recent`` of ``contexts`` (n × d_c) are from those before; of a choice each level counts."""
    scale = space.context_scale(contexts)
    ranges = np.where(scale.upper > scale.lower, scale.upper - scale.lower, 1.0)
    if not any(scale.choices):
        return context_shift(contexts[:-recent], contexts[-recent:], ranges, space.context_names)
    coded, columns, widths, names = scale.encode(contexts), list[Array](), list[float](), list[str]()
    for k, ((name, variable), block) in enumerate(zip(space.context.items(), scale.blocks, strict=True)):
        if variable.width > 1:
            columns += list(coded[:, block].T)
            widths += [1.0] * variable.size
            names += [f"the share of {name} {choice}" for choice in variable.labels() or ()]
        else:
            columns.append(contexts[:, k])
            widths.append(float(ranges[k]))
            names.append(name)
    table = np.stack(columns, axis=1)
    return context_shift(table[:-recent], table[-recent:], np.array(widths), tuple(names))


# -------------------------------------------------------------------- charts with words


@dataclass(frozen=True)
class ChartSection:
    """Charts of one question, with what is to be said of them; ``warnings`` stand out."""

    title: str
    note: str
    charts: list[Chart]
    warnings: tuple[str, ...] = ()


def chart_sections(facts: Facts) -> list[ChartSection]:
    """Of a study with one main outcome."""
    parts = (_progress, _matters, _settings, _pair, _goal, _moved, _results, _conditions, _model, _when)
    return [_in_full_rows(section) for part in parts if (section := part(facts)) is not None]


def _in_full_rows(section: ChartSection) -> ChartSection:
    """With the last chart across the whole page where it would stand alone in a row of two."""
    single = [k for k, chart in enumerate(section.charts) if not chart.wide]
    if len(single) % 2 == 0:
        return section
    charts = list(section.charts)
    charts[single[-1]] = replace(charts[single[-1]], wide=True)
    return replace(section, charts=charts)


def front_sections(pictures: Pictures, front: ParetoFront) -> list[ChartSection]:
    """Of a study with several main outcomes, of which there is no one best answer."""
    pairs = [pictures.front(front, *pair) for pair in itertools.combinations(front.reference, 2)]
    words = f"Settings of which none is better in every main result. {describe_hypervolume(front)}"
    found = [
        ChartSection("What can be had together", words, pairs),
        ChartSection(
            "Progress", "Every result, in its order.", [pictures.progress(name) for name in pictures.outcomes]
        ),
        _when(pictures),
    ]
    return [_in_full_rows(section) for section in found if section is not None]


def _progress(facts: Facts) -> ChartSection:
    note = "Every result, and the best so far. What the answer gives on average lies in the green band: a single lucky "
    note += "run may lie far above what can be had again."
    drawn = [facts.progress(name) for name in facts.outcomes]
    if (by_cost := facts.progress_by_cost()) is not None:
        drawn.append(by_cost)
        spent = describe_spending(facts.state) or ""
        note += f" {spent[:1].upper()}{spent[1:]}."
    return ChartSection("Progress", note, drawn)


def _matters(facts: Facts) -> ChartSection | None:
    if len(facts.reported) < FEWEST_RESULTS:
        return None
    found = facts.sensitivities
    drawn = [chart for one in found.values() for chart in (facts.influences(one), facts.shares(one))]
    said = {name: sensitivity_text(one)[-1] for name, one in found.items()}
    note = " ".join(f"{name}: {words}" if len(said) > 1 else words for name, words in said.items())
    return ChartSection("What matters most", note, drawn) if drawn else None


def _settings(facts: Facts) -> ChartSection:
    note = "What is expected on average over the conditions along each setting, the others as in the answer. "
    note += "Faint dots are runs, at whatever conditions they met."
    if len(facts.optimizer.method.surrogate.experts) > 1:
        note += " Where the line on the safe side leaves the other one, the models disagree."
    drawn = [facts.along(part, name) for name in facts.outcomes for part in facts.slices if _known(facts, name)]
    return ChartSection("Along each setting", note, drawn)


def _known(facts: Facts, outcome: str) -> bool:
    """Whether anything was measured of it."""
    return outcome == facts.settings.outcome or outcome in facts.recommendation.outcomes


def _pair(facts: Facts) -> ChartSection | None:
    """A setting with a condition and with another setting, as far as there are two things."""
    pairs = pairs_of(facts.space)
    note = "What is expected over two of them, the other settings as in the answer, the other conditions as they come."
    return ChartSection("Two at a time", note, [facts.surface(*pair) for pair in pairs]) if pairs else None


def pairs_of(space: Space) -> list[tuple[str, str]]:
    """Of two things at a time those that are shown first: a setting with a condition, and with another setting."""
    settings = sorted(space.design_names, key=lambda name: not space.design[name].numeric)
    others = [*space.context_names[:1], *settings[1:2]]
    return [(settings[0], other) for other in others]


def _goal(facts: Facts) -> ChartSection | None:
    if facts.goal is None:
        return None
    drawn, note = [facts.goal_along(part) for part in facts.slices], f"The goal along each setting: {facts.goal}."
    if facts.space.d_c and facts.settings.outcomes is None:
        frontier = facts.optimizer.tradeoff()
        if len(frontier.designs) > 1:
            drawn.append(facts.tradeoff(frontier))
            note += " In the end, settings between the best on average and the best under the goal."
        else:
            note += " No settings are known that are better under the goal and worse on average."
    return ChartSection("Under the goal", note, drawn)


def _moved(facts: Facts) -> ChartSection | None:
    if len(facts.reported) < 2:
        return None
    note = "The answer as it was after each of these numbers of results. Once it stands still, more runs tell little."
    return ChartSection("How the answer moved", note, facts.answers())


def _results(facts: Facts) -> ChartSection | None:
    if len(facts.reported) < 2:
        return None
    drawn = [chart for name in facts.outcomes for chart in (facts.ranked(name), facts.distribution_of_results(name))]
    return ChartSection("Results", "From the best down, and how often each came.", drawn)


def _conditions(facts: Facts) -> ChartSection | None:
    if not facts.space.d_c or not len(facts.contexts):
        return None
    words = "Too few to look for a shift yet." if facts.shift is None else facts.shift.describe()
    drawn = []
    for k in range(facts.space.d_c):
        drawn += [facts.context_over_time(k), facts.context_distribution(k)]
        if np.isfinite(facts.optimizer.observations.c[:, k]).any():
            drawn += [facts.outcome_by_context(k, name) for name in facts.outcomes]
    warnings: tuple[str, ...] = ()
    if facts.shift is not None and facts.shift.p_value < 0.05:
        beyond = facts.shift.distance - facts.shift.usual > facts.recommendation.radius
        advice = "The answer above is for all conditions seen. "
        advice += "They have moved further than its worst case allows. " if beyond else ""
        warnings = (f"{advice}Consider a forecast, or a study with forgetting.",)
    return ChartSection("Conditions", words, drawn, warnings)


def _model(facts: Facts) -> ChartSection | None:
    if facts.calibration is None:
        return None
    return ChartSection("Can the model be trusted?", facts.trust, [facts.calibration_chart()])


def _when(pictures: Pictures) -> ChartSection | None:
    if (drawn := pictures.timeline()) is None:
        return None
    return ChartSection("Timeline", "When each run was suggested and when it ended.", [drawn])
