"""``edrbo backup``: a copy of a study file while others go on using it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edrbo.lab.cli.location import find_place
from edrbo.lab.cli.options import JsonOption, StudyOption
from edrbo.lab.cli.output import print_json, say
from edrbo.lab.cli.progress import progress


def register(app: typer.Typer) -> None:
    app.command("backup")(backup)


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
