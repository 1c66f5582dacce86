"""``edrbo studies``, ``check``, ``backup``, ``copy``: what a file or database of studies holds, whether all of it can
be read, and copies of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edrbo.lab.cli.options import JsonOption, NameOption, StudyOption
from edrbo.lab.cli.output import plain_warnings, print_json, print_table, say
from edrbo.lab.cli.progress import progress
from edrbo.lab.cli.read_arguments import find_place


def studies(study: StudyOption = None, as_json: JsonOption = False) -> None:
    """List the studies that are kept in one place."""
    from edrbo.lab.entry import local_text
    from edrbo.lab.files import describe
    from edrbo.lab.study import all_studies

    place = find_place(study)
    rows = []
    with plain_warnings():
        for found in all_studies(place):
            state = found.state_now
            latest = max((event.at for event in state.history if event.at is not None), default=None)
            rows.append((found.name, state.settings.title, len(state.reported), len(state.pending), local_text(latest)))
    if as_json:
        keys = ("name", "title", "outcomes", "pending", "last")
        print_json([dict(zip(keys, row, strict=True)) for row in rows])
    else:
        print_table(f"studies in {describe(place)}", ["name", "title", "outcomes", "pending", "last event"], rows)


def check(study: StudyOption = None, as_json: JsonOption = False) -> None:
    """Read every page and every event of a study's file or database; ends with code 1 if something is wrong."""
    from edrbo.lab.files import recovery
    from edrbo.lab.maintenance import problems_of
    from edrbo.records.descriptions import plural

    where = find_place(study)
    found = problems_of(where)
    if as_json:
        print_json({"problems": found})
    else:
        for words in found:
            say(words, style="yellow")
        say(f"{plural(len(found), 'problem')}; {recovery(where)}" if found else "all is well: every event can be read")
    if found:
        raise typer.Exit(1)


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    study: StudyOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there already.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Copy a study's file as it is now. Others may go on using the study meanwhile; a plain copy would not be safe."""
    from edrbo.lab.maintenance import back_up

    place = find_place(study)
    with progress("backing up", "backup"):
        size = back_up(place, file, force=force)
    if as_json:
        print_json({"file": str(file), "bytes": size})
    else:
        say(f"backed up to {file} ({max(1, round(size / 1000))} kB)")


def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="A .toml or .db file, or a PostgreSQL URL.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="A .db file, or a PostgreSQL URL.")],
    name: NameOption = None,
    salvage: Annotated[
        bool, typer.Option("--salvage", help="Leave out events that are damaged, and say which.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Copy studies with their whole history, between files and databases."""
    from edrbo.lab import maintenance
    from edrbo.lab.cli.read_arguments import find_place
    from edrbo.lab.files import describe
    from edrbo.records.descriptions import plural

    place = find_place(source)
    with progress("copying", "copy"):
        found = maintenance.copy(place, target, name=name, salvage=salvage)
    if as_json:
        print_json([{"name": one.name, "events": one.events, "left out": list(one.lost)} for one in found])
        return
    for one in found:
        for words in one.lost:
            say(f"{one.name}, left out: {words}", style="yellow")
        say(f"copied {one.name!r} with {plural(one.events, 'event')} to {describe(target)}")
