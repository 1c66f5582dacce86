"""``edrbo copy``: studies from one place to another."""

from __future__ import annotations

from typing import Annotated

import typer

from edrbo.lab.cli.options import JsonOption, NameOption
from edrbo.lab.cli.output import print_json, say
from edrbo.lab.cli.progress import progress


def register(app: typer.Typer) -> None:
    app.command("copy")(copy)


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
    from edrbo.lab.cli.location import find_place
    from edrbo.lab.store.place import describe
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
