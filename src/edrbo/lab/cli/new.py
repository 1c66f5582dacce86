"""``edrbo new``: describe a study by flags or by answering questions."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from edrbo.errors import EdrboError, StudyError
from edrbo.lab.cli.conversation import ask_file, converse
from edrbo.lab.cli.output import plain_warnings, print_json, say
from edrbo.lab.cli.settings_options import with_settings
from edrbo.lab.cli.trust import described_at, remember
from edrbo.lab.entry.variables import read_variable_argument
from edrbo.records.settings import Settings
from edrbo.space import Space

DESIGN_HELP = "What you set: 'speed=10:60 m/min step 0.5', rate=1e-4:1:log, layers=1:8:int, kind=a,b,c, 'size=s<m<l'."
CONTEXT_HELP = "What the world sets: humidity=0:100, or just price if its bounds are not known. Repeat for each."

CONSTRAINT_HELP = "What must hold between what you set: 'speed * dose <= 80', 'a + b + c == 1'. Repeat for each."


def register(app: typer.Typer) -> None:
    app.command("new")(with_settings(new))


def new(
    file: Annotated[Path | None, typer.Argument(help="The .toml file to write; the study is kept beside it.")] = None,
    design: Annotated[list[str] | None, typer.Option("--design", "-d", help=DESIGN_HELP)] = None,
    context: Annotated[list[str] | None, typer.Option("--context", "-c", help=CONTEXT_HELP)] = None,
    constraint: Annotated[list[str] | None, typer.Option("--constraint", help=CONSTRAINT_HELP)] = None,
    storage: Annotated[str | None, typer.Option(help="A file beside the TOML, or postgresql://user@host/db.")] = None,
    name: Annotated[str | None, typer.Option(help="The study's name in its storage.")] = None,
    shared: Annotated[bool, typer.Option("--shared", help="Your group may read and write it too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
    *,
    choices: dict[str, Any],
) -> None:
    """Make a study: a .toml file that describes it, and the file that keeps it. Without -d it asks questions.

    With a .toml file that exists already, and no -d, the study that it describes is made.
    """
    if file is None:
        if design or as_json or not sys.stdin.isatty():
            raise StudyError("no file was given", "write edrbo new coating.toml, or run edrbo new alone in a terminal")
        file = _asked_for()
    if file.suffix != ".toml":
        raise StudyError(f"{file} does not end in .toml", f"write {file.with_suffix('.toml')}")
    if file.exists():
        _make_described(file, bool(design or context or constraint or choices), as_json)
        return
    if design:
        designs, contexts = (dict(map(read_variable_argument, words or [])) for words in (design, context))
        space = Space(designs, contexts, constraint or [])
        settings = Settings(space, **choices)
    elif sys.stdin.isatty() and not as_json:
        settings = converse(file, choices)
    else:
        raise StudyError("no design variable was given", "add --design speed=1:9, or run this in a terminal")
    _write(file, storage or file.with_suffix(".db").name, name or file.stem, settings, shared)
    if as_json:
        print_json({"file": str(file), "name": name or file.stem, "settings": settings.to_dict()})
    else:
        say(f"{file} describes the study; next: edrbo ask --study {file}")


def _asked_for() -> Path:
    try:
        return ask_file()
    except (typer.Abort, KeyboardInterrupt):
        say("")
        raise typer.Exit(130) from None


def _write(file: Path, storage: str, name: str, settings: Settings, shared: bool) -> None:
    """The description and the study; neither if one cannot be."""
    from edrbo.lab.config import read_toml, write_toml
    from edrbo.lab.store.place import is_url

    mode = 0o660 if shared else 0o600
    write_toml(file, storage, name, settings, mode)
    try:
        with plain_warnings():
            described = read_toml(file)
            described.open("always")
        remember(file, described)
        if shared and not is_url(described.storage):
            os.chmod(described.storage, mode)
    except EdrboError:
        file.unlink()
        raise


def _make_described(file: Path, more: bool, as_json: bool) -> None:
    """The study of a file that was written by hand."""
    from edrbo.lab.store.event_store import EventStore
    from edrbo.lab.store.place import is_url

    if more:
        raise StudyError(f"{file} exists already", "choose another name, or delete it")
    described = described_at(file)
    exists = is_url(described.storage) or Path(described.storage).exists()
    if exists and described.name in EventStore(described.storage).names():
        raise StudyError(f"{file} exists already, and so does its study", "choose another name")
    with plain_warnings():
        study = described.open("always")
    if as_json:
        print_json({"file": str(file), "name": study.name, "settings": described.settings.to_dict()})
    else:
        say(f"the study of {file} is made; next: edrbo ask --study {file}")
