"""``edrbo import``: runs and contexts from a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edrbo.cli.options import ByOption, JsonOption, NameOption, StudyOption
from edrbo.cli.output import print_json, say
from edrbo.cli.place import opened
from edrbo.cli.progress import progress

if TYPE_CHECKING:
    from edrbo.records.state import State
    from edrbo.study.csv_import import Import


def register(app: typer.Typer) -> None:
    app.command("import")(import_table)


def import_table(
    file: Annotated[Path, typer.Argument(help="A .csv, .tsv or .xlsx file: a column per variable, and `value`.")],
    study: StudyOption = None,
    name: NameOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be taken in.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Take in rows that are known already once more.")] = False,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take in runs and contexts from a table. All rows are checked first; one that cannot be means none is taken.

    Rows that are known already are passed over, a row with the number of a pending suggestion completes it, and columns
    that are nobody's become notes.
    """
    from edrbo.study.csv_import import import_file, read_table

    with progress("taking in the table", "import"), opened(study, name, by, create="first") as opened_study:
        if dry_run:
            plan = read_table(opened_study.state_now, file, again=again)
        else:
            plan = import_file(opened_study, file, again=again)
        state = opened_study.state_now
    if as_json:
        print_json(_record(plan, dry_run))
        return
    if dry_run:
        _preview(state, plan)
    say(f"{'would take in' if dry_run else 'took in'} {_words(plan)}")
    if plan.noted:
        say(f"kept as notes: {', '.join(plan.noted)}")


def _record(plan: Import, dry_run: bool) -> dict[str, Any]:
    record: dict[str, Any] = {**plan.counts, "known": plan.known, "notes": list(plan.noted)}
    return {**record, "dry run": True} if dry_run else record


def _words(plan: Import) -> str:
    from edrbo.records.words import plural

    parts = [f"{count} {status}" for status, count in plan.counts.items()]
    words = ", ".join(parts) or "nothing"
    if plan.known:
        return f"{words}; {plural(plan.known, 'row')} known already and passed over"
    return words if parts else "nothing: the table is empty"


def _preview(state: State, plan: Import) -> None:
    """The first runs as they were understood."""
    from edrbo.cli.show import print_runs

    after = state.apply(*plan.named_events())
    runs = [run for key, run in after.runs.items() if run is not state.runs.get(key)]
    if runs:
        shown = runs[:10]
        print_runs("as it was understood" + f", the first {len(shown)}" * (len(runs) > len(shown)), after, shown)
