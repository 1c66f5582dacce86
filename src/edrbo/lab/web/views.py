"""What the pages and the API show of a study: plain values, made from its state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from edrbo.errors import InvalidContextError, UnknownSuggestionError
from edrbo.lab.entry import read_context
from edrbo.lab.web.session import StudySession
from edrbo.lab.web.variables import constraints_of, describe_variable
from edrbo.records import events as e
from edrbo.records.descriptions import VERBS, describe_event, outcomes_of
from edrbo.records.reducer import undone
from edrbo.records.run import Run
from edrbo.records.spending import spending
from edrbo.records.state import State
from edrbo.space import Space

STATUSES = ("reported", "pending", "failed", "cancelled", "dropped", "late")


def status_of(run: Run) -> str:
    return "dropped" if run.dropped else run.status


def variables_of(space: Space) -> dict[str, list[Any]]:
    """What forms and tables show of a space."""
    return {
        "design": [describe_variable(name, variable) for name, variable in space.design.items()],
        "context": [describe_variable(name, variable) for name, variable in space.context.items()],
        "constraints": constraints_of(space),
    }


def run_row(state: State, run: Run, stamps: Mapping[int, e.Event]) -> dict[str, Any]:
    """A run as a table shows it; values are exact, for programs too."""
    space, last = state.space, stamps.get(run.id)
    context = None if run.context is None else space.name_contexts(run.context[None])[0]
    return {
        "id": run.id,
        "status": status_of(run),
        "design": space.decode_designs(run.x)[0],
        "context": context if space.d_c else None,
        "late": run.late,
        "rows": 0 if run.series is None else len(run.series),
        "value": run.value,
        "outcomes": outcomes_of(run, state.settings) if state.settings.outcomes else {},
        "noise_variance": run.noise_variance,
        "cost": run.cost,
        "cost_expected": run.cost_expected,
        "suggested": run.suggested,
        "why": run.why,
        "by": None if last is None else last.by,
        "at": None if last is None else last.at,
        "note": None if last is None else last.note,
    }


def stamps_of(state: State) -> dict[int, e.Event]:
    """Who said last what became of each run, and when; of notes the last stays."""
    gone, found = undone(state.history), dict[int, e.Event]()
    for event in state.history:
        number = getattr(event, "id", None)
        if number is None or event.ref in gone:
            continue
        found[number] = event
    return found


def runs_of(state: State, status: str = "") -> list[dict[str, Any]]:
    """All runs, newest first; ``status`` picks some."""
    stamps = stamps_of(state)
    rows = [run_row(state, run, stamps) for run in reversed(list(state.runs.values()))]
    if status == "late":
        return [row for row in rows if row["late"]]
    return [row for row in rows if not status or row["status"] == status]


def the_run(state: State, number: int) -> Run:
    if number not in state.runs:
        raise UnknownSuggestionError(f"there is no run {number}", "look at the list of runs")
    return state.runs[number]


def history_of(state: State, number: int | None) -> list[dict[str, Any]]:
    """What was said of a run, in order, also what was taken back; None: of the settings."""
    gone = undone(state.history)
    chosen: list[e.Event]
    if number is None:
        chosen = [event for event in state.history if isinstance(event, e.Amended)]
    else:
        chosen = [event for event in state.history if getattr(event, "id", None) == number]
    refs = {event.ref for event in chosen}
    chosen = [x for x in state.history if x.ref in refs or (isinstance(x, e.Undone) and x.of in refs)]
    return [
        {
            "ref": event.ref,
            "kind": event.kind,
            "verb": VERBS[event.kind],
            "words": describe_event(state, event),
            "by": event.by,
            "at": event.at,
            "note": event.note,
            "why": getattr(event, "why", None),
            "undone": event.ref in gone,
        }
        for event in chosen
    ]


def overview(session: StudySession) -> dict[str, Any]:
    state = session.state
    return {
        "study": session.word,
        "name": session.study.name,
        "version": session.version(state),
        "settings": state.settings.to_dict(),
        "variables": variables_of(state.space),
        "pending": runs_of(state, "pending"),
        "reported": len(state.reported),
        "failed": len(state.failed),
        "contexts": len(state.log),
        "late": sum(run.late for run in state.runs.values()),
        "spent": None if (spent := spending(state)) is None else spent.total,
    }


def last_context(state: State) -> dict[str, Any]:
    """The context that was met last, by name."""
    for entry in reversed(state.seen):
        rows = state.runs[entry].contexts if isinstance(entry, int) else entry.rows
        if len(rows):
            return state.space.name_contexts(rows[-1:])[0]
    return {}


def context_ranges(state: State) -> dict[str, tuple[float, float]]:
    """Per context variable that is a number the range of a slider: its bounds, or what was seen."""
    known = [run.contexts for run in state.runs.values() if len(run.contexts) and not run.dropped]
    scale = state.space.context_scale(np.concatenate([np.empty((0, state.space.d_c)), *known]))
    lower = np.where(scale.whole, np.ceil(scale.lower), scale.lower)  # levels stand half a unit inside the ends
    upper = np.where(scale.whole, np.floor(scale.upper), scale.upper)
    found = {}
    for (name, variable), low, high in zip(state.space.context.items(), lower.tolist(), upper.tolist(), strict=True):
        if variable.numeric:
            found[name] = (low, high if high > low else low + 1.0)
    return found


def context_of_query(space: Space, query: Mapping[str, str]) -> dict[str, Any] | None:
    """The context of ``?context.NAME=VALUE``; None without any."""
    given = {name: query[f"context.{name}"] for name in space.context_names if query.get(f"context.{name}")}
    if not given:
        return None
    missing = [name for name in space.context_names if name not in given]
    if missing:
        raise InvalidContextError(f"{missing[0]!r} is missing", "name every context variable, or none")
    return read_context(space, given)
