"""What the pages and the API show of a study: plain values, made from its state."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from edrbo.errors import InvalidContextError, InvalidDesignError, UnknownSuggestionError
from edrbo.lab.entry import read_context, read_design
from edrbo.lab.web.session import StudySession
from edrbo.lab.web.variables import constraints_of, describe_variable
from edrbo.records import events as e
from edrbo.records.change_point import process_change
from edrbo.records.descriptions import (
    STATUSES as RUN_STATUSES,
)
from edrbo.records.descriptions import (
    VERBS,
    broken_limits,
    describe_context,
    describe_design,
    describe_event,
    describe_outcomes,
    measured,
    outcome_headings,
    outcome_of,
    outcomes_of,
    plural,
    remarks_of,
)
from edrbo.records.reducer import undone
from edrbo.records.run import Run
from edrbo.records.sanity import implausible
from edrbo.records.state import State, spending
from edrbo.records.suggested_ranges import SuggestedRanges, describe_range
from edrbo.space import Space
from edrbo.space.variables import number_text
from edrbo.text import Fact, change_text, range_text

LATEST = 3  # results on the first screen
WINDOW = 200  # runs on one page of the list
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


def suggested_of(space: Space) -> dict[str, list[Any]]:
    """The same with the ranges and levels that are suggested, and what else must hold."""
    suggested = SuggestedRanges.of(space)
    narrowed = {name for name, variable in suggested.design.items() if variable != space.design[name]}
    settings = [
        {**describe_variable(name, variable), "about": describe_range(space, name) if name in narrowed else ""}
        for name, variable in suggested.design.items()
    ]
    return {**variables_of(space), "design": settings, "constraints": suggested.constraints}


def run_rows(state: State, runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Runs as a table shows them; values are exact, for programs too. Decoded together, since one takes as long."""
    if not runs:
        return []
    space, settings, stamps, notes = state.space, state.settings, measured(state), remarks_of(state)
    designs = space.decode_designs(np.array([run.x for run in runs]))
    met = [run for run in runs if run.context is not None] if space.d_c else []
    contexts = space.name_contexts(np.array([run.context for run in met])) if met else []
    context_of = dict(zip((run.id for run in met), contexts, strict=True))
    return [
        {
            "id": run.id,
            "status": status_of(run),
            "design": design,
            "context": context_of.get(run.id),
            "late": run.late,
            "rows": 0 if run.series is None else len(run.series),
            "value": run.value,
            "control": run.control,
            "measured": run.measured,
            "outcomes": outcomes_of(run, settings) if settings.outcomes else {},
            "breaks": broken_limits(run, settings),
            "noise_variance": run.noise_variance,
            "cost": run.cost,
            "cost_expected": run.cost_expected,
            "suggested": run.suggested,
            "why": run.why,
            "by": stamps[run.id].by if run.id in stamps else None,
            "at": stamps[run.id].at if run.id in stamps else None,
            "note": "; ".join(notes.get(run.id, ())) or None,
        }
        for run, design in zip(runs, designs, strict=True)
    ]


def row_of(state: State, run: Run) -> dict[str, Any]:
    """One run by itself."""
    return run_rows(state, [run])[0]


def runs_of(state: State, status: str = "") -> list[dict[str, Any]]:
    """All runs, newest first; ``status`` picks some."""
    return run_rows(state, chosen_runs(state, status))


def chosen_runs(state: State, status: str = "") -> list[Run]:
    """The same, as the state has them."""
    runs = reversed(list(state.runs.values()))
    return [run for run in runs if not status or (run.late if status == "late" else status_of(run) == status)]


def latest_of(state: State) -> list[dict[str, Any]]:
    """The last results, each in a sentence with what was set."""
    stamps = measured(state)
    runs = sorted(chosen_runs(state, "reported"), key=lambda run: stamps[run.id].at or 0.0, reverse=True)[:LATEST]
    return [
        {**row, "words": describe_outcomes(state.settings, run.value, run.others)}
        for run, row in zip(runs, run_rows(state, runs), strict=True)
    ]


# -------------------------------------------------------------------- the list of runs


def columns_of(state: State) -> list[dict[str, Any]]:
    """What the list of runs can be sorted by: ``key`` for addresses, name and unit for people."""

    def column(key: str, name: str, unit: str, kind: str, variable: Any = None) -> dict[str, Any]:
        shown_as = None if variable is None else describe_variable(name, variable)
        return {"key": key, "name": name, "unit": unit, "kind": kind, "variable": shown_as}

    space = state.space
    return [
        column("run", "Run", "", "run"),
        *(column(f"y.{n}", n, unit_of_outcome(state, n), "outcome") for n in outcome_headings(state.settings)),
        *(column(f"x.{n}", n, v.unit, "design", v) for n, v in space.design.items()),
        *(column(f"c.{n}", n, v.unit, "context", v) for n, v in space.context.items()),
        column("at", "When, who", "", "when"),
    ]


