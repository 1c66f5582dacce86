"""Runs and events in sentences, with units, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.records import events as e
from edrbo.records.goals import as_goal
from edrbo.records.outcomes import Limit, Maximize, Minimize
from edrbo.records.reducer import undone
from edrbo.records.run import Run
from edrbo.records.settings import Settings
from edrbo.records.state import State, spending
from edrbo.records.suggested_ranges import SuggestedRanges, describe_range
from edrbo.space import Space
from edrbo.space.variables import format_value, number_text

Array = NDArray[np.float64]


def plural(count: int, word: str, words: str | None = None) -> str:
    """``count`` with its noun: 1 run, 2 runs."""
    return f"{count} {word if count == 1 else words or word + 's'}"


def heading(name: str, unit: str) -> str:
    """A column's heading: speed [m/min]."""
    return f"{name} [{unit}]" if unit else name


def format_outcome(settings: Settings, value: float) -> str:
    """An outcome with its unit."""
    return f"{number_text(value)}{settings.unit and ' ' + settings.unit}"


def describe_outcomes(settings: Settings, value: float | None, others: Mapping[str, float]) -> str:
    """gloss 1.2 GU, roughness 0.3"""
    texts = [] if value is None else [f"{settings.outcome} {format_outcome(settings, value)}"]
    units = {name: part.unit for name, part in (settings.outcomes or {}).items()}
    texts += [f"{name} {number_text(number)} {units.get(name, '')}".strip() for name, number in others.items()]
    return ", ".join(texts)


def describe_aim(name: str, part: Maximize | Minimize | Limit) -> tuple[str, str]:
    """What an outcome is for, and its unit."""
    if isinstance(part, Limit):
        return part.describe(name), part.unit
    weight = "" if part.weight is None else f", weight {part.weight:g}"
    goal = "" if part.goal is None else f", {as_goal(part.goal).title(part.direction, name)}"
    return f"{part.kind}{weight}{goal}", part.unit


def describe_need(name: str, limit: Limit, known: float) -> str:
    """What is missing before a limit can be assured at all, where ``known`` conditions are; empty where nothing is."""
    if known >= limit.contexts_needed:
        return ""
    share = f"{100 * limit.probability:g} % of conditions"
    sure = f"To be {100 * limit.confidence:g} % sure that the limit on {name} holds in {share}"
    lines = f"{sure}, {limit.contexts_needed} conditions must be known, even if none breaks it; there are {known:.0f}."
    reach = limit.probability_within_reach(known)
    less = f", or ask for {100 * reach:.0f} % (probability={reach:g})" if reach >= 0.5 else ", or ask for less"
    return f"{lines} Import records of conditions, such as the weather{less}."


def limit_needs(settings: Settings, known: float) -> list[str]:
    """The same of every limit, before anything is worked out."""
    if settings.outcomes is None or settings.context_distribution is not None or not settings.space.d_c:
        return []
    needs = (describe_need(name, limit, known) for name, limit in settings.outcomes.limits.items())
    return [need for need in needs if need]


def outcome_headings(settings: Settings) -> dict[str, str]:
    """Heading of every outcome by name, the main one first."""
    own = {settings.outcome: heading(settings.outcome, settings.unit)}
    outcomes = settings.outcomes
    return own if outcomes is None else own | {name: heading(name, outcomes[name].unit) for name in outcomes.others}


def outcomes_of(run: Run, settings: Settings) -> dict[str, float]:
    """Those that were measured, by name, the main one first."""
    return {**({} if run.value is None else {settings.outcome: run.value}), **run.others}


def outcome_of(run: Run, name: str, settings: Settings) -> float | None:
    """The value of the outcome ``name``; None if it was not measured."""
    return run.value if name == settings.outcome else run.others.get(name)


def broken_limits(run: Run, settings: Settings) -> list[str]:
    """The outcomes of which a run's values break the limit."""
    found = []
    for name, limit in ({} if settings.outcomes is None else settings.outcomes.limits).items():
        value = outcome_of(run, name, settings)
        low, high = limit.ends
        if value is not None and not low <= value <= high:
            found.append(name)
    return found


def describe_design(space: Space, design: Mapping[str, Any]) -> str:
    """speed 38 m/min, kind plain"""
    known = space.design  # an answer may speak of more, in the words of its interface
    return ", ".join(
        f"{name} {format_value(known[name], value) if name in known else value}" for name, value in design.items()
    )


def describe_context(space: Space, context: Mapping[str, Any]) -> str:
    """humidity 55 %"""
    return ", ".join(f"{name} {format_value(space.context[name], value)}" for name, value in context.items())


def describe_spending(state: State) -> str | None:
    """What the runs cost so far; None where nothing is known of costs."""
    found, cost = spending(state), state.settings.cost
    if found is None:
        return None
    text = f"cost so far {number_text(found.total)}"
    if found.unknown:
        text += f", without {plural(found.unknown, 'run')} of which it is not known"
    return text if cost is None else f"{text}; a run costs {cost.to_text()}"


