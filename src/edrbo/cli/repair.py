"""``edrbo repair``: a copy of a damaged study file without what is wrong."""

from __future__ import annotations

from pathlib import Path

import typer

from edrbo.cli.options import JsonOption, StudyOption
from edrbo.cli.output import print_json, say
from edrbo.cli.place import find_place
from edrbo.errors import StudyError


def register(app: typer.Typer) -> None:
    app.command("repair")(repair)


def repair(study: StudyOption = None, as_json: JsonOption = False) -> None:
    """Write a copy of a damaged study file beside it; the file itself stays as it is."""
    from edrbo.study import repair as file_repair
    from edrbo.study.storage import is_url

    where = find_place(study)
    if is_url(where):
        raise StudyError("only study files are repaired", "a database sets damaged records aside; use its own backups")
    done, copy = file_repair.repair(Path(where))
    if as_json:
        record = [{"line": finding.line, "problem": finding.words} for finding in done.found]
        print_json({"file": None if copy is None else str(copy), "found": record})
    elif copy is None:
        say("all is well: there is nothing to repair")
    else:
        for finding in done.found:
            say(str(finding))
        say(f"repaired: {copy}; what it does without: {where}.damaged")
