"""Commands that record: ``edrbo tell`` reports an outcome; ``edit``, ``undo``, ``drop``, ``restore`` and ``cancel``
change one's mind; ``note`` keeps words about a run; ``context add`` and ``context tell`` take in contexts that were
seen without an outcome, and those that come later than the outcome.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edrbo.errors import (
    ContextBoundsWarning,
    ImplausibleWarning,
    InvalidDesignError,
    InvalidEventError,
    InvalidValueError,
    UnknownSuggestionError,
)
from edrbo.lab.cli.options import (
    AtOption,
    ByOption,
    ContextOption,
    DesignOption,
    JsonOption,
    NameOption,
    NoteOption,
    RunArgument,
    StudyOption,
    WhyOption,
    YesOption,
    complete_contexts,
    complete_pending,
)
from edrbo.lab.cli.output import confirm, print_json, print_run, say
from edrbo.lab.cli.read_arguments import (
    only_toml,
    opened,
    read_amount,
    read_context,
    read_control,
    read_design,
    read_moment,
    read_result,
    read_variances,
    settle,
)

if TYPE_CHECKING:
    from edrbo.lab import Study
    from edrbo.records.run import Run
    from edrbo.records.state import State


ROWS_HELP = "A table of several rows of this run, each with a result and the conditions it met."


def tell(
    run: Annotated[
        int | None,
        typer.Argument(metavar="ID", help="The number of a suggestion.", autocompletion=complete_pending),
    ] = None,
    results: Annotated[
        list[str] | None, typer.Argument(metavar="RESULT", help="What --value says, without the flag.")
    ] = None,
    study: StudyOption = None,
    name: NameOption = None,
    value: Annotated[
        list[str] | None, typer.Option("--value", "-v", help="The result; of several: NAME=NUMBER, repeated.")
    ] = None,
    context: ContextOption = None,
    design: DesignOption = None,
    control: Annotated[
        str | None,
        typer.Option(help="What a reference run gave in the same conditions: the result counts relative to it."),
    ] = None,
    noise_variance: Annotated[
        list[str] | None, typer.Option(help="The variance of the result's noise, if known.")
    ] = None,
    cost: Annotated[str | None, typer.Option(help="What the run cost, in a unit of your own.")] = None,
    rows: Annotated[Path | None, typer.Option(help=ROWS_HELP)] = None,
    failed: Annotated[bool, typer.Option("--failed", help="It was tried and gave no result.")] = False,
    why: WhyOption = None,
    note: NoteOption = None,
    by: ByOption = None,
    at: AtOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Enter a result, with the conditions it met if they are known.

    With an ID, --design says what was really set where that differs: edrbo tell 3 -v 1.7 -d speed=38
    Without one, it is a run of your own, and all its settings are needed.
    """
    from edrbo.records.sanity import entry_doubts, series_doubts

    value = [*(results or []), *(value or [])]
    if run is None and not design:
        raise InvalidDesignError(
            "what was tried is not clear", "give the number of a suggestion, or say what was set: -d NAME=…"
        )
    if not value and not failed and rows is None:
        raise InvalidValueError("the result is missing", "add --value NUMBER, or --failed if it gave none")
    if rows is not None and (value or context or noise_variance or failed or control):
        raise InvalidValueError(
            "both a table and a result are given", "results, conditions and noise stand in the table"
        )
    with opened(study, name, by, create="first") as opened_study:
        before = opened_study.state_now
        number, seen = read_result(before.settings, value), read_context(before.space, context)
        known = None if run is None else before.runs.get(run)
        if run is not None and known is None:
            raise UnknownSuggestionError(
                f"suggestion {run} was never asked", "leave the number out for a run of your own; see `edrbo show`"
            )
        reference = read_control(before.settings, control)
        reported_rows, asked = _rows(before, rows), None if design else known
        if known is None or known.status == "pending":  # else it is refused, and there is nothing to ask
            of_rows = None if reported_rows is None else series_doubts(before, asked, reported_rows)
            asks: dict[str, Any] = {"own": bool(design), "control": reference}
            of_one = [] if of_rows is not None else entry_doubts(before, run, number, seen, **asks)
            settle(of_rows or of_one, yes=yes)
        with warnings.catch_warnings():  # it has been asked about
            warnings.simplefilter("ignore", ContextBoundsWarning)
            warnings.simplefilter("ignore", ImplausibleWarning)
            opened_study.tell(
                run if run is not None else read_design(before.space, design),
                seen,
                number,
                **(reported_rows or {"noise_variance": read_variances(before.settings, noise_variance)}),
                control=reference,
                cost=read_amount(cost, "the cost"),
                failed=failed,
                design=read_design(before.space, design) if run is not None and design else None,
                why=why,
                note=note,
                at=read_moment(at),
            )
        after = opened_study.state_now
    reported = after.runs[run] if run is not None else new_run(before, after)
    if as_json:
        print_json({"id": reported.id, "observations": len(after.reported)})
        return
    from edrbo.lab.cli.show import say_change
    from edrbo.records.descriptions import describe_run, plural

    say(describe_run(after, reported))
    say(f"{plural(len(after.reported), 'result')} so far", style="dim")
    if reported.late:
        names = " ".join(f"{name}=…" for name in after.space.context_names)
        say(f"once its conditions are known: edrbo context tell {reported.id} {names}", style="dim")
    say_change(after)


