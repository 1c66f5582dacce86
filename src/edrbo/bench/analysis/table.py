"""A table as one value, and its four writers: for terminals, markdown, LaTeX and programs.

The best entry of a row is bold and the second underlined, in every form that can show it. Names come from plugins and
files, so every writer escapes what its form would take for markup.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table as TerminalTable

CSV_COLUMNS = ("table", "row", "column", "value", "spread", "count", "place")
BEST, SECOND = 1, 2
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|])")
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


@dataclass(frozen=True)
class Entry:
    """One cell: ``text`` for people, with ``spread_text`` after a ±; ``value``, ``spread`` and the ``count`` of runs
    behind them for programs. ``place`` is ``BEST`` or ``SECOND`` of its row, or 0.
    """

    text: str = ""
    spread_text: str = ""
    value: float | str | None = None
    spread: float | None = None
    count: int | None = None
    place: int = 0

    @property
    def shown(self) -> str:
        return f"{self.text} ± {self.spread_text}" if self.spread_text else self.text


@dataclass(frozen=True)
class TableRow:
    """``apart`` rows have a line above them where the form has lines."""

    name: str
    entries: tuple[Entry, ...]
    apart: bool = False


@dataclass(frozen=True)
class Table:
    """``corner`` heads the names of the rows; ``note`` stands below and says how to read the table."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    corner: str = ""
    note: str = ""

    def named(self, label: Callable[[str], str]) -> Table:
        """With other names of its rows and columns."""
        rows = tuple(replace(row, name=label(row.name)) for row in self.rows)
        return replace(self, columns=tuple(map(label, self.columns)), rows=rows)

    def to_markdown(self) -> str:
        def show(entry: Entry) -> str:
            text = _escape_markdown(entry.shown)
            return {BEST: f"**{text}**", SECOND: f"<u>{text}</u>"}.get(entry.place, text)

        def line(cells: Iterable[str]) -> str:
            return "| " + " | ".join(cells) + " |"

        head = [f"**{_escape_markdown(self.title)}**", "", line(map(_escape_markdown, (self.corner, *self.columns)))]
        body = [line([_escape_markdown(row.name), *map(show, row.entries)]) for row in self.rows]
        note = ["", _escape_markdown(self.note)] if self.note else []
        return "\n".join([*head, "|---|" + "---:|" * len(self.columns), *body, *note]) + "\n"

    def to_latex(self) -> str:
        def show(entry: Entry) -> str:
            mark = {BEST: r"\textbf{%s}", SECOND: r"\underline{%s}"}.get(entry.place, "%s")
            text = mark % _escape_latex(entry.text) if entry.text else ""
            return f"{text} $\\pm$ {_escape_latex(entry.spread_text)}" if entry.spread_text else text

        lines = [f"% {_one_line(self.title)}", rf"\begin{{tabular}}{{l{'r' * len(self.columns)}}}", r"\toprule"]
        lines += [" & ".join(map(_escape_latex, (self.corner, *self.columns))) + r" \\", r"\midrule"]
        for row in self.rows:
            lines += [r"\midrule"] if row.apart else []
            lines.append(" & ".join([_escape_latex(row.name), *map(show, row.entries)]) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}"]
        return "\n".join([*lines, *([f"% {_one_line(self.note)}"] if self.note else [])]) + "\n"

    def records(self) -> Iterator[tuple[str, ...]]:
        """A line per entry under ``CSV_COLUMNS``, with all digits."""
        for row in self.rows:
            for column, entry in zip(self.columns, row.entries, strict=True):
                if entry.value is not None:
                    extra = (entry.spread, entry.count, entry.place or None)
                    numbers = ("" if one is None else str(one) for one in (entry.value, *extra))
                    yield (self.title, row.name, column, *numbers)

    def to_csv(self) -> str:
        return write_csv([self])

    def to_terminal(self, width: int) -> list[TerminalTable]:
        """Tables for a terminal of ``width`` columns: as many as it takes for every column to be readable."""
        parts = list(_split(self, width))
        return [_for_rich(replace(part, title=self.title if i == 0 else "")) for i, part in enumerate(parts)]


def write_csv(tables: Iterable[Table]) -> str:
    """One CSV table of all entries of several tables."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for table in tables:
        writer.writerows(table.records())
    return text.getvalue()


def mean_entry(mean: float, std: float, count: int) -> Entry:
    """mean ± standard deviation over ``count`` runs."""
    return Entry(*format_pair(mean, std), mean, std, count)


def format_pair(mean: float, std: float) -> tuple[str, str]:
    """Both with the decimals that give the mean three significant digits, at most four of them."""
    decimals = 2 - math.floor(math.log10(abs(mean))) if mean else 2
    if decimals > 4:
        return f"{mean:.1e}", f"{std:.1e}"
    decimals = max(0, decimals)
    return f"{mean:.{decimals}f}", f"{std:.{decimals}f}"


def with_places(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The least value of a row is the best; a row of equal values has no best."""
    entries = tuple(entries)
    values = sorted({entry.value for entry in entries if isinstance(entry.value, float)})
    places = {value: place for place, value in enumerate(values[:2], start=BEST)} if len(values) > 1 else {}
    return tuple(
        replace(entry, place=places.get(entry.value, 0)) if isinstance(entry.value, float) else entry
        for entry in entries
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _escape_markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", _one_line(text))


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in _one_line(text))


def _split(table: Table, width: int) -> Iterator[Table]:
    """The table cut between columns into parts that fit."""
    first = max(len(table.corner), *(len(row.name) for row in table.rows)) + 2
    widths = [_width(table, j) + 2 for j in range(len(table.columns))]
    start = 0
    while start < len(widths):
        stop, used = start + 1, first + widths[start]
        while stop < len(widths) and used + widths[stop] <= width:
            used, stop = used + widths[stop], stop + 1
        rows = tuple(replace(row, entries=row.entries[start:stop]) for row in table.rows)
        yield replace(table, columns=table.columns[start:stop], rows=rows)
        start = stop


def _width(table: Table, j: int) -> int:
    entries = [row.entries[j] for row in table.rows]
    texts = [part for entry in entries for part in (entry.text, f"±{entry.spread_text}" if entry.spread_text else "")]
    return max(map(len, [*_broken(table.columns[j]).split("\n"), *texts]))


def _broken(name: str) -> str:
    """A heading on several lines, so that columns can be narrow."""
    return name.replace("-", "-\n").replace(" (", "\n(")


def _for_rich(table: Table) -> TerminalTable:
    from rich.table import Table as TerminalTable
    from rich.text import Text

    title = Text(table.title) if table.title else None
    shown = TerminalTable(title=title, box=None, title_justify="left", pad_edge=False)
    shown.add_column(Text(table.corner), no_wrap=True)
    for name in table.columns:
        shown.add_column(Text(_broken(name)), justify="right")
    styles = {BEST: "bold", SECOND: "underline"}
    for row in table.rows:
        texts = (f"{e.text}\n±{e.spread_text}" if e.spread_text else e.text for e in row.entries)
        cells = zip(texts, row.entries, strict=True)
        shown.add_row(Text(row.name), *(Text(text, style=styles.get(entry.place, "")) for text, entry in cells))
    return shown