def aligned(columns: list[dict[str, Any]], rows: Sequence[Mapping[str, Any]], outcome: str) -> list[dict[str, Any]]:
    """Columns with the digits after the point that all their numbers are shown with: those of the longest."""
    found = []
    for column in columns:
        own = (column["variable"] or {}).get("digits")
        values = [cell(row, column["key"], outcome) for row in rows]
        texts = [number_text(value) for value in values if isinstance(value, float) and math.isfinite(value)]
        short = texts and not any("e" in text for text in texts)
        digits = max(len(text.partition(".")[2]) for text in texts) if short and own is None else own
        found.append({**column, "digits": digits})
    return found


def unit_of_outcome(state: State, name: str) -> str:
    outcomes = state.settings.outcomes
    own = state.settings.unit if name == state.settings.outcome else ""
    return own or ("" if outcomes is None else outcomes[name].unit)


def cell(row: Mapping[str, Any], key: str, outcome: str) -> Any:
    """What a row holds in a column; None where it is not known."""
    letter, _, name = key.partition(".")
    if letter == "y":
        return row["value"] if name == outcome else row["outcomes"].get(name)
    if letter == "x":
        return row["design"].get(name)
    if letter == "c":
        return (row["context"] or {}).get(name)
    return row["id"] if key == "run" else row["at"]


def sorted_rows(state: State, rows: list[dict[str, Any]], key: str, down: bool) -> list[dict[str, Any]]:
    """By a column, what is not known last; numbers by size and choices by name."""
    if key not in {column["key"] for column in columns_of(state)}:
        return rows
    values = [(cell(row, key, state.settings.outcome), row) for row in rows]
    known = [pair for pair in values if pair[0] is not None and pair[0] == pair[0]]
    words = any(isinstance(value, str) for value, _ in known)
    known.sort(key=lambda pair: str(pair[0]).lower() if words else float(pair[0]), reverse=down)
    unknown = [row for value, row in values if value is None or value != value]
    return [*(row for _, row in known), *unknown]


def searched(state: State, rows: list[dict[str, Any]], words: str) -> list[dict[str, Any]]:
    """Rows of which every word that was typed stands in some cell, a name, a note or a status; a number as a whole, and
    "run 3" is that run alone."""
    if number := re.fullmatch(r"\s*run\s*(\d+)\s*", words, re.IGNORECASE):
        return [row for row in rows if row["id"] == int(number[1])]
    wanted = [
        re.compile(rf"(?<![\d.]){re.escape(word)}(?![\d.])" if word[0].isdigit() else re.escape(word))
        for word in words.lower().split()
    ]
    texts = [(row, _text_of(state, row)) for row in rows]
    return [row for row, text in texts if all(word.search(text) for word in wanted)]


def _text_of(state: State, row: Mapping[str, Any]) -> str:
    run = state.runs[row["id"]]
    parts = [f"run {row['id']}", describe_design(state.space, row["design"])]
    parts.append(describe_outcomes(state.settings, run.value, run.others))
    parts.append("" if not row["context"] else describe_context(state.space, row["context"]))
    parts += [status_words(row["status"]), when(row["at"]), row["by"] or "", row["why"] or "", row["note"] or ""]
    return " ".join(parts).lower()


def status_words(status: str) -> str:
    return "left out" if status == "dropped" else RUN_STATUSES[status]


