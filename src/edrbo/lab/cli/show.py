"""``edrbo show``: a study at a glance, or the history of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from edrbo.lab.cli.options import JsonOption, NameOption, StudyOption, complete_ids
from edrbo.lab.cli.output import print_json, print_table, say
from edrbo.lab.cli.read_arguments import opened

if TYPE_CHECKING:
    from edrbo.lab import Study
    from edrbo.records.run import Run, Series
    from edrbo.records.state import State

LAST = 10  # runs shown


def show(
    run: Annotated[
        int | None,
        typer.Argument(metavar="ID", help="A run, to see its history.", autocompletion=complete_ids),
    ] = None,
    study: StudyOption = None,
    name: NameOption = None,
    every: Annotated[bool, typer.Option("--all", help=f"Every run, not the last {LAST} only.")] = False,
    implausible: Annotated[
        bool, typer.Option("--implausible", help="Runs that may have been reported wrongly, and why.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """What the study is about, what is being tried and what was found; with an ID, all that happened to that run."""
    with opened(study, name) as opened_study:
        state = opened_study.state_now
        if run is not None:
            _show_run(state, run, as_json)
        elif implausible:
            _show_doubtful(state, as_json)
        elif as_json:
            print_json(_record(opened_study, state))
        else:
            _print(opened_study, state, every)


# -------------------------------------------------------------------- one run


def _show_run(state: State, key: int, as_json: bool) -> None:
    from edrbo.errors import UnknownSuggestionError
    from edrbo.lab.entry import local_text, time_text
    from edrbo.records.descriptions import describe_event, describe_run, history_of
    from edrbo.records.reducer import undone

    events, gone = history_of(state, key), undone(state.history)
    if not events:
        raise UnknownSuggestionError(f"there is no run {key}", "`edrbo show --all` lists them")
    rows = [
        [
            local_text(event.at),
            event.by,
            describe_event(state, event) + " — taken back" * (event.ref in gone),
            event.note,
        ]
        for event in events
    ]
    if as_json:
        history = [
            {
                "kind": event.kind,
                "at": time_text(event.at),
                "by": event.by,
                "words": describe_event(state, event),
                "note": event.note,
                "undone": event.ref in gone,
            }
            for event in events
        ]
        print_json(
            {**({"id": key} if key not in state.runs else run_record(state, state.runs[key])), "history": history}
        )
        return
    say(describe_run(state, state.runs[key]) if key in state.runs else f"run {key}: its suggestion was taken back")
    print_table("history", ["when", "who", "what", "note"], rows)


def _show_doubtful(state: State, as_json: bool) -> None:
    from edrbo.records.descriptions import describe_run
    from edrbo.records.sanity import implausible

    found = implausible(state)
    if as_json:
        print_json([{"id": one.run, "reasons": list(one.reasons)} for one in found])
        return
    for one in found:
        say(describe_run(state, state.runs[one.run]))
        for reason in one.reasons:
            say(f"  {reason}", style="yellow")
    say("correct with `edrbo edit`, leave out with `edrbo drop`" if found else "no run looks doubtful", style="dim")


# -------------------------------------------------------------------- the study


def run_record(state: State, run: Run) -> dict[str, Any]:
    """A run in JSON types."""
    from edrbo.records.descriptions import outcomes_of

    space = state.space
    known = run.context is not None and space.d_c > 0
    rows = {} if run.series is None else {"rows": series_records(state, run.series)}
    return {
        "id": run.id,
        "status": run.status,
        "design": space.decode_designs(run.x)[0],
        "context": space.name_contexts(run.context[None])[0] if known and run.context is not None else None,
        "value": run.value,
        **({} if run.control is None else {"control": run.control, "measured": run.measured}),
        **({"outcomes": outcomes_of(run, state.settings)} if state.settings.outcomes else {}),
        "noise_variance": run.noise_variance,
        **({} if run.cost is None else {"cost": run.cost}),
        **({} if run.cost_expected is None or run.status != "pending" else {"cost_expected": run.cost_expected}),
        "dropped": run.dropped,
        "why": run.why,
        **rows,
    }


def series_records(state: State, series: Series) -> list[dict[str, Any]]:
    """Every row of a run in JSON types."""
    records = []
    for context, reported in zip(state.space.name_contexts(series.contexts), series.rows(), strict=True):
        value, noise_variance = reported.get("", (None, None))
        named = {name or state.settings.outcome: pair[0] for name, pair in reported.items()}
        several = {"outcomes": named} if state.settings.outcomes else {}
        records.append(
            {
                "context": context,
                "value": value,
                **several,
                "noise_variance": None if noise_variance != noise_variance else noise_variance,
            }
        )
    return records


def _record(study: Study, state: State) -> dict[str, Any]:
    from dataclasses import asdict

    from edrbo.records.change_point import process_change
    from edrbo.records.state import spending

    by_id, spent = {key: run_record(state, run) for key, run in state.runs.items()}, spending(state)
    runs = list(by_id.values())
    return {
        "name": study.name,
        "settings": state.settings.to_dict(),
        "asked": state.suggested,
        "failed": len(state.failed),
        "contexts": len(state.log),
        **({} if (change := process_change(state)) is None else {"process_change": asdict(change)}),
        **({} if spent is None else {"spent": spent.total, "cost_unknown": spent.unknown}),
        "observations": [by_id[key] for key in state.reported],
        "pending": [record for record in runs if record["status"] == "pending"],
        "runs": runs,
    }


def _print(study: Study, state: State, every: bool) -> None:
    from edrbo.lab.cli.answers import print_suggestions
    from edrbo.lab.entry import local_text
    from edrbo.lab.files import describe
    from edrbo.records.descriptions import (
        constraint_texts,
        describe_aim,
        describe_purpose,
        describe_spending,
        limit_needs,
        notes_of,
        plural,
    )
    from edrbo.records.input_reading import pending_of
    from edrbo.records.sanity import narrow_contexts
    from edrbo.records.suggested_ranges import describe_range

    settings, space = state.settings, state.space
    title = f"{settings.title} ({study.name})" if settings.title else study.name
    say(title, style="bold")
    say(describe_purpose(settings))
    say(f"kept in {describe(study.where)}", style="dim")
    print_table("settings", ["name", "range"], [[name, describe_range(space, name)] for name in space.design])
    if space.context:
        rows = [[name, variable.describe()] for name, variable in space.context.items()]
        print_table("conditions", ["name", "range"], rows)
    if settings.outcomes is not None:
        rows = [[name, *describe_aim(name, part)] for name, part in settings.outcomes.items()]
        print_table("results", ["name", "aim", "unit"], rows)
    if held := constraint_texts(space):
        print_table("what must hold", ["constraint"], [[text] for text in held])
    if settings.context_distribution is not None:
        say(f"conditions are known to follow {settings.context_distribution.to_text()}")
    if settings.earlier is not None:
        say(f"learns from {settings.earlier.to_text()}")
    counts = [
        plural(len(state.reported), "result"),
        f"{len(state.failed)} failed",
        f"{len(state.pending)} being tried",
        *(f"{n} not tried" for n in [sum(run.status == "cancelled" for run in state.runs.values())] if n),
        *(f"{n} left out" for n in [sum(run.dropped for run in state.runs.values())] if n),
        f"conditions known {plural(len(state.log), 'time')}",
    ]
    say(", ".join(counts))
    if (spent := describe_spending(state)) is not None:
        say(spent)
    for text in (*narrow_contexts(state).values(), *limit_needs(settings, len(state.log))):
        say(text, style="yellow")
    say_change(state)
    if notes := notes_of(state):
        rows = [[local_text(one.at), one.by or "", one.note or ""] for one in notes[:LAST]]
        print_table("notes", ["when", "who", "note"], rows)
    if state.pending:
        print_suggestions("being tried", space, pending_of(state))
    rest = [run for run in state.runs.values() if run.status != "pending"]
    shown = rest if every else rest[-LAST:]
    if shown:
        label = "runs" if len(shown) == len(rest) else f"the last {len(shown)} of {plural(len(rest), 'run')}"
        print_runs(label, state, shown)


def say_change(state: State) -> None:
    """Since when the process is another, if there is a sign of it."""
    from edrbo.records.change_point import process_change
    from edrbo.text import change_text

    if (change := process_change(state)) is not None:
        say(change_text(state.settings, change), style="yellow")


def print_runs(title: str, state: State, runs: list[Run]) -> None:
    """Runs under their variables' names and units."""
    from edrbo.records.descriptions import STATUSES, heading, outcome_headings, outcome_of, remarks_of
    from edrbo.records.state import spending
    from edrbo.space.variables import number_text

    space, settings, said = state.space, state.settings, remarks_of(state)
    spent = spending(state)
    costs, costly = ({}, False) if spent is None else (spent.costs, True)
    controlled = any(run.control is not None for run in runs)
    variables = {**space.design, **space.context}
    heads = [heading(name, variable.unit) for name, variable in variables.items()]
    rows = []
    for run in runs:
        design = space.decode_designs(run.x)[0]
        context = {} if run.context is None else space.name_contexts(run.context[None])[0]
        cells = [variable.text(value) for name, variable in space.design.items() for value in [design[name]]]
        cells += [variable.text(context[name]) if name in context else "" for name, variable in space.context.items()]
        reported = [outcome_of(run, name, settings) for name in outcome_headings(settings)]
        values = ["" if value is None else number_text(value) for value in reported]
        remarks = [STATUSES[run.status], "left out" * run.dropped, run.why or ""]
        remarks += said.get(run.id, [])
        paid = ["" if run.id not in costs else number_text(costs[run.id])] * costly
        values += ["" if run.control is None else number_text(run.control)] * controlled
        rows.append([run.id, *cells, *values, *paid, ", ".join(filter(None, remarks))])
    remarked = any(row[-1] for row in rows)
    ends = [*outcome_headings(settings).values(), *["control"] * controlled, *["cost"] * costly, *["remark"] * remarked]
    print_table(title, ["id", *heads, *ends], [row if remarked else row[:-1] for row in rows])
