"""Where a TOML file leads: a file that somebody else wrote may name any file or database, with whose password we would
call. So what lies outside its folder is said and asked about once, and remembered."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from edrbo.errors import StudyError
from edrbo.lab.cli.output import printable, say, wants_json

if TYPE_CHECKING:
    from edrbo.lab.config import Description

TRUST = "EDRBO_TRUST"  # set to 1 where nobody can be asked and every TOML file is one's own
LARGEST = 2**20


def described_at(path: Path, *, asks: bool = True) -> Description:
    """What a TOML file says, if its study lies beside it or somebody says that it may be elsewhere.

    Args:
        path: the TOML file.
        asks: False where a question would be in the way, as in completion.
    """
    from edrbo.lab.config import read_toml

    described = read_toml(path)
    elsewhere = described.elsewhere(path)
    if elsewhere is None or os.environ.get(TRUST) == "1" or _known().get(_key(path)) == described.storage:
        return described
    if not asks or wants_json() or not sys.stdin.isatty():
        hint = f"answer once in a terminal, name it by --study itself, or set {TRUST}=1 if all TOML files are your own"
        raise StudyError(f"{path} leads to {elsewhere}, outside of its folder", hint)
    say(f"{path} keeps its study outside of its folder, in", err=True)
    say(f"    {elsewhere}", style="bold", err=True)
    if not typer.confirm(printable("Is that right?"), default=False, err=True):
        say("nothing was opened", err=True)
        raise typer.Exit(1)
    remember(path, described)
    return described


def remember(path: Path, described: Description) -> None:
    """That a file may lead elsewhere: it was made here, or somebody has said so."""
    if described.elsewhere(path) is None:
        return
    place = _place()
    text = json.dumps({**_known(), _key(path): described.storage}, indent=1)
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = place.with_name(f".{place.name}.{os.getpid()}")
        descriptor = os.open(beside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        beside.replace(place)
    except OSError:
        return  # it is asked again


def _key(path: Path) -> str:
    return str(path.resolve())


def _place() -> Path:
    folder = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(folder) if folder else Path.home() / ".local" / "state") / "edrbo" / "trusted.json"


def _known() -> dict[str, str]:
    from edrbo.lab.tables.file_kind import read_file

    try:
        found = json.loads(read_file(_place(), LARGEST))
    except (OSError, ValueError, StudyError):
        return {}
    return {str(key): str(part) for key, part in found.items()} if isinstance(found, dict) else {}