def marks_of(state: State, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Which runs stand out: the best of each main outcome, and those of ``rows`` that look mistyped."""
    return {
        "best": {run.id for run in best_runs(state).values()},
        "doubtful": {one.run: "; ".join(one.reasons) for one in implausible(state, [row["id"] for row in rows])},
    }


def best_runs(state: State) -> dict[str, Run]:
    """The best run of each main outcome, among those that keep every limit."""
    settings, found = state.settings, dict[str, Run]()
    mains = [settings.outcome] if settings.outcomes is None else settings.outcomes.mains
    for name in mains:
        direction = settings.direction if settings.outcomes is None else settings.outcomes[name].direction
        sign = 1.0 if direction == "maximize" else -1.0
        kept = [
            (sign * value, -run.id, run)
            for run in state.runs.values()
            if run.status == "reported" and not run.dropped and not broken_limits(run, settings)
            if (value := outcome_of(run, name, settings)) is not None
        ]
        if kept:
            found[name] = max(kept, key=lambda part: part[:2])[2]
    return found


def glance(state: State) -> list[Fact]:
    """How far a study is, in a few facts: a label, a value, and what it means."""
    reported, late = len(state.reported), sum(run.late for run in state.runs.values())
    facts = [Fact("results", str(reported), plural(len(state.failed), "run") + " failed" if state.failed else "")]
    best = best_runs(state)
    for name, run in best.items():
        several = "" if len(best) == 1 else f": {name}"
        value = outcome_of(run, name, state.settings)
        assert value is not None
        unit = unit_of_outcome(state, name)
        facts.append(Fact(f"best so far{several}", f"{number_text(value)} {unit}".strip(), f"run {run.id}"))
    stamps = measured(state)
    ended = [event for key, event in stamps.items() if key in state.reported and event.at is not None]
    if ended:
        last = max(ended, key=lambda event: event.at or 0.0)
        facts.append(Fact("last result", when(last.at), last.by or ""))
    facts.append(Fact("being tried", str(len(state.pending)), ""))
    if late:
        facts.append(Fact("conditions missing", str(late), "results wait for them"))
    return facts


def change_of(state: State) -> list[Fact]:
    """Since when the process is another, if there is a sign of it."""
    change = process_change(state)
    text = "" if change is None else change_text(state.settings, change)
    return [] if change is None else [Fact("the process", f"another since run {change.run}?", text)]


def expected_of(state: State, run: Run) -> str:
    """What the result of a run that is being tried is expected to be; empty where no model chose it."""
    found = run.outcome_forecast
    if not found or not {"low", "high"} <= found.keys():
        return ""
    return range_text((float(found["low"]), float(found["high"])), state.settings.unit)


def compared(state: State, keys: Sequence[int]) -> list[dict[str, Any]]:
    """Runs side by side: a line for each thing, with what each run has and whether they differ."""
    rows = [row_of(state, the_run(state, key)) for key in keys]
    lines = []
    for column in columns_of(state)[1:-1]:
        variable = {**state.space.design, **state.space.context}.get(column["name"])
        values = [cell(row, column["key"], state.settings.outcome) for row in rows]
        texts = ["" if v is None else number_text(v) if variable is None else variable.text(v) for v in values]
        numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
        apart = ""
        if len(numbers) == len(values) == 2 and numbers[0] != numbers[1]:
            change = numbers[1] - numbers[0]
            apart = f"{'+' if change > 0 else '−'}{number_text(abs(change))}"
        lines.append({**column, "texts": texts, "differ": len(set(texts)) > 1, "apart": apart})
    for name, key in (("status", "status"), ("when", "at"), ("who", "by"), ("why", "why"), ("note", "note")):
        values = [row[key] for row in rows]
        texts = [status_words(v) if key == "status" else when(v) if key == "at" else v or "" for v in values]
        if any(texts):
            lines.append({"name": name, "unit": "", "texts": texts, "differ": False, "apart": ""})
    return lines


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


def fixed_of_query(space: Space, query: Mapping[str, str]) -> dict[str, Any] | None:
    """The settings that ``?fixed.NAME=VALUE`` holds; None without any."""
    given = {name.removeprefix("fixed."): part for name, part in query.items() if name.startswith("fixed.")}
    return read_design(space, given) if given else None


def design_of_query(space: Space, query: Mapping[str, str]) -> dict[str, Any]:
    """The design of ``?design.NAME=VALUE``; all of its variables."""
    given = {name: query[f"design.{name}"] for name in space.design_names if query.get(f"design.{name}")}
    missing = [name for name in space.design_names if name not in given]
    if missing:
        raise InvalidDesignError(f"{missing[0]!r} is missing", "name every design variable, as in ?design.speed=3")
    return read_design(space, given)


# -------------------------------------------------------------------- numbers and times as people read them


def shown(value: Any, figures: int = 6) -> str:
    """A value for people, as everywhere; with more ``figures`` in forms, which send back what they show."""
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    if not math.isfinite(value):
        return "not known"
    return number_text(value) if figures == 6 else f"{value:.{figures}g}"


def shown_of(value: Any, variable: Mapping[str, Any]) -> str:
    """A value of a variable, with its digits if they were said."""
    digits = variable.get("digits")
    if digits is not None and isinstance(value, float) and math.isfinite(value):
        return number_text(value, digits)
    return shown(value)


def when(at: float | None) -> str:
    """A time as it is on the clock here."""
    if at is None:
        return ""
    then = datetime.fromtimestamp(at)
    return then.strftime("%d %b %H:%M" if then.year == datetime.now().year else "%d %b %Y %H:%M").lstrip("0")
