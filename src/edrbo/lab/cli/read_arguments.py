"""NAME=VALUE words and numbers as people type them, and which study a command means. What is implausible is asked about
before it is stored.

Where a TOML file leads: a file that somebody else wrote may name any file or database, with whose password we would
call. So what lies outside its folder is said and asked about once, and remembered.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from edrbo.errors import InvalidValueError, OtherSettingsError, StudyError, UnknownStudyError
from edrbo.lab.cli.output import confirm, plain_warnings, printable, say, wants_json, warn

if TYPE_CHECKING:
    from edrbo.lab.config import Description
    from edrbo.lab.study import Study
    from edrbo.optimizer.candidates import RequestOptions
    from edrbo.records.settings import Settings
    from edrbo.space import Space
    from edrbo.space.variables import Variable


def read_context(space: Space, words: Sequence[str] | None) -> dict[str, Any] | None:
    """A context; None without any word."""
    from edrbo.lab.entry import read_context

    return read_context(space, _named(words, space.context)) if words else None


def read_design(space: Space, words: Sequence[str] | None) -> dict[str, Any]:
    """Some of a design's variables, or all."""
    from edrbo.lab.entry import read_design

    return read_design(space, _named(words or (), space.design))


def _named(words: Sequence[str], variables: Mapping[str, Variable]) -> dict[str, str]:
    """Texts by name."""
    example = next((f"{name}={_example(variable)}" for name, variable in variables.items()), "humidity=55")
    found: dict[str, str] = {}
    for word in words:
        name, text = split_argument(word, example)
        if found.get(name, text) != text:
            raise InvalidValueError(f"{name} is given twice: {found[name]} and {text}", "give it once")
        found[name] = text
    return found


def _example(variable: Variable) -> str:
    """A value that it may have."""
    if not variable.numeric:
        return variable.text(variable.grid(1)[0])
    ends = [end for end in variable.limits() if math.isfinite(end)]
    return variable.text(ends[0] if variable.size else sum(ends) / len(ends)) if ends else "55"


def read_control(settings: Settings, text: str | None) -> float | None:
    from edrbo.lab.entry import read_control

    return read_control(settings, text)


def read_amount(text: str | None, what: str) -> float | None:
    """A plain number, such as a cost."""
    from edrbo.lab.entry import read_amount

    return read_amount(text, what)


def read_result(settings: Settings, words: Sequence[str] | None) -> float | dict[str, float | None] | None:
    """One result, or several by name; None without any word."""
    from edrbo.lab.entry import read_result

    return None if not words else read_result(settings, _one_or_named(settings, words, "the value"))


def read_variances(settings: Settings, words: Sequence[str] | None) -> float | dict[str, float | None] | None:
    """What is known of the noise; None without any word."""
    from edrbo.lab.entry import read_variances

    return None if not words else read_variances(settings, _one_or_named(settings, words, "the noise"))


def _one_or_named(settings: Settings, words: Sequence[str], what: str) -> str | dict[str, str]:
    if len(words) == 1 and "=" not in words[0]:
        return words[0]
    if settings.outcomes is None and len(words) > 1:
        raise InvalidValueError(f"{what} is given {len(words)} times", "this study has one outcome")
    for word in words:
        if "=" not in word:
            hint = f"write NAME={word}; the outcomes are {', '.join(settings.outcomes or ())}"
            raise InvalidValueError(f"{what} is {word!r}, and this study has several outcomes", hint)
    found: dict[str, str] = {}
    for word in words:
        name, text = split_argument(word)
        if name in found:
            raise InvalidValueError(f"{name} is given twice", "give it once")
        found[name] = text
    return found


def read_moment(text: str | None) -> float | None:
    if text is None:
        return None
    from edrbo.lab.entry import read_time

    try:
        return read_time(text)
    except ValueError as problem:
        raise InvalidValueError(f"the time is {text!r}: {problem}", "write it as 2026-03-14 15:30") from None


def split_argument(word: str, example: str = "humidity=55") -> tuple[str, str]:
    name, sign, text = word.partition("=")
    if not sign or not name.strip():
        raise StudyError(f"{word!r} is not NAME=VALUE", f"write for instance {example}")
    return name.strip(), text.strip()


def read_forecast(space: Space, path: Path | None) -> Any:
    if path is None:
        return None
    from edrbo.lab.tables.csv_import import read_contexts

    return read_contexts(space, path)[0]


def read_candidates(space: Space, path: Path | None) -> Any:
    if path is None:
        return None
    from edrbo.lab.tables.csv_import import read_designs

    return read_designs(space, path)


def read_request_options(
    space: Space,
    forecast: Path | None,
    fix: Sequence[str] | None,
    candidates: Path | None,
    context: Sequence[str] | None = None,
) -> RequestOptions:
    """What is known and wanted of a design, as ``ask``, ``recommend`` and ``front`` take it."""
    return {
        "forecast": read_forecast(space, forecast),
        "context": read_context(space, context),
        "fixed": read_design(space, fix) or None,
        "candidates": read_candidates(space, candidates),
    }


def settle(found: Sequence[str], *, yes: bool) -> None:
    """Show doubts about what is to be stored, and ask; where nobody can be asked they are warnings."""
    if not found or yes:
        return
    if wants_json() or not sys.stdin.isatty():
        for doubt in found:
            warn(f"{doubt} (stored as it is)")
        return
    for doubt in found:
        say(doubt, style="yellow")
    confirm("Store it as it is?", yes=yes)


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
        return Study.described(described, create, by=by)
    except StudyError as problem:
        raise type(problem)(problem.message, _hint_for_file(where, described.name, problem)) from None


def _hint_for_file(where: str, name: str, problem: StudyError) -> str | None:
    if isinstance(problem, UnknownStudyError):
        return f"the name in {where} is {name!r}; {problem.hint}; to rename a study, use `edrbo amend --title`"
    if isinstance(problem, OtherSettingsError):
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
    raise UnknownStudyError("there is no study here", "make one with `edrbo new NAME.toml`, or give --study")
