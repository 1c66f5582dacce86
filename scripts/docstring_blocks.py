"""For the documentation: in docstrings examples and what is indented are shown as typed, lists of fields as tables."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

FIELDS = re.compile(r"[\w`, ]+? {2,}\S.*(\n {4,}\S.*)*(\n[\w`, ]+? {2,}\S.*(\n {4,}\S.*)*)+")


class DocstringBlocks(griffe.Extension):
    """Puts a fence around every paragraph that is a doctest or indented, and makes a table of a list of fields."""

    def on_object(self, *, obj: griffe.Object, **others: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = "\n\n".join(map(_fenced, re.split(r"\n[ ]*\n", obj.docstring.value)))


def _fenced(paragraph: str) -> str:
    if paragraph.lstrip().startswith(">>>"):
        return f"```pycon\n{paragraph}\n```"
    if all(line.startswith("    ") for line in paragraph.splitlines()):
        return f"```text\n{textwrap.dedent(paragraph)}\n```"
    if paragraph.startswith("Args:\n"):
        return _arguments(paragraph)
    if FIELDS.fullmatch(paragraph):
        return _table(paragraph)
    return paragraph


def _arguments(paragraph: str) -> str:
    """A table of the arguments; the lines below a name that begin further in belong to it."""
    block = textwrap.dedent(paragraph.removeprefix("Args:\n"))
    return _rows([row.split(": ", 1) for row in re.sub(r"\n +", " ", block).splitlines()])


def _table(paragraph: str) -> str:
    """A name and what it means a row; the lines below a name that begin further in belong to it."""
    return _rows([re.split(r" {2,}", row, maxsplit=1) for row in re.sub(r"\n {4,}", " ", paragraph).splitlines()])


def _rows(rows: list[list[str]]) -> str:
    lines = [f"| `{name.strip('`')}` | {words.replace('|', chr(92) + '|')} |" for name, words in rows]
    return "\n".join(["| | |", "|---|---|", *lines])