def _rows(state: State, path: Path | None) -> dict[str, Any] | None:
    """As ``tell`` takes them."""
    if path is None:
        return None
    from edrbo.lab.tables.csv_import import read_outcomes

    return read_outcomes(state, path)


def new_run(before: State, after: State) -> Run:
    """The run that came last; another process may have brought others meanwhile, earlier or later."""
    return after.runs[max(key for key in after.runs if key not in before.runs)]


def edit(
    run: RunArgument,
    study: StudyOption = None,
    name: NameOption = None,
    value: Annotated[
        list[str] | None, typer.Option("--value", "-v", help="What the result really was; of several: NAME=NUMBER.")
    ] = None,
    context: ContextOption = None,
    design: DesignOption = None,
    control: Annotated[str | None, typer.Option(help="What the reference run really gave.")] = None,
    noise_variance: Annotated[list[str] | None, typer.Option(help="The variance of the result's noise.")] = None,
    cost: Annotated[str | None, typer.Option(help="What the run really cost.")] = None,
    row: Annotated[int | None, typer.Option(help="Which row of a run that has several, counted from 0.")] = None,
    why: WhyOption = None,
    note: NoteOption = None,
    by: ByOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Correct what was entered of a run. What is left out stays, and the history keeps what was entered before.

    edrbo edit 3 --value 1.9 --context humidity=55 --why "typo"
    """
    from edrbo.records.descriptions import describe_run
    from edrbo.records.sanity import entry_doubts

    with opened(study, name, by) as opened_study:
        before = opened_study.state_now
        known = before.runs.get(run)
        number, reported = read_result(before.settings, value), read_context(before.space, context)
        reference = read_control(before.settings, control)
        settle(entry_doubts(before, run, number, reported, own=bool(design), control=reference), yes=yes)
        with warnings.catch_warnings():  # it has been asked about
            warnings.simplefilter("ignore", ContextBoundsWarning)
            opened_study.correct(
                run,
                row=row,
                value=number,
                context=reported,
                control=reference,
                noise_variance=read_variances(before.settings, noise_variance),
                cost=read_amount(cost, "the cost"),
                design=read_design(before.space, design) if design else None,
                why=why,
                note=note,
            )
        after = opened_study.state_now
    if as_json:
        print_json({"id": run})
        return
    if known is not None:
        say(f"was  {describe_run(before, known)}", style="dim")
    say(f"now  {describe_run(after, after.runs[run])}")


def _follow(study: str, opened_study: Study) -> None:
    """The .toml file again says what the study does, if an amendment was taken back."""
    from edrbo.lab.config import read_toml, rewrite_toml

    path = Path(study) if study else only_toml()
    if path.suffix == ".toml":
        described = read_toml(path)
        if described.name == opened_study.name and described.settings != opened_study.settings:
            rewrite_toml(path, described, opened_study.settings)


def undo(
    study: StudyOption = None,
    name: NameOption = None,
    table: Annotated[
        bool, typer.Option("--import", help="All rows of the table that was imported last, in one go.")
    ] = False,
    note: NoteOption = None,
    by: ByOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take back what was recorded last. The history keeps both; what was somebody else's is asked about first."""
    from edrbo.records.descriptions import entry_words

    if table:
        _undo_table(study, name, note, by, yes, as_json)
        return

    with opened(study, name, by) as opened_study:
        state = opened_study.state_now
        last = state.last
        if last is None:
            raise InvalidEventError("there is nothing to undo", "nothing has happened yet")
        about, key = entry_words(state, last), getattr(last, "id", None)
        if last.by != opened_study.by:
            confirm(f"{last.by or 'somebody'} did this: {about}. Take it back?", yes=yes)
        opened_study.undo(last.ref, note=note)
        _follow(study or "", opened_study)
    if as_json:
        print_json({"undone": last.kind, "id": key})
    else:
        say(f"taken back: {about}")


def _undo_table(
    study: str | None, name: str | None, note: str | None, by: str | None, yes: bool, as_json: bool
) -> None:
    from edrbo.lab.tables.csv_import import last_import, undo_import
    from edrbo.records.descriptions import plural

    with opened(study, name, by) as opened_study:
        rows = last_import(opened_study.state_now)
        if rows:
            confirm(f"The last table brought {plural(len(rows), 'row')}. Take all of it back?", yes=yes)
        count = undo_import(opened_study, note=note)
    if as_json:
        print_json({"undone": "import", "rows": count})
    else:
        say(f"taken back: {plural(count, 'row')} of the last table")


def drop(
    run: RunArgument,
    study: StudyOption = None,
    name: NameOption = None,
    why: WhyOption = None,
    note: NoteOption = None,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Leave a run out: it stays on record, and nothing is learned from it."""
    with opened(study, name, by) as opened_study:
        opened_study.drop(run, why, note=note)
        state = opened_study.state_now
    print_run(state, run, as_json=as_json)


def restore(
    run: RunArgument,
    study: StudyOption = None,
    name: NameOption = None,
    note: NoteOption = None,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Learn again from a run that was left out."""
    with opened(study, name, by) as opened_study:
        opened_study.restore(run, note=note)
        state = opened_study.state_now
    print_run(state, run, as_json=as_json)


def cancel(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID", help="Numbers of suggestions: 3, 5-9.", autocompletion=complete_pending),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All that are being tried.")] = False,
    study: StudyOption = None,
    name: NameOption = None,
    why: WhyOption = None,
    note: NoteOption = None,
    by: ByOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Say that suggestions were not tried: one, several as 3 5-9, or --all. They say nothing about their settings.

    One that was tried and gave nothing: edrbo tell ID --failed
    """
    from edrbo.records import events as e
    from edrbo.records.descriptions import plural

    if bool(runs) == every:
        raise InvalidEventError("which suggestions is not clear", "write edrbo cancel 3, edrbo cancel 3-9 or --all")
    with opened(study, name, by) as opened_study:
        numbers = _numbers(runs or [], opened_study.state_now) if runs else list(opened_study.state_now.pending)
        if not numbers:
            raise InvalidEventError("nothing is being tried", "so there is nothing to cancel")
        if len(numbers) > 1:
            confirm(f"{plural(len(numbers), 'suggestion')} were not tried?", yes=yes)
        opened_study.record_all(lambda _: [e.Cancelled(id=number, why=why, note=note) for number in numbers])
        state = opened_study.state_now
    if len(numbers) == 1:
        print_run(state, numbers[0], as_json=as_json)
    elif as_json:
        print_json({"cancelled": numbers})
    else:
        say(f"not tried: {plural(len(numbers), 'suggestion')}, {runs_text(numbers)}")


def _numbers(words: list[str], state: State) -> list[int]:
    """3 5-9 as numbers, each once; of a range those that are being tried."""
    found: dict[int, None] = {}
    for word in words:
        ends = re.fullmatch(r"(\d{1,9})(?:\s*(?:-|\.\.|:)\s*(\d{1,9}))?", word)
        if ends is None:
            raise InvalidEventError(f"{word!r} is no number of a suggestion", "write edrbo cancel 3, or 3-9")
        first, last = int(ends[1]), int(ends[2] or ends[1])
        some = [first] if ends[2] is None else [key for key in state.pending if first <= key <= last]
        if not some:
            raise InvalidEventError(f"none of {word} is being tried", _being_tried(state))
        found |= dict.fromkeys(some)
    return list(found)


def _being_tried(state: State) -> str:
    return f"those are {runs_text(list(state.pending))}" if state.pending else "nothing is"


def runs_text(numbers: Sequence[int]) -> str:
    """2, 5 to 9"""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{p[0]} to {p[-1]}" if len(p) > 2 else ", ".join(map(str, p)) for p in parts) or "none"


def note(
    words: Annotated[list[str], typer.Argument(help="What there is to say, behind the number of a run if of one.")],
    study: StudyOption = None,
    name: NameOption = None,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep words about a run, or about the study.

    edrbo note 3 a bubble in the coating
    edrbo note from today with the new nozzle
    """
    run, said = (int(words[0]), words[1:]) if len(words) > 1 and words[0].isdecimal() else (None, words)
    text = " ".join(said)
    with opened(study, name, by) as opened_study:
        opened_study.note(run, text)
    if as_json:
        print_json({"id": run, "note": text})
    else:
        say(f"{'the study' if run is None else f'run {run}'}: {text}")


def add_contexts(
    file: Annotated[Path, typer.Argument(help="A table with a column per condition; `weight` is optional.")],
    study: StudyOption = None,
    name: NameOption = None,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take in conditions that were seen without a result, such as weather records."""
    from edrbo.lab.tables.csv_import import read_contexts
    from edrbo.records.descriptions import plural

    with opened(study, name, by, create="first") as opened_study:
        rows, weights = read_contexts(opened_study.space_now, file)
        opened_study.observe_context(rows, weights)
        known = len(opened_study.state_now.log)
    if as_json:
        print_json({"added": len(rows), "contexts": known})
    else:
        say(f"{plural(len(rows), 'condition')} added; {known} known")


def tell_context(
    run: RunArgument,
    values: Annotated[
        list[str], typer.Argument(help="Its conditions, as NAME=VALUE …", autocompletion=complete_contexts)
    ],
    study: StudyOption = None,
    name: NameOption = None,
    note: NoteOption = None,
    by: ByOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Enter the conditions of a run later than its result."""
    from edrbo.records.descriptions import describe_run
    from edrbo.records.sanity import context_doubts

    with opened(study, name, by) as opened_study:
        seen = read_context(opened_study.space_now, values) or {}
        settle(context_doubts(opened_study.state_now, seen), yes=yes)
        with warnings.catch_warnings():  # it has been asked about
            warnings.simplefilter("ignore", ContextBoundsWarning)
            warnings.simplefilter("ignore", ImplausibleWarning)
            opened_study.tell_context(run, seen, note=note)
        state = opened_study.state_now
    if as_json:
        print_json({"id": run})
    else:
        say(describe_run(state, state.runs[run]))


context_app = typer.Typer(help="Conditions: seen without a result, or known later than it.", no_args_is_help=True)
context_app.command("add")(add_contexts)
context_app.command("tell")(tell_context)
