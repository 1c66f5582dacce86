"""What the screens *Answer* and *Charts* show: every number with what it means, none that is not there."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from edrbo.charts import chart_html
from edrbo.lab.report.contents import NOTE, ChartSection, chart_sections, front_sections, gather
from edrbo.lab.study import Study
from edrbo.lab.web.variables import unit_of
from edrbo.optimizer.recommendation import EXTRAPOLATION_DISTANCE
from edrbo.plot import Pictures
from edrbo.records.descriptions import describe_context
from edrbo.records.state import State
from edrbo.text import (
    answer_text,
    describe_doubt,
    describe_hypervolume,
    front_table,
    policy_table,
    policy_text,
    sensitivity_table,
    sensitivity_text,
)


def answer_of(
    study: Study, context: Mapping[str, Any] | None, goal: str | None = None, fixed: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Thinks, for the learned distribution or for one context, under the study's goal or another one."""
    found = study.recommend(context=None if context is None else dict(context), goal=goal, fixed=fixed)
    settings = study.state.settings
    record = plain(found.to_dict())
    text = answer_text(found, settings)
    return {
        **_asked(study.state, context),
        "design": record["design"],
        "settings": [_setting(study.state, name, value) for name, value in record["design"].items()],
        "record": record,
        "facts": text.facts,
        "parts": text.sources,
        "doubts": text.doubts,
        "price": text.price,
        "goal": text.goal,
        "next": text.next,
        "nearest": [{**run, "away": _away(run["distance"])} for run in record["nearest"]],
        "observations": found.observations,
        "at": time.time(),
    }


def predict_of(
    study: Study, design: Mapping[str, Any], context: Mapping[str, Any] | None, goal: str | None, outcome: str | None
) -> dict[str, Any]:
    """Thinks: what is believed of one design."""
    known = None if context is None else dict(context)
    found = study.predict(dict(design), goal=goal, context=known, outcome=outcome)
    return {
        **_asked(study.state, context),
        "design": dict(design),
        "record": {name: values[0] for name, values in plain(found).items()},
        "at": time.time(),
    }


def tradeoff_of(study: Study, goal: str | None) -> dict[str, Any]:
    """Thinks: designs between the best on average and the best under a goal."""
    return {"record": plain(study.tradeoff(goal)), "at": time.time()}


def policy_of(study: Study, known: Sequence[str]) -> dict[str, Any]:
    """Thinks: the best design for each context, where the variables of these names are known before, or all."""
    found = study.policy(known=list(known) or None)
    settings = study.state.settings
    heads, rows = policy_table(settings, found)
    return {
        "record": plain(found.to_dict()),
        "facts": policy_text(settings, found),
        "heads": heads,
        "rows": rows,
        "at": time.time(),
    }


def front_of(study: Study, context: Mapping[str, Any] | None, fixed: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Thinks, for the learned distribution or for one context."""
    found = study.front(fixed=fixed) if context is None else study.front(context=dict(context), fixed=fixed)
    state, doubt = study.state, describe_doubt(found)
    heads, rows = front_table(state.settings, found)
    return {
        **_asked(state, context),
        "record": plain(found.to_dict()),
        "front": {"words": NOTE, "volume": describe_hypervolume(found), "heads": heads, "rows": rows},
        "doubts": [] if doubt is None else [doubt],
        "observations": len(state.reported),
        "at": time.time(),
    }


def sensitivity_of(study: Study, outcome: str | None) -> dict[str, Any]:
    """Thinks: which variables matter, and what the variance of an outcome comes from."""
    found = study.sensitivity(outcome=outcome)
    heads, rows = sensitivity_table(found)
    return {
        "record": plain(found.to_dict()),
        "facts": sensitivity_text(found),
        "heads": heads,
        "rows": rows,
        "at": time.time(),
    }


def _asked(state: State, context: Mapping[str, Any] | None) -> dict[str, Any]:
    """The conditions that were asked about."""
    return {"context": context, "conditions": "" if not context else describe_context(state.space, context)}


def charts_of(study: Study) -> list[dict[str, Any]]:
    """Thinks; gives sections with their charts as HTML."""
    if study.settings.has_front:
        front = study.front()
        return [_drawn(section) for section in front_sections(Pictures(study.optimizer), front)]
    return [_drawn(section) for section in chart_sections(gather(study))]


def pair_of(study: Study, x: str, y: str) -> str:
    """Thinks; the map of two variables as HTML."""
    study.recommend()  # the study reads what others wrote
    return chart_html(Pictures(study.optimizer).surface(x, y))


def _drawn(section: ChartSection) -> dict[str, Any]:
    return {**vars(section), "charts": [chart_html(chart) for chart in section.charts]}


def plain(value: Any) -> Any:
    """In JSON types, for pages and programs; what is not finite is None."""
    if hasattr(value, "__dataclass_fields__"):
        return {part.name: plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int | bool) else str(value)


def _setting(state: State, name: str, value: Any) -> dict[str, Any]:
    variable = state.space.design[name]
    return {
        "name": name,
        "value": value,
        "text": variable.text(value),
        "unit": unit_of(variable),
    }


def _away(distance: float) -> str:
    """A distance in lengthscales of the model in a word; from half of one on a design is an extrapolation."""
    return "the same" if distance < 0.02 else "near" if distance <= EXTRAPOLATION_DISTANCE else "far"
