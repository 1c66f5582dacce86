"""``edrbo check``: what is wrong with the records of a study, by line."""

from __future__ import annotations

import typer

from edrbo.cli.options import JsonOption, StudyOption
from edrbo.cli.output import print_json, say
from edrbo.cli.place import find_place


def register(app: typer.Typer) -> None:
    app.command("check")(check)


def check(study: StudyOption = None, as_json: JsonOption = False) -> None:
    """Read every record in the file or database of a study; ends with code 1 if one cannot be used."""
    from edrbo.records.words import plural
    from edrbo.study.repair import problems_of

    found = problems_of(find_place(study))
    if as_json:
        print_json({"problems": [{"line": finding.line, "problem": finding.words} for finding in found]})
    else:
        for finding in found:
            say(str(finding), style="yellow")
        say(f"{plural(len(found), 'problem')}; see `edrbo repair`" if found else "all can be read")
    if found:
        raise typer.Exit(1)
