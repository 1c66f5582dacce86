"""Words for the terminal and for scripts. Names come from users and files: nothing in them is markup or a code."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from edrbo.errors import ContextBoundsWarning


def printable(value: Any) -> str:
    """``value`` as one line of text in which control characters are shown, not obeyed."""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def print_json(record: Any) -> None:
    """One line of JSON, for scripts."""
    typer.echo(json.dumps(record, allow_nan=False))


def say(text: str, *, style: str = "", err: bool = False) -> None:
    Console(stderr=err).print(Text(printable(text), style=style), soft_wrap=True)


def print_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    table = Table(title=Text(printable(title)), title_justify="left")
    for heading in headings:
        table.add_column(Text(printable(heading)), overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if cell is None else printable(cell)) for cell in row))
    Console().print(table)


def print_points(title: str, ids: Sequence[Any], points: Sequence[Mapping[str, Any]]) -> None:
    """Designs under their names, one row each."""
    names = list(points[0]) if points else []
    print_table(title, ["id", *names], [[key, *point.values()] for key, point in zip(ids, points, strict=True)])


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Our warnings as a line on standard error, without the place in the code; nobody else's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", ContextBoundsWarning)
        warnings.showwarning = lambda message, *rest, **more: say(f"warning: {message}", style="yellow", err=True)
        yield
