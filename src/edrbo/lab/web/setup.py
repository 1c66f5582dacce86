"""What a study is about, and how that changed."""

from __future__ import annotations

import math
from typing import Any

from edrbo.lab.entry import OPTIONS, format_outcome
from edrbo.lab.web.views import history_of, suggested_of
from edrbo.records.descriptions import changes, describe_aim, limit_needs
from edrbo.records.goals import goal_classes
from edrbo.records.outcomes import CONFIDENCE, Limit, OutcomeRange
from edrbo.records.settings import Settings
from edrbo.records.state import State
from edrbo.space.variables import number_text


def goal_choices(settings: Settings | None) -> list[dict[str, Any]]:
    """The goals of a form: a sentence cut at its numbers, the numbers, and which one is chosen. A goal that no sentence
    says is one more choice, which stays as it is."""
    better = "more or less" if settings is None else "more" if settings.direction == "maximize" else "less"
    text = "expected" if settings is None else settings.goal.to_text()
    name, _, rest = text.partition(":")
    given = rest.split(",") if rest else []
    found = []
    for goal in goal_classes():
        if not goal.sentence:
            continue
        numbers = [number_text(value) for value in goal.usual]
        chosen = goal.name == name and len(given) == len(goal.usual) and all(map(_is_number, given))
        if chosen:
            numbers = [number_text(float(part) * (100 if goal.per_cent else 1)) for part in given]
        pieces = goal.sentence.replace("{better}", better).split("{}")
        found.append(
            {"name": goal.name, "pieces": pieces, "numbers": numbers, "per_cent": goal.per_cent, "chosen": chosen}
        )
    if settings is not None and not any(choice["chosen"] for choice in found):
        words = settings.goal.title(settings.direction, settings.outcome)
        found.append({"name": text, "pieces": [words], "numbers": [], "per_cent": False, "chosen": True})
    return found


PURPOSES = (
    ("maximize", "more is better"),
    ("minimize", "less is better"),
    ("upper", "at most"),
    ("lower", "at least"),
)


def outcome_rows(settings: Settings | None) -> list[dict[str, Any]] | None:
    """What each of several results is for, as a form has it; None where a form has no field for something of it."""
    rows = []
    for name, part in ({} if settings is None or settings.outcomes is None else settings.outcomes).items():
        row: dict[str, Any] = {"name": name, "unit": part.unit, "number": "", "share": "95"}
        if isinstance(part, Limit):
            both = part.lower is not None and part.upper is not None
            if both or part.confidence != CONFIDENCE:
                return None
            end = part.upper if part.lower is None else part.lower
            row |= {"purpose": "upper" if part.lower is None else "lower", "number": f"{end:.12g}"}
            row["share"] = f"{100 * part.probability:.12g}"
        elif part.weight is not None or part.goal is not None:
            return None
        else:
            row["purpose"] = part.direction
        rows.append(row)
    return rows


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


SHOWN = (str, int, float, OutcomeRange, type(None))  # a method of one's own is not for a form
MORE = (
    "title",
    "outcome_range",
    "method",
    "initial",
    "evaluations",
    "seed",
    "least_success",
    "outliers",
    "context_half_life",
    "drift",
    "noise_model",
)


def more_settings(settings: Settings | None, names: tuple[str, ...] = MORE) -> list[dict[str, Any]]:
    """The settings that have no field of their own on a form; without ``settings`` those of a study to be made."""
    fields = {choice.name: choice for choice in Settings.choices()}
    return [
        {
            "name": name,
            "label": name.replace("_", " "),
            "about": fields[name].metadata["about"],
            "options": OPTIONS.get(name, ()),
            "value": _shown(fields[name].default if settings is None else getattr(settings, name)),
        }
        for name in names
    ]


def _shown(value: Any) -> str:
    if isinstance(value, OutcomeRange):
        return value.to_text()
    return value if isinstance(value, str) else "" if value is None else number_text(value, None)


def setup_of(state: State) -> dict[str, Any]:
    settings = state.settings
    more = MORE if settings.outcomes is not None else ("direction", "unit", *MORE)  # else said with each outcome
    return {
        "variables": suggested_of(state.space),
        "goal_title": settings.goal.title(settings.direction, settings.outcome),
        "goals": goal_choices(settings),
        "direction": settings.direction,
        "aim": settings.aim,
        "context_half_life": settings.context_half_life,
        "context_distribution": ""
        if settings.context_distribution is None
        else settings.context_distribution.to_text(),
        "distribution_is_written": settings.context_distribution is None or not settings.context_distribution.samples,
        "cost": "" if settings.cost is None else settings.cost.to_text(),
        "earlier": "" if settings.earlier is None else settings.earlier.to_text(),
        "outcomes": []
        if settings.outcomes is None
        else [(n, *describe_aim(n, p)) for n, p in settings.outcomes.items()],
        "method": settings.method if isinstance(settings.method, str) else "one of your own",
        "more": more_settings(settings, tuple(name for name in more if isinstance(getattr(settings, name), SHOWN))),
        "outcome_lines": format_outcome(settings),
        "outcome_rows": outcome_rows(settings),
        "purposes": PURPOSES,
        "needs": limit_needs(settings, len(state.log)),
        "one_outcome": f"{settings.outcome}={settings.direction}" + (f",unit={settings.unit}" * bool(settings.unit)),
    }


def amendments_of(state: State) -> list[dict[str, Any]]:
    """Every change of the settings, newest first: who, when, why, and old → new."""
    befores = [amendment.before for amendment in state.amendments]
    lines = [changes(old, new) for old, new in zip(befores, [*befores[1:], state.settings], strict=False)]
    events = [event for event in history_of(state, None) if event["kind"] == "amended" and not event["undone"]]
    reported = [{**event, "changes": changed} for event, changed in zip(events, lines, strict=True)]
    return reported[::-1]
