"""Which study a command means, and the options that commands share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from edrbo.cli.completion import complete_contexts, complete_designs, complete_ids, complete_pending
from edrbo.cli.output import plain_warnings
from edrbo.errors import StudyError

if TYPE_CHECKING:
    from edrbo.study import Study

StudyOption = Annotated[
    str | None,
    typer.Option(
        "--study",
        "-s",
        envvar="EDRBO_STUDY",
        help="The study: its .toml file, its .db file or a PostgreSQL URL. Default: the only .toml file here.",
        show_envvar=True,
    ),
]
NameOption = Annotated[
    str | None, typer.Option("--name", help="Which study, where a storage holds several; see `edrbo studies`.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
ByOption = Annotated[str | None, typer.Option("--by", help="Who says so. Default: your login.")]
NoteOption = Annotated[str | None, typer.Option("--note", help="Words to keep with it.")]
WhyOption = Annotated[str | None, typer.Option("--why", help="The reason, kept with it.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask, just do it.")]
AtOption = Annotated[str | None, typer.Option("--at", help="When it happened, as 2026-03-14 15:30. Default: now.")]
ForecastOption = Annotated[
    Path | None,
    typer.Option("--forecast", help="CSV file of contexts: those to expect this time."),
]
ContextOption = Annotated[
    list[str] | None,
    typer.Option(
        "--context",
        "-c",
        help="A context variable, as NAME=VALUE. Repeat for each.",
        autocompletion=complete_contexts,
    ),
]
DesignOption = Annotated[
    list[str] | None,
    typer.Option(
        "--design",
        "-d",
        help="What was set, as NAME=VALUE. Repeat for each.",
        autocompletion=complete_designs,
    ),
]
RunArgument = Annotated[int, typer.Argument(metavar="ID", help="The number of a run.", autocompletion=complete_ids)]
PendingArgument = Annotated[
    int, typer.Argument(metavar="ID", help="The number of a suggestion.", autocompletion=complete_pending)
]


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
    where: str, name: str | None, by: str | None, create: Literal["never", "first", "always"] = "never"
) -> Study:
    from edrbo.study import Study

    if not where.endswith(".toml"):
        return Study.open(where, name=name, by=by)
    from edrbo.study.toml_file import read_toml

    described = read_toml(Path(where))
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


def only_toml() -> Path:
    found = sorted(path for path in Path().glob("*.toml") if path.name != "pyproject.toml")
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(path.name for path in found[:5])
        raise StudyError(f"there are {len(found)} TOML files here: {names}", "say which with --study FILE.toml")
    raise StudyError("there is no study here", "make one with `edrbo new NAME.toml`, or give --study")
