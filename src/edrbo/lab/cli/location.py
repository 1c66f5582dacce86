"""Which study a command means.

Where a TOML file leads: a file that somebody else wrote may name any file or database, with whose password we would
call. So what lies outside its folder is said and asked about once, and remembered.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from edrbo.errors import StudyError
from edrbo.lab.cli.output import plain_warnings, printable, say, wants_json

if TYPE_CHECKING:
    from edrbo.lab.study import Study
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
    from edrbo.lab.files import read_file

    try:
        found = json.loads(read_file(_place(), LARGEST))
    except (OSError, ValueError, StudyError):
        return {}
    return {str(key): str(part) for key, part in found.items()} if isinstance(found, dict) else {}


@contextmanager
def opened(
    where: str | None,
    name: str | None = None,
    by: str | None = None,
    create: Literal["never", "first", "always"] = "never",
) -> Iterator[Study]:
    """The study a command is about, read once."""
    with plain_warnings():
        yield open_place(where or str(only_toml()), name, by, create)


def open_place(
    where: str,
    name: str | None,
    by: str | None,
    create: Literal["never", "first", "always"] = "never",
    *,
    asks: bool = True,
) -> Study:
    from edrbo.lab.study import Study

    if not where.endswith(".toml"):
        return Study.open(where, name=name, by=by)
    described = described_at(Path(where), asks=asks)
    if name is not None and name != described.name:
        return Study.open(described.storage, name=name, by=by)
    try:
        return described.open(create, by=by)
    except StudyError as problem:
        raise StudyError(problem.message, _hint_for_file(where, described.name, problem)) from None


def _hint_for_file(where: str, name: str, problem: StudyError) -> str | None:
    if problem.message.startswith("there is no study "):
        return f"the name in {where} is {name!r}; {problem.hint}; to rename a study, use `edrbo amend --title`"
    if "has other settings" in problem.message:
        return "take the change back, or make it official with `edrbo amend`"
    return problem.hint


def find_place(where: str | None) -> str:
    """The file or URL of the study a command is about, without opening it."""
    given = where or str(only_toml())
    if not given.endswith(".toml"):
        return given
    return str(described_at(Path(given)).storage)


def only_toml() -> Path:
    found = sorted(path for path in Path().glob("*.toml") if path.name != "pyproject.toml")
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(path.name for path in found[:5])
        raise StudyError(f"there are {len(found)} TOML files here: {names}", "say which with --study FILE.toml")
    raise StudyError("there is no study here", "make one with `edrbo new NAME.toml`, or give --study")