def describe_run(state: State, run: Run) -> str:
    """A run and what came of it, in a sentence."""
    space = state.space
    design = describe_design(space, space.decode_designs(run.x)[0])
    met = ""
    if run.series is not None:
        met = f" in {plural(len(run.series), 'row')}"
    elif run.context is not None and space.d_c:
        met = f" at {describe_context(space, space.name_contexts(run.context[None])[0])}"
        met += " and what is not known yet" * run.late
    elif run.late:
        met = ", in conditions not known yet"
    if run.status == "reported":
        gave = describe_outcomes(state.settings, run.value, run.others)
        gave += " on average" * (run.series is not None)
        if run.control is not None and run.measured is not None:
            gave += f" relative to a control run ({number_text(run.measured)} and {number_text(run.control)})"
        text = f"run {run.id}: {design}{met} gave {gave}"
        text += f" (noise variance {number_text(run.noise_variance)})" if run.noise_variance is not None else ""
    else:
        text = f"run {run.id}: {design}{met}: {STATUSES[run.status]}"
    text += f", cost {number_text(run.cost)}" if run.cost is not None else ""
    text += "; left out" if run.dropped else ""
    return f"{text} ({run.why})" if run.why else text


def describe_event(state: State, event: e.Event) -> str:
    """What happened, in the terms of its day; for the history of a run or a study."""
    space = _space_of(state, event)
    settings = state.settings
    parts: list[str] = []
    x, context = getattr(event, "x", None), getattr(event, "context", None)
    if x is not None:
        parts.append(describe_design(space, space.decode_designs(x)[0]))
    if isinstance(event, e.Reported | e.Corrected) and (event.value is not None or event.others):
        parts.append(describe_outcomes(settings, event.value, event.others or {}))
    if isinstance(event, e.Reported | e.Corrected) and event.control is not None:
        parts.append(f"control run {number_text(event.control)}")
    if isinstance(event, e.Reported) and event.values is not None:
        parts.append(f"on average of {plural(len(event.values), 'row')}")
    if isinstance(event, e.Corrected) and event.row is not None:
        parts.append(f"in row {event.row}")
    if context is not None and len(context):
        parts.append(describe_context(space, space.name_contexts(context[None])[0]))
    if isinstance(event, e.Reported | e.Corrected) and event.noise_variance is not None:
        parts.append(f"noise variance {number_text(event.noise_variance)}")
    if isinstance(event, e.Reported | e.Failed | e.Corrected) and event.cost is not None:
        parts.append(f"cost {number_text(event.cost)}")
    if isinstance(event, e.Seen):
        parts.append(plural(event.count, "time"))
    if isinstance(event, e.Amended):
        parts += describe_amendment(state, event)
    if isinstance(event, e.Undone):
        past = next((past for past in state.history if past.ref == event.of), None)
        parts.append("" if past is None else entry_words(state, past))
    why = getattr(event, "why", None)
    text = f"{VERBS[event.kind]}{': ' * bool(parts)}{', '.join(parts)}"
    return f"{text} ({why})" if why else text


VERBS = {
    "asked": "suggested",
    "reported": "result",
    "failed": "failed, no result",
    "context": "conditions reported later",
    "seen": "conditions seen",
    "cancelled": "not tried",
    "corrected": "corrected",
    "dropped": "left out",
    "restored": "taken in again",
    "noted": "noted",
    "undone": "taken back",
    "amended": "settings changed",
}
STATUSES = {"reported": "", "pending": "being tried", "failed": VERBS["failed"], "cancelled": VERBS["cancelled"]}


def entry_words(state: State, event: e.Event) -> str:
    """The same with the run that it is about."""
    number, words = getattr(event, "id", None), describe_event(state, event)
    return words if number is None else f"run {number}, {words}"


def describe_amendment(state: State, event: e.Amended) -> list[str]:
    """Old → new of everything that an amendment changed."""
    amended = [past for past in state.history if isinstance(past, e.Amended)]
    place = next((k for k, past in enumerate(amended) if past is event), None)
    befores = [amendment.before for amendment in state.amendments]
    if place is None or len(amended) != len(befores):  # it was undone: what stood before it is not known any more
        return sorted(event.settings)
    return changes(befores[place], [*befores, state.settings][place + 1])


