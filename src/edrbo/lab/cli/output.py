"""Words for the terminal and for scripts, and files that commands write. Names come from users and files: nothing in
them is markup or a code.
"""

from __future__ import annotations

import json
import math
import os
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from edrbo.errors import (
    ConstraintWarning,
    ContextBoundsWarning,
    ExistsAlreadyError,
    ImplausibleWarning,
    NarrowContextsWarning,
    NetworkFileWarning,
    StudyError,
)

if TYPE_CHECKING:
    from edrbo.records.state import State
    from edrbo.text import Fact


NARROWEST = 30  # a column of sentences
ROW_NAMES = ("id", "when")  # of columns that name a row
OURS = (ConstraintWarning, ContextBoundsWarning, ImplausibleWarning, NarrowContextsWarning, NetworkFileWarning)


def printable(value: Any) -> str:
    """``value`` as one line of text in which control characters are shown, not obeyed."""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def wants_json() -> bool:
    """Whether this command was asked for JSON; errors and warnings then are JSON too."""
    words = sys.argv[1:]
    return "--json" in (words[: words.index("--")] if "--" in words else words)


def print_json(record: Any) -> None:
    """One line of JSON, for scripts. What is infinite is null, since JSON has no word for it."""
    typer.echo(json.dumps(finite(record), allow_nan=False))


def print_run(state: State, run: int, *, as_json: bool) -> None:
    """What a run is now that its status has changed."""
    from edrbo.records.descriptions import describe_run

    if as_json:
        print_json({"id": run, "status": state.runs[run].status, "dropped": state.runs[run].dropped})
    else:
        say(describe_run(state, state.runs[run]))


def finite(record: Any) -> Any:
    """``record`` with None in place of infinite numbers."""
    if isinstance(record, dict):
        return {key: finite(value) for key, value in record.items()}
    if isinstance(record, list | tuple):
        return [finite(value) for value in record]
    return None if isinstance(record, float) and math.isinf(record) else record


def say(text: str, *, style: str = "", err: bool = False) -> None:
    Console(stderr=err).print(Text(printable(text), style=style), soft_wrap=True)


def warn(text: str) -> None:
    """A line on standard error."""
    if wants_json():
        typer.echo(json.dumps({"warning": text}), err=True)
    else:
        say(f"warning: {text}", style="yellow", err=True)


def print_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table, or one block per row where a table would be wider than the terminal."""
    console = Console()
    cells = [["" if cell is None else printable(cell) for cell in row] for row in rows]
    heads = [printable(heading) for heading in headings]
    widths = [max(map(cell_len, column)) for column in zip(heads, *cells, strict=True)]
    if sum(widths) + 3 * len(widths) + 1 <= console.width or len(heads) < 3:
        _print_grid(console, printable(title), heads, cells)
    else:
        _print_blocks(console, printable(title), heads, cells)


def print_facts(title: str, facts: Iterable[Fact]) -> None:
    """Lines of a label, a value and what that means; below each other where a terminal is narrow."""
    rows = [[printable(cell) for cell in fact] for fact in facts]
    if not rows:
        return
    console = Console()
    console.print(Text(printable(title), style="italic"), soft_wrap=True)
    first, second = (max(cell_len(row[k]) for row in rows) for k in (0, 1))
    beside = console.width - first - second - 6
    for label, value, meaning in rows:
        gap = " " * (first - cell_len(label) + 2)
        line = Text(f"  {label}{gap}")
        line.append(value, style="bold")
        if beside >= NARROWEST:
            lines = textwrap.wrap(meaning, beside) or [""]
            line.append(" " * (second - cell_len(value) + 2) + lines[0])
            console.print(line, soft_wrap=True)
            for more in lines[1:]:
                console.print(Text(" " * (first + second + 6) + more), soft_wrap=True)
            continue
        console.print(line, soft_wrap=True)
        for more in textwrap.wrap(meaning, max(20, console.width - 6)):
            console.print(Text(f"      {more}", style="dim"), soft_wrap=True)


def _print_grid(console: Console, title: str, heads: list[str], cells: list[list[str]]) -> None:
    table = Table(title=Text(title), title_justify="left")
    for heading in heads:
        table.add_column(Text(heading), overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(table)


def _print_blocks(console: Console, title: str, heads: list[str], cells: list[list[str]]) -> None:
    """Each row as lines of name and value; what is empty is left out. The first of a row is its name, of a single
    design one value like the others."""
    console.print(Text(title, style="italic"), soft_wrap=True)
    wide = min(max(map(cell_len, heads)), console.width // 2)
    named = heads[0] in ROW_NAMES or len(cells) > 1
    for row in cells:
        if named:
            console.print(Text(f"{heads[0]} {row[0]}".lstrip(), style="bold"), soft_wrap=True)
        for heading, cell in list(zip(heads, row, strict=True))[named:]:
            gap = " " * max(1, wide - cell_len(heading) + 2)
            start = f"  {heading}{gap}"
            lines = textwrap.wrap(cell, max(20, console.width - cell_len(start))) if cell else []
            for number, line in enumerate(lines):
                console.print(Text((" " * cell_len(start) if number else start) + line), soft_wrap=True)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Our warnings as a line on standard error, without the place in the code; nobody else's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ours in OURS:
            warnings.simplefilter("always", ours)
        warnings.showwarning = lambda message, *rest, **more: warn(str(message))
        yield


def confirm(question: str, *, yes: bool) -> None:
    """Go on only if somebody at a terminal says so, ``yes`` was given, or nobody can be asked."""
    if yes or wants_json() or not sys.stdin.isatty():
        return
    if not typer.confirm(printable(question), default=False):
        say("nothing was stored", err=True)
        raise typer.Exit(1)


EXISTS = "choose another name, or add --force"


def check_new(path: Path, force: bool) -> None:
    """StudyError if ``new_file`` would fail: to be known before an answer is worked out for it."""
    folder = path.parent
    if path.is_dir():
        raise StudyError(f"cannot write {path}: it is a folder", "name a file")
    if not folder.is_dir():
        raise StudyError(f"cannot write {path}: there is no folder {folder}", "make it, or choose another place")
    if path.exists() and not force:
        raise ExistsAlreadyError(f"{path} exists already", EXISTS)
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise StudyError(f"cannot write {path}: it is not allowed", "choose another place")


def safe_file_name(name: str) -> str:
    """A study's name as a file name in this folder, whatever is in it."""
    safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:80]
    return safe.strip("-") or "study"
