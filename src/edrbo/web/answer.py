"""The recommendation as the answer page shows it: every number with what it means, none that is not there."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from edrbo.optimizer.recommendation import FAR
from edrbo.optimizer.words import ROUNDING
from edrbo.records.goals import parse_goal
from edrbo.records.state import State
from edrbo.study.study import Study
from edrbo.web.numbers import shown, shown_of
from edrbo.web.variables import describe_variable, unit_of


def answer_of(study: Study, context: Mapping[str, Any] | None) -> dict[str, Any]:
    """Thinks, for the learned law or for one context."""
    found = study.recommend() if context is None else study.recommend(context=dict(context))
    settings = study.state.settings
    record = plain(found.to_dict())
    record["outcome_name"] = settings.outcome
    units = settings.unit, parse_goal(found.goal).unit(settings.unit)
    return {
        "context": context,
        "design": record["design"],
        "settings": [_setting(study.state, name, value) for name, value in record["design"].items()],
        "record": record,
        "facts": facts_of(record, *units),
        "parts": parts_of(record, settings.unit),
        "doubts": doubts_of(record, settings.least_success),
        "price": price_of(record),
        "goal": found.title,
        "nearest": [{**run, "away": _away(run["distance"])} for run in record["nearest"]],
        "observations": found.observations,
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


def facts_of(record: Mapping[str, Any], unit: str = "", goal_unit: str = "") -> list[tuple[str, str, str]]:
    """Lines of (what, number, meaning)."""
    lines = []
    if record["goal"] != "expected":
        ends, words = record["value_interval"], _sure(record["value_interval"], goal_unit)
        lines.append((record["title"], _with(_to_match(record["value"], ends), goal_unit), words))
    interval = record["interval"]

    def fine(value: float) -> str:
        return _with(_to_match(value, interval), unit)

    lines.append(("expected on average", fine(record["expected"]), _sure(interval, unit)))
    lines.append(("the next single run", _range(record["outcome"], unit), "95 % of single results lie in this range"))
    if record["left_to_gain"] is not None:
        most, more = (_with(shown(record[name], 2), goal_unit) for name in ("left_to_gain", "ten_more_runs"))
        lines.append(("left to gain", f"at most {most}", "95 % sure that nothing is better than this by more"))
        lines.append(
            ("ten more runs would bring", f"about {more}", "how much better the answer is then expected to be")
        )
    lines.append(("on the safe side", fine(record["robust"]), "the average, allowing for models that disagree"))
    if record["context_effect"]:
        moved = (
            f"the average if conditions move by {_percent(record['ball'])} of their range in the worst way; 95 % sure"
        )
        lines.append(("if conditions turn against us", fine(record["worst_case"]), moved))
    for name, one in (record.get("outcomes") or {}).items():
        if one["holds"] is not None:
            words = f"{one['aim']}: as asked with a probability of {_percent(one['holds'])}"
            lines.append((name, f"holds in {_percent(one['value'], 1)}", words))
        elif name != record.get("outcome_name"):
            average = _with(_to_match(one["expected"], one["interval"]), one["unit"])
            lines.append((name, average, _sure(one["interval"], one["unit"])))
    if record["success"] is not None:
        lines.append(
            ("succeeds with", _percent(record["success"]), "how probable it is that such a run gives a result")
        )
    return lines


def parts_of(record: Mapping[str, Any], unit: str = "") -> list[tuple[str, str, str]]:
    """Where the uncertainty comes from, and what moves the outcome; lines as those of ``facts_of``."""
    lines = []
    for name, part in record["interval_parts"].items():
        if part is not None:
            lines.append(
                (_PARTS[name], _with(f"± {shown(part, 2)}", unit), "its part of the 95 %; they add in squares")
            )
    for name, effect in record["context_effect"].items():
        lines.append(
            (f"moves with {name}", _with(f"± {shown(effect, 2)}", unit), "how much the outcome changes with it")
        )
    return lines


def doubts_of(record: Mapping[str, Any], least_success: float) -> list[str]:
    """What to check before relying on the answer."""
    doubts = []
    if record["untried"]:
        doubts.append("Nothing like this was tried: even the nearest run is far away. Try it before relying on it.")
    if record["unseen"]:
        doubts.append("No run has come out as well as this is expected to on average. Try it before relying on it.")
    if record.get("limits_hold") is False:
        doubts.append("No design is known yet that keeps all limits as surely as was asked for; this comes closest.")
    success = record["success"]
    if success is not None and success < least_success - ROUNDING:
        doubts.append(
            f"It may well fail: nothing that was tried succeeds with the {_percent(least_success)} asked for."
        )
    return doubts


def price_of(record: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Lines of (what, of this design, of the one that is best on average); none if the average is the goal."""
    if record["goal"] == "expected":
        return []
    here, average = record["price"]["recommended"], record["price"]["on average"]
    return [(name, _number(value), _number(average[name])) for name, value in here.items()]


_PARTS = {
    "model": "not known of the process",
    "contexts": "not known of the conditions",
    "experts": "not known which model is right",
}


def _percent(share: float, places: int = 0) -> str:
    return f"{100 * share:.{places}f} %"


def _number(value: float | None) -> str:
    return "not known" if value is None else shown(value)


def _with(text: str, unit: str) -> str:
    return f"{text} {unit}".strip()


def _to_match(value: float, interval: Sequence[float | None]) -> str:
    """With as many digits as its interval is worth: those of a tenth of its half-width."""
    low, high = interval
    if low is None or high is None or not high > low:
        return shown(value)
    places = 1 - math.floor(math.log10((high - low) / 2))
    return shown(round(value, places), 12)


def _sure(interval: Sequence[float | None], unit: str) -> str:
    low, high = interval
    if low is None or high is None:
        return "too early to say how sure this is"
    return f"95 % sure: between {_to_match(low, interval)} and {_with(_to_match(high, interval), unit)}"


def _range(interval: Sequence[float | None], unit: str) -> str:
    low, high = interval
    if low is None or high is None:
        return "not known yet"
    return f"{_to_match(low, interval)} to {_with(_to_match(high, interval), unit)}"


def _away(distance: float) -> str:
    """A distance in lengthscales of the model in a word; from half of one on a design counts as untried."""
    return "the same" if distance < 0.02 else "near" if distance <= FAR else "far"
