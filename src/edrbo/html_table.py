"""A small table for notebooks; everything in it is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def html_table(
    caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]], below: Sequence[str] = (), picture: str = ""
) -> str:
    """A table with a caption, lines of text below it, and a ``picture`` of ``charts``, which is HTML. Without ``heads``
    the first cell of a row is its heading."""
    top = f"<thead><tr>{_cells('th', heads)}</tr></thead>" if heads else ""
    body = "".join(
        f"<tr>{_cells('td', row) if heads else _cells('th', row[:1]) + _cells('td', row[1:])}</tr>" for row in rows
    )
    lines = "".join(f"<p>{escape(line)}</p>" for line in below)
    return f"<table><caption>{escape(caption)}</caption>{top}<tbody>{body}</tbody></table>{lines}{picture}"


def _cells(tag: str, texts: Sequence[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)
