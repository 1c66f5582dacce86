"""What a study is about, and how that changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edrbo.records.goals import Direction, parse_goal
from edrbo.records.settings import Settings
from edrbo.records.state import State
from edrbo.records.words import aim_words, setting_words
from edrbo.web.numbers import shown
from edrbo.web.variables import constraints_of, describe_variable
from edrbo.web.views import history_of, variables_of

# One of each kind, for people to choose from and to change the numbers of.
GOALS = (
    "expected",
    "cvar:0.1",
    "quantile:0.1",
    "worst-case",
    "robust:0.1",
    "mean-sd:1",
    "reach:5",
    "within:3,5",
    "hit:5",
)


def goals_of(direction: Direction = "maximize", outcome: str = "the result") -> list[tuple[str, str]]:
    """Goals as they are written, with what they mean."""
    return [(text, parse_goal(text).title(direction, outcome)) for text in GOALS]


def setup_of(state: State) -> dict[str, Any]:
    settings = state.settings
    return {
        "variables": variables_of(state.space),
        "goal": settings.goal.to_text(),
        "goal_title": settings.goal.title(settings.direction, settings.outcome),
        "goals": goals_of(settings.direction, settings.outcome),
        "direction": settings.direction,
        "aim": settings.aim,
        "forgetting": settings.forgetting,
        "law": "" if settings.law is None else settings.law.to_text(),
        "law_is_written": settings.law is None or not settings.law.samples,
        "cost": "" if settings.cost is None else settings.cost.to_text(),
        "outcomes": [] if settings.outcomes is None else [(n, *aim_words(n, p)) for n, p in settings.outcomes.items()],
        "method": settings.method if isinstance(settings.method, str) else "one of your own",
    }


def amendments_of(state: State) -> list[dict[str, Any]]:
    """Every change of the settings, newest first: who, when, why, and old → new."""
    befores = [amendment.before for amendment in state.amendments]
    changes = [differences(old, new) for old, new in zip(befores, [*befores[1:], state.settings], strict=False)]
    events = [event for event in history_of(state, None) if event["kind"] == "amended" and not event["undone"]]
    told = [{**event, "changes": lines} for event, lines in zip(events, changes, strict=True)]
    return told[::-1]


def differences(old: Settings, new: Settings) -> list[str]:
    """What changed, one line each."""
    lines = []
    for role in ("design", "context"):
        was: Mapping[str, Any] = getattr(old.space, role)
        now: Mapping[str, Any] = getattr(new.space, role)
        lines += [f"{name} is new: {_words(name, now[name])}" for name in now if name not in was]
        lines += [f"{name} is gone" for name in was if name not in now]
        for name in now:
            if name in was and was[name] != now[name]:
                lines.append(f"{name}: {_words(name, was[name])} → {_words(name, now[name])}")
    held, hold = constraints_of(old.space), constraints_of(new.space)
    lines += [f"{text} must hold" for text in hold if text not in held]
    lines += [f"{text} need not hold any more" for text in held if text not in hold]
    for choice in Settings.choices():
        before, after = (setting_words(getattr(each, choice.name)) for each in (old, new))
        lines += [f"{choice.name}: {before} → {after}"] * (before != after)
    return lines


def _words(name: str, variable: Any) -> str:
    part = describe_variable(name, variable)
    if part["kind"] == "categorical":
        return ", ".join(part["choices"])
    low, high = ("…" if end is None else shown(float(end)) for end in (part["low"], part["high"]))
    return f"{low} to {high} {part['unit']}".strip() + (" (logarithmic)" if part["log"] else "")
