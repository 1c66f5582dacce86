"""Tables of results: a problem a row, a method a column, mean ± standard deviation, average ranks in the last row.

The best mean of a row is bold and the second underlined, in every format that can show it. Published runs have a table
of their own, with their own ranks.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING

from edrbo.bench.analysis.results import Results
from edrbo.bench.analysis.stats import STATISTICS, Cell, rank, summarize

if TYPE_CHECKING:
    from rich.table import Table

RANK_ROW = "average rank"


@dataclass(frozen=True)
class Entry:
    """One cell of a table; ``place`` is 1 for the best of its row, 2 for the second, 0 otherwise."""

    cell: Cell | None
    place: int = 0

    def text(self, separator: str = " ± ") -> str:
        if self.cell is None:
            return ""
        mean, std = format_pair(self.cell.mean, self.cell.std)
        return f"{mean}{separator}{std}"


@dataclass(frozen=True)
class ResultTable:
    title: str
    methods: list[str]
    rows: dict[str, list[Entry]]


def format_pair(mean: float, std: float) -> tuple[str, str]:
    """Both with the decimals that give the mean three significant digits, at most four of them."""
    decimals = 2 - math.floor(math.log10(abs(mean))) if mean else 2
    if decimals > 4:
        return f"{mean:.1e}", f"{std:.1e}"
    decimals = max(0, decimals)
    return f"{mean:.{decimals}f}", f"{std:.{decimals}f}"


def build_table(results: Results, statistic: str, title_suffix: str = "") -> ResultTable | None:
    """The table of one statistic, or None if no run has it."""
    cells = summarize(results, statistic)
    if not cells:
        return None
    methods = [method for method in results.methods if any((p, method) in cells for p in results.problems)]
    rows = {
        problem: _placed([cells.get((problem, method)) for method in methods])
        for problem in results.problems
        if any((problem, method) in cells for method in methods)
    }
    ranks = rank(cells, results.problems, methods)
    if ranks.problems:
        pairs = zip(ranks.mean, ranks.std, strict=True)
        rows[RANK_ROW] = _placed([Cell(float(mean), float(std), len(ranks.problems)) for mean, std in pairs])
    return ResultTable(STATISTICS[statistic] + title_suffix, methods, rows)


def _placed(cells: list[Cell | None]) -> list[Entry]:
    means = sorted({cell.mean for cell in cells if cell is not None})
    places = {mean: place for place, mean in enumerate(means[:2], start=1)} if len(means) > 1 else {}
    return [Entry(cell, places.get(cell.mean, 0) if cell is not None else 0) for cell in cells]


# ---------------------------------------------------------------- formats


def to_markdown(table: ResultTable) -> str:
    def show(entry: Entry) -> str:
        text = entry.text()
        return {1: f"**{text}**", 2: f"<u>{text}</u>"}.get(entry.place, text)

    lines = [
        f"**{table.title}**",
        "",
        "| | " + " | ".join(table.methods) + " |",
        "|---" * (len(table.methods) + 1) + "|",
    ]
    lines += [f"| {name} | " + " | ".join(map(show, row)) + " |" for name, row in table.rows.items()]
    return "\n".join(lines) + "\n"


def to_latex(table: ResultTable) -> str:
    def show(entry: Entry) -> str:
        if entry.cell is None:
            return ""
        mean, std = format_pair(entry.cell.mean, entry.cell.std)
        marked = {1: rf"\mathbf{{{mean}}}", 2: rf"\underline{{{mean}}}"}.get(entry.place, mean)
        return rf"${marked} \pm {std}$"

    lines = [
        rf"% {table.title}",
        rf"\begin{{tabular}}{{l{'r' * len(table.methods)}}}",
        r"\toprule",
        " & ".join(["", *map(_escape, table.methods)]) + r" \\",
        r"\midrule",
    ]
    for name, row in table.rows.items():
        if name == RANK_ROW:
            lines.append(r"\midrule")
        lines.append(" & ".join([_escape(name), *map(show, row)]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _escape(text: str) -> str:
    return text.replace("_", r"\_").replace("&", r"\&").replace("%", r"\%")


def to_csv(table: ResultTable) -> str:
    """One line a cell: it can be read by a program, and holds all digits."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["statistic", "problem", "method", "mean", "std", "count", "place"])
    for name, row in table.rows.items():
        for method, entry in zip(table.methods, row, strict=True):
            if entry.cell is not None:
                cell = entry.cell
                writer.writerow(
                    [table.title, name, method, repr(cell.mean), repr(cell.std), cell.seeds, entry.place or ""]
                )
    return text.getvalue()


FORMATS: dict[str, Callable[[ResultTable], str]] = {"markdown": to_markdown, "latex": to_latex, "csv": to_csv}


def to_terminal(table: ResultTable, width: int) -> list[Table]:
    """Tables for a terminal of ``width`` columns: as many as it takes for every method to be readable."""
    from rich.table import Table
    from rich.text import Text

    first = max(map(len, table.rows)) + 2
    columns = [max([len(e.text("\n").split("\n")[0]) + 1 for e in entries] + [9]) + 2 for entries in _columns(table)]
    parts: list[Table] = []
    start = 0
    while start < len(columns):
        stop, used = start + 1, first + columns[start]
        while stop < len(columns) and used + columns[stop] <= width:
            used, stop = used + columns[stop], stop + 1
        part = Table(title=table.title if start == 0 else None, box=None, title_justify="left", pad_edge=False)
        part.add_column("", no_wrap=True)
        for method in table.methods[start:stop]:
            part.add_column(method.replace("-", "-\n").replace(" (", "\n("), justify="right")
        for name, row in table.rows.items():
            styles = {1: "bold", 2: "underline"}
            part.add_row(name, *(Text(e.text("\n±"), style=styles.get(e.place, "")) for e in row[start:stop]))
        parts.append(part)
        start = stop
    return parts


def _columns(table: ResultTable) -> list[list[Entry]]:
    return [list(column) for column in zip(*table.rows.values(), strict=True)]
