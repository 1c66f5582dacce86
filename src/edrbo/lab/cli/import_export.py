"""``edrbo import`` and ``edrbo export``: runs and contexts from a table, everything as a table."""

from __future__ import annotations

import io
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edrbo.errors import ContextBoundsWarning, StudyError
from edrbo.lab.cli.options import ByOption, JsonOption, NameOption, StudyOption, YesOption
from edrbo.lab.cli.output import check_new, print_json, say, wants_json, warn
from edrbo.lab.cli.progress import progress
from edrbo.lab.cli.read_arguments import opened, settle

if TYPE_CHECKING:
    from edrbo.lab.tables.csv_import import Import
    from edrbo.records.state import State


KINDS = (".csv", ".txt", ".xlsx")
ROWS_NAMED = 20  # rows that are named


def import_table(
    file: Annotated[Path, typer.Argument(help="A .csv, .tsv or .xlsx file: a column per setting, condition, result.")],
    study: StudyOption = None,
    name: NameOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be taken in.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Take in rows that are known already once more.")] = False,
    by: ByOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take in runs and conditions from a table. All rows are checked first; one that cannot be means none is taken.

    Rows that are known already are passed over, a row with the number of a pending suggestion completes it, and columns
    that are nobody's become notes.
    """
    from edrbo.lab.tables.csv_import import plan_table, store_plan
    from edrbo.lab.tables.sheet import read_sheet

    with opened(study, name, by, create="first") as opened_study:
        state = opened_study.state_now
        with progress("reading the table", "import"):
            sheet = read_sheet(file)
            plan = plan_table(state, sheet, again=again)
        if plan.wrong:
            _print_wrong(plan)
            raise plan.wrong[0].problem
        if dry_run:
            _say_doubts(plan)
        else:
            settle([_doubt(line, text) for line, text in plan.doubts], yes=yes)
            with warnings.catch_warnings():  # it has been asked about
                warnings.simplefilter("ignore", ContextBoundsWarning)
                plan = store_plan(opened_study, plan, lambda state: plan_table(state, sheet, again=again))
        state = state if dry_run else opened_study.state_now
    if as_json:
        print_json(_record(plan, dry_run))
        return
    if dry_run:
        _preview(state, plan)
    say(f"{'would take in' if dry_run else 'took in'} {plan.describe()}")
    if plan.noted:
        say(f"kept as notes: {', '.join(plan.noted)}")


def _print_wrong(plan: Import) -> None:
    """All rows that cannot be read but the first, which is the error."""
    rest = plan.wrong[1:]
    if wants_json() or not rest:
        return
    for one in rest[:ROWS_NAMED]:
        say(f"{one.problem.message}" + (f" ({one.problem.hint})" if one.problem.hint else ""), style="yellow", err=True)
    if len(rest) > ROWS_NAMED:
        say(f"{len(rest) - ROWS_NAMED} more rows cannot be read", style="yellow", err=True)


def _doubt(line: int, text: str) -> str:
    return f"row {line}: {text}"


def _say_doubts(plan: Import) -> None:
    for line, text in plan.doubts:
        warn(_doubt(line, text))


def _record(plan: Import, dry_run: bool) -> dict[str, Any]:
    record: dict[str, Any] = {
        **plan.counts,
        "known": plan.known,
        "notes": list(plan.noted),
        "doubts": [_doubt(*one) for one in plan.doubts],
    }
    return {**record, "dry run": True} if dry_run else record


def _preview(state: State, plan: Import) -> None:
    """The first runs as they were understood."""
    from edrbo.lab.cli.show import print_runs

    after = state.apply(*plan.named_events())
    runs = [run for key, run in after.runs.items() if run is not state.runs.get(key)]
    if runs:
        shown = runs[:10]
        print_runs("as it was understood" + f", the first {len(shown)}" * (len(runs) > len(shown)), after, shown)


def export(
    file: Annotated[str, typer.Argument(help="A .csv or .xlsx file to write; - for CSV on standard output.")] = "-",
    study: StudyOption = None,
    name: NameOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Everything, in columns for programs: importing it gives it back exactly.")
    ] = False,
    to: Annotated[
        str | None,
        typer.Option(help="`optuna`: FILE is a database URL or a journal file, for optuna-dashboard to show."),
    ] = None,
) -> None:
    """Write the runs as a table to read and to calculate with; with --exact everything, to be imported again."""
    from edrbo.lab.files import new_file
    from edrbo.lab.tables.csv_export import export_csv, export_plain
    from edrbo.lab.tables.spreadsheet import export_xlsx
    from edrbo.records.descriptions import plural

    if file != "-" and to is None:
        check_new(Path(file), force)
        if Path(file).suffix.lower() not in KINDS:
            raise StudyError(f"cannot write a table to {file}", f"name a file that ends in {' or '.join(KINDS)}")
    write = export_csv if exact else export_plain
    with opened(study, name) as opened_study:
        state = opened_study.state_now
        if to is not None:
            _to_optuna(state, opened_study.name, file, to)
            return
        if file == "-":
            write(state, sys.stdout)
            return
        with new_file(Path(file), force=force) as out:
            if file.lower().endswith(".xlsx"):
                table = io.BytesIO()  # a disk that is full must not meet openpyxl in the middle
                rows = export_xlsx(state, table, exact=exact)
                out.write(table.getvalue())
            else:
                text = io.TextIOWrapper(out, encoding="utf-8", newline="")
                rows = write(state, text)
                text.flush()
                text.detach()
    say(f"{plural(rows, 'row')} in {file}")


def _to_optuna(state: State, name: str, target: str, to: str) -> None:
    from edrbo.integrations.optuna.export import export_study
    from edrbo.lab.files import describe
    from edrbo.records.descriptions import plural

    if to != "optuna":
        raise StudyError(f"nothing is known of {to!r}", "write --to optuna, or leave it out for a table")
    if target == "-":
        raise StudyError("an Optuna study needs a place", "edrbo export --to optuna sqlite:///coating-optuna.db")
    say(f"{plural(export_study(state, name, target), 'trial')} in {describe(target)}")
