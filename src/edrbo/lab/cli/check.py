"""``edrbo check``: what is wrong with the records of a study."""

from __future__ import annotations

import typer

from edrbo.lab.cli.location import find_place
from edrbo.lab.cli.options import JsonOption, StudyOption
from edrbo.lab.cli.output import print_json, say


def register(app: typer.Typer) -> None:
    app.command("check")(check)


def check(study: StudyOption = None, as_json: JsonOption = False) -> None:
    """Read every page and every event of a study's file or database; ends with code 1 if something is wrong."""
    from edrbo.lab.maintenance import problems_of
    from edrbo.lab.store.database import RECOVER
    from edrbo.lab.store.place import is_url
    from edrbo.records.descriptions import plural

    where = find_place(study)
    found = problems_of(where)
    if as_json:
        print_json({"problems": found})
    else:
        for words in found:
            say(words, style="yellow")
        hint = "restore a backup of the database" if is_url(where) else RECOVER.format(path=where)
        say(f"{plural(len(found), 'problem')}; {hint}" if found else "all is well: every event can be read")
    if found:
        raise typer.Exit(1)
