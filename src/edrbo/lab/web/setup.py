"""What a study is about, and how that changed."""

from __future__ import annotations

from typing import Any

from edrbo.lab.entry import OPTIONS, format_outcome
from edrbo.lab.web.views import history_of, variables_of
from edrbo.records.descriptions import changes, describe_aim
from edrbo.records.goals import Direction, parse_goal
from edrbo.records.outcomes import OutcomeRange
from edrbo.records.settings import Settings
from edrbo.records.state import State
from edrbo.space.variables import number_text

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
        "variables": variables_of(state.space),
        "goal": settings.goal.to_text(),
        "goal_title": settings.goal.title(settings.direction, settings.outcome),
        "goals": goals_of(settings.direction, settings.outcome),
        "direction": settings.direction,
        "aim": settings.aim,
        "context_half_life": settings.context_half_life,
        "context_distribution": ""
        if settings.context_distribution is None
        else settings.context_distribution.to_text(),
        "distribution_is_written": settings.context_distribution is None or not settings.context_distribution.samples,
        "cost": "" if settings.cost is None else settings.cost.to_text(),
        "outcomes": []
        if settings.outcomes is None
        else [(n, *describe_aim(n, p)) for n, p in settings.outcomes.items()],
        "method": settings.method if isinstance(settings.method, str) else "one of your own",
        "more": more_settings(settings, tuple(name for name in more if isinstance(getattr(settings, name), SHOWN))),
        "outcome_lines": format_outcome(settings),
        "one_outcome": f"{settings.outcome}={settings.direction}" + (f",unit={settings.unit}" * bool(settings.unit)),
    }


def amendments_of(state: State) -> list[dict[str, Any]]:
    """Every change of the settings, newest first: who, when, why, and old → new."""
    befores = [amendment.before for amendment in state.amendments]
    lines = [changes(old, new) for old, new in zip(befores, [*befores[1:], state.settings], strict=False)]
    events = [event for event in history_of(state, None) if event["kind"] == "amended" and not event["undone"]]
    reported = [{**event, "changes": changed} for event, changed in zip(events, lines, strict=True)]
    return reported[::-1]
