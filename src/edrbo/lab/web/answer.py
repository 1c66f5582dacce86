"""The recommendation as the answer page shows it: every number with what it means, none that is not there."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from edrbo.lab.study import Study
from edrbo.lab.web.numbers import shown_of
from edrbo.lab.web.variables import describe_variable, unit_of
from edrbo.optimizer.recommendation import EXTRAPOLATION_DISTANCE
from edrbo.records.state import State
from edrbo.text import answer_text, policy_table, policy_text, sensitivity_table, sensitivity_text


def answer_of(study: Study, context: Mapping[str, Any] | None) -> dict[str, Any]:
    """Thinks, for the learned distribution or for one context."""
    found = study.recommend() if context is None else study.recommend(context=dict(context))
    settings = study.state.settings
    record = plain(found.to_dict())
    text = answer_text(found, settings)
    return {
        "context": context,
        "design": record["design"],
        "settings": [_setting(study.state, name, value) for name, value in record["design"].items()],
        "record": record,
        "facts": text.facts,
        "parts": text.sources,
        "doubts": text.doubts,
        "price": text.price,
        "goal": text.goal,
        "nearest": [{**run, "away": _away(run["distance"])} for run in record["nearest"]],
        "observations": found.observations,
        "at": time.time(),
    }


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
        "text": shown_of(value, describe_variable(name, variable)),
        "unit": unit_of(variable),
    }


def _away(distance: float) -> str:
    """A distance in lengthscales of the model in a word; from half of one on a design is an extrapolation."""
    return "the same" if distance < 0.02 else "near" if distance <= EXTRAPOLATION_DISTANCE else "far"
