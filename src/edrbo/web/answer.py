"""The recommendation as the answer page shows it: every number with what it means, none that is not there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from edrbo.records.state import State
from edrbo.study.study import Study
from edrbo.web.numbers import shown, shown_of
from edrbo.web.variables import describe_variable, unit_of

NEAREST = 3


def answer_of(study: Study, context: Mapping[str, float] | None) -> dict[str, Any]:
    """Thinks, for the learned law or for one context."""
    from edrbo.optimizer.words import support_words

    found = study.recommend() if context is None else study.recommend(context=dict(context))
    state = study.state
    record = {part.name: plain(getattr(found, part.name)) for part in fields(found)}
    return {
        "context": context,
        "design": record["design"],
        "settings": [_setting(state, name, value) for name, value in record["design"].items()],
        "record": record,
        "facts": facts_of(record),
        "price": price_of(record),
        "goal": record.get("title") or state.settings.goal.to_text(),
        "nearest": nearest_runs(state, record["design"]),
        "untested": support_words(state.settings, found),
        "observations": len(state.told),
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


def facts_of(record: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Lines of (what, number, meaning); only of what this version works out."""
    lines: list[tuple[str, str, str]] = []
    interval, outcome = record.get("interval"), record.get("outcome")
    if isinstance(record.get("value"), float) and record.get("goal") != "expected":
        interval_words = _between(record.get("value_interval"), "95 % sure: between {} and {}")
        lines.append(("under the goal", shown(record["value"]), interval_words))
    lines.append(("expected on average", shown(record["expected"]), _between(interval, "95 % sure: between {} and {}")))
    if outcome:
        lines.append(("the next single run", _range(outcome), "95 % of single outcomes, noise and context included"))
    for name, title, meaning in _MEANINGS:
        if isinstance(record.get(name), float):
            lines.append((title, shown(record[name]), meaning.format(percent=f"{100 * (record.get('ball') or 0):.0f}")))
    if isinstance(record.get("success"), float):
        lines.append(("succeeds with", f"{record['success']:.0%}", "how probable it is that such a run gives a result"))
    for name, part in (record.get("interval_parts") or {}).items():
        if isinstance(part, float):
            lines.append(
                (f"not known of the {_PARTS.get(name, name)}", f"± {shown(part)}", "its share of the interval")
            )
    for name, effect in (record.get("context_effect") or {}).items():
        if isinstance(effect, float):
            lines.append((f"moves with {name}", f"± {shown(effect)}", "how much the outcome changes with it here"))
    return lines


def price_of(record: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Lines of (what, of this design, of the one that is best on average); empty where nothing is known of it."""
    price = record.get("price") or {}
    here, average = price.get("recommended"), price.get("on average")
    if not here or not average:
        return []
    return [(name, _number(value), _number(average.get(name))) for name, value in here.items()]


def _number(value: Any) -> str:
    return shown(value) if isinstance(value, float) else "not known"


_PARTS = {"model": "process", "contexts": "conditions", "experts": "right model"}
_MEANINGS = (
    ("robust", "on the safe side", "the same, allowing for models that disagree"),
    (
        "worst_case",
        "if conditions turn against us",
        "the mean when conditions move by {percent} % in the worst way; 95 % sure",
    ),
    ("left_to_gain", "left to gain", "at most this much more could be found by going on"),
)


def _between(interval: Any, words: str) -> str:
    if not interval or any(end is None for end in interval):
        return "too early to say how sure this is"
    return words.format(*(shown(float(end)) for end in interval))


def _range(interval: Any) -> str:
    return "not known yet" if any(end is None for end in interval) else " to ".join(shown(float(x)) for x in interval)


def nearest_runs(state: State, design: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tried runs whose settings are nearest to ``design``; 0 % is the same, 100 % the far end of a range."""
    x = state.space.encode_designs(dict(design))[0]
    told = [state.runs[key] for key in state.told]
    weights = np.concatenate(
        [np.full(c.stop - c.start, 0.5 if c.size and c.stop - c.start > 1 else 1.0) for c in state.space.columns]
    )
    parts = len(state.space.columns)
    away = [(float(np.sqrt(((run.x - x) ** 2 * weights).sum() / parts)), run) for run in told]
    return [
        {
            "id": run.id,
            "away": f"{100 * distance:.0f} %",
            "value": run.value,
            "design": state.space.decode_designs(run.x)[0],
            "context": None
            if run.context is None
            else dict(zip(state.space.context_names, run.context.tolist(), strict=True)),
        }
        for distance, run in sorted(away, key=lambda pair: (pair[0], pair[1].id))[:NEAREST]
    ]
