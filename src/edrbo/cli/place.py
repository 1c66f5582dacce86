"""Which study a command means, and the values written on its command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edrbo.cli.output import plain_warnings
from edrbo.errors import InvalidContextError, InvalidDesignError, StudyError

if TYPE_CHECKING:
    from edrbo.space import Space
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
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
ForecastOption = Annotated[
    Path | None,
    typer.Option("--forecast", help="CSV file of contexts: the law to expect this time."),
]
ContextOption = Annotated[
    list[str] | None, typer.Option("--context", "-c", help="A context variable, as NAME=VALUE. Repeat for each.")
]


@contextmanager
def opened(where: str | None) -> Iterator[Study]:
    """The study a command is about."""
    with plain_warnings():
        yield open_place(where or str(_only_toml()))


def open_place(where: str) -> Study:
    if where.endswith(".toml"):
        from edrbo.study.toml_file import read_toml

        return read_toml(Path(where)).open()
    from edrbo.study import Study

    return Study.open(where)


def _only_toml() -> Path:
    found = sorted(path for path in Path().glob("*.toml") if path.name != "pyproject.toml")
    if len(found) == 1:
        return found[0]
    if found:
        raise StudyError(f"there are {len(found)} TOML files here", "say which with --study FILE.toml")
    raise StudyError("there is no study here", "make one with `edrbo new NAME.toml`, or give --study")


def read_context(space: Space, words: Sequence[str] | None) -> dict[str, float] | None:
    """``NAME=VALUE`` words as a context; None without any."""
    if not words:
        return None
    context = {}
    for name, text in map(split_word, words):
        try:
            context[name] = float(text)
        except ValueError:
            raise InvalidContextError(f"context variable {name!r} is {text!r}", "it must be a number") from None
    return context


def read_design(space: Space, words: Sequence[str]) -> dict[str, Any]:
    """``NAME=VALUE`` words as a design."""
    from edrbo.study.csv_import import read_value

    design = {}
    for name, text in map(split_word, words):
        if name not in space.design:
            raise InvalidDesignError(f"{name!r} is not a design variable", f"they are {list(space.design)}")
        try:
            design[name] = read_value(space, name, text)
        except ValueError:
            raise InvalidDesignError(f"design variable {name!r} is {text!r}", "it must be a number") from None
    return design


def split_word(word: str) -> tuple[str, str]:
    name, sign, text = word.partition("=")
    if not sign or not name:
        raise StudyError(f"{word!r} is not NAME=VALUE", "write for instance humidity=0.4")
    return name, text


def read_forecast(space: Space, path: Path | None) -> Any:
    if path is None:
        return None
    from edrbo.study.csv_file import read_contexts_csv

    return read_contexts_csv(space, path)[0]