def changes(old: Settings, new: Settings) -> list[str]:
    """Old → new, one text each."""
    lines = []
    for choice in Settings.choices():
        if choice.name == "outcomes":
            lines += _aim_changes(old, new)
            continue
        one, two = (_setting_text(settings, choice.name) for settings in (old, new))
        if one != two:
            lines.append(f"{choice.name.replace('_', ' ')}: {one} → {two}")
    was, now = (
        {
            **{name: describe_range(settings.space, name) for name in settings.space.design},
            **{name: variable.describe() for name, variable in settings.space.context.items()},
        }
        for settings in (old, new)
    )
    lines += [f"{name} is new: {words}" for name, words in now.items() if name not in was]
    lines += [f"{name}: {was[name]} → {words}" for name, words in now.items() if was.get(name, words) != words]
    lines += [f"{name} is gone" for name in was if name not in now]
    held, holds = (constraint_texts(settings.space) for settings in (old, new))
    lines += [f"{words} must hold" for words in holds if words not in held]
    lines += [f"{words} need not hold any more" for words in held if words not in holds]
    return lines


def constraint_texts(space: Space) -> list[str]:
    """What must hold between settings, without what only narrows the range of one."""
    functions = [constraint.describe() for constraint in space.constraints if constraint.function is not None]
    return [*(text for text in SuggestedRanges.of(space).constraints if text not in functions), *functions]


def _setting_text(settings: Settings, name: str) -> str:
    """The value of a setting, a goal by its sentence."""
    if name == "goal":
        return settings.goal.title(settings.direction, settings.outcome)
    return format_setting(getattr(settings, name))


def _aim_changes(old: Settings, new: Settings) -> list[str]:
    """What outcomes are for, one text each."""
    before, after = (
        {name: aim_text(name, part) for name, part in (settings.outcomes or {}).items()} for settings in (old, new)
    )
    known = before.keys() | ({old.outcome} if old.outcomes is None else set())
    lines = [
        f"{name}: {words}" if name in known else f"{name} is measured too: {words}"
        for name, words in after.items()
        if name not in before
    ]
    lines += [f"{name}: {before[name]} → {words}" for name, words in after.items() if before.get(name, words) != words]
    return lines + [f"{name} is gone" for name in before if name not in after]


def aim_text(name: str, part: Maximize | Minimize | Limit) -> str:
    """What an outcome is for with its unit, which a limit says itself."""
    words, unit = describe_aim(name, part)
    return words if isinstance(part, Limit) or not unit else f"{words}, {unit}"


def describe_purpose(settings: Settings) -> str:
    """What is wanted of which outcome, what counts and by which method."""
    goal = settings.goal.title(settings.direction, settings.outcome)
    counts = "; only the design in the end counts" if settings.aim == "identify" else ""
    return f"{settings.direction} {heading(settings.outcome, settings.unit)}: {goal}{counts}; by {settings.method}"


def format_setting(value: Any) -> str:
    if hasattr(value, "to_text"):
        return str(value.to_text())
    return "none" if value is None or value == "" else str(value)


def _space_of(state: State, event: e.Event) -> Space:
    """The space in whose terms the event is written."""
    version = getattr(event, "version", 0)
    befores = [amendment.before.space for amendment in state.amendments]
    return [*befores, state.space][min(version, len(befores))]


def history_of(state: State, key: int) -> list[e.Event]:
    """Every event of run ``key``, also those that were undone and what undid them, in order."""
    own = {event.ref for event in state.history if getattr(event, "id", None) == key}
    for event in state.history:
        if isinstance(event, e.Undone) and event.of in own:
            own.add(event.ref)
    return [event for event in state.history if event.ref in own]


def measured(state: State) -> dict[int, e.Event]:
    """The event by which each run ended, of one that is being tried that by which it began: who and when. Later
    corrections and notes are not meant."""
    gone, found = undone(state.history), dict[int, e.Event]()
    for event in state.history:
        if event.ref in gone:
            continue
        if isinstance(event, e.Asked):
            found.setdefault(event.id, event)
        elif isinstance(event, e.Reported | e.Failed | e.Cancelled):
            found[event.id] = event
    return found


def context_asked_for(state: State, key: int) -> dict[str, Any]:
    """The context that was said to come when run ``key`` was asked for, by name, as far as the study still has it."""
    gone = undone(state.history)
    for event in state.history:
        if isinstance(event, e.Asked) and event.id == key and event.ref not in gone and event.context is not None:
            named = _space_of(state, event).name_contexts(event.context[None])[0]
            return {name: value for name, value in named.items() if name in state.space.context}
    return {}


def notes_of(state: State) -> list[e.Noted]:
    """What people wrote about the study, newest first, without what was taken back."""
    gone = undone(state.history)
    return [x for x in reversed(state.history) if isinstance(x, e.Noted) and x.id is None and x.ref not in gone]


def remarks_of(state: State) -> dict[int, list[str]]:
    """What people wrote about each run, and whether they corrected it; not what was taken back."""
    gone, found = undone(state.history), dict[int, list[str]]()
    for event in state.history:
        number = getattr(event, "id", None)
        if number is None or event.ref in gone:
            continue  # of the study, or taken back
        words = found.setdefault(number, [])
        if isinstance(event, e.Corrected):
            words.append(f"corrected ({event.why})" if event.why else "corrected")
        if event.note:
            words.append(event.note)
    return found
