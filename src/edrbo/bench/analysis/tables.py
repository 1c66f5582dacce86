"""All tables of a set of results, in one format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from io import StringIO

from edrbo.bench.analysis.curves import IN_QUESTION, in_question
from edrbo.bench.analysis.regret_table import regret_table
from edrbo.bench.analysis.relative import relative_table
from edrbo.bench.analysis.results import Results
from edrbo.bench.analysis.significance import significance
from edrbo.bench.analysis.stats import STATISTICS, summarize
from edrbo.bench.analysis.table import Table, write_csv
from edrbo.errors import UnknownNameError

STYLES = ("terminal", "markdown", "latex", "csv")


def all_tables(results: Results, published: Results | None, statistic: str, against: str) -> Iterator[Table]:
    """Of each statistic our table, that of the published runs, and the tests of ``against``, if that was run."""
    against = in_question(results, against)
    for name in _chosen(results, statistic):
        if ours := regret_table(results, name):
            yield ours
        if published is not None and (theirs := regret_table(published, name, ", published runs")):
            yield theirs
        if tests := significance(results, name, against):
            yield tests.table()


def _chosen(results: Results, statistic: str) -> list[str]:
    """The statistics meant by a name or by ``all``, as far as some run has them."""
    known = [*STATISTICS, *results.looks]
    if statistic not in ("all", *known):
        raise UnknownNameError(f"no statistic is called {statistic!r}", f"one of all, {', '.join(known)}")
    return [name for name in (known if statistic == "all" else [statistic]) if summarize(results, name)]


def render(
    results: Results,
    published: Results | None = None,
    statistic: str = "all",
    style: str = "terminal",
    against: str = IN_QUESTION,
    width: int = 120,
    color: bool = False,
    relative: str | None = None,
) -> str:
    """The tables as text of one of ``STYLES``; ``width`` and ``color`` are those of the terminal.

    ``relative`` to a method: ratios to its numbers, in place of the numbers and their tests.
    """
    if style not in STYLES:
        raise UnknownNameError(f"no format is called {style!r}", f"one of {', '.join(STYLES)}")
    made = all_tables(results, published, statistic, against)
    if relative is not None:
        made = (relative_table(results, name, relative) for name in _chosen(results, statistic))
    tables = _note_once(made)
    if style == "terminal":
        return _for_terminal(tables, results, width, color)
    if style == "csv":
        return write_csv(tables)
    return "\n".join(table.to_markdown() if style == "markdown" else table.to_latex() for table in tables)


def notes(results: Results) -> list[str]:
    """What a reader of the tables must know."""
    found = (
        [] if results.goal == "expected" else [f"methods were reported, and regrets are measured under, {results.goal}"]
    )
    if results.failures:
        found.append(f"{len(results.failures)} replicates failed and are left out")
    if results.unfinished:
        found.append(f"{results.unfinished} replicates are unfinished and left out")
    if len(results.distinct("settings")) > 1:
        found.append("runs of different settings stand side by side: compare them with care")
    if len(results.distinct("versions")) > 1:
        found.append("runs of different versions of edrbo or its libraries stand side by side")
    found += [f"portfolio data: {data}" for data in results.distinct("data") if data]
    return found


def _note_once(tables: Iterator[Table]) -> list[Table]:
    """The same note below every table would be tiresome: it stands below the first."""
    said: set[str] = set()
    found = []
    for table in tables:
        found.append(replace(table, note="") if table.note in said else table)
        said.add(table.note)
    return found


def _for_terminal(tables: list[Table], results: Results, width: int, color: bool) -> str:
    from rich.console import Console
    from rich.text import Text

    text = StringIO()
    console = Console(file=text, width=width, force_terminal=color or None, highlight=False)
    for table in tables:
        for part in table.to_terminal(width):
            console.print(part, "")
        if table.note:
            console.print(Text(table.note, style="dim"), "")
    for note in notes(results):
        console.print(note, soft_wrap=True, markup=False)
    return text.getvalue()
