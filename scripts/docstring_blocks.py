"""For the documentation: examples and lists of fields in docstrings are shown as they are typed."""

from __future__ import annotations

import re
from typing import Any

import griffe

FIELDS = re.compile(r"[\w`, ]+? {2,}\S.*(\n {4,}\S.*)*(\n[\w`, ]+? {2,}\S.*(\n {4,}\S.*)*)+")


class DocstringBlocks(griffe.Extension):
    """Puts a fence around every paragraph that is a doctest or a list of fields in columns."""

    def on_object(self, *, obj: griffe.Object, **others: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = "\n\n".join(map(_fenced, re.split(r"\n[ ]*\n", obj.docstring.value)))


def _fenced(paragraph: str) -> str:
    if paragraph.lstrip().startswith(">>>"):
        return f"```pycon\n{paragraph}\n```"
    if FIELDS.fullmatch(paragraph):
        return f"```text\n{paragraph}\n```"
    return paragraph
