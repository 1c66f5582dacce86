"""``edrbo undo``: take back what happened last."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from edrbo.errors import InvalidEventError
from edrbo.lab.cli.location import only_toml, opened
from edrbo.lab.cli.options import ByOption, JsonOption, NameOption, NoteOption, StudyOption, YesOption
from edrbo.lab.cli.output import confirm, print_json, say

if TYPE_CHECKING:
    from edrbo.lab import Study


def register(app: typer.Typer) -> None:
    app.command("undo")(undo)


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
    note: NoteOption = None,
    by: ByOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take back what was recorded last. The history keeps both; what was somebody else's is asked about first."""
    from edrbo.records.descriptions import entry_words

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
