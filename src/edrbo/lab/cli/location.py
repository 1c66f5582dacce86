"""Which study a command means."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from edrbo.errors import StudyError
from edrbo.lab.cli.output import plain_warnings
from edrbo.lab.cli.trust import described_at

if TYPE_CHECKING:
    from edrbo.lab import Study


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
    from edrbo.lab import Study

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
