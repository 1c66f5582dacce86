"""All tables of a set of results, in one format."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO

from edrbo.bench.analysis.results import Results
from edrbo.bench.analysis.significance import Significance, significance
from edrbo.bench.analysis.stats import STATISTICS
from edrbo.bench.analysis.table import FORMATS, ResultTable, build_table, to_terminal
from edrbo.errors import UnknownNameError

TESTED = ("final", "worst-case")  # statistics that are tested for significance
STYLES = ("terminal", *FORMATS)


def all_tables(
    results: Results, published: Results | None, statistic: str, against: str
) -> Iterator[ResultTable | Significance]:
    """Of each statistic our table, that of the published runs, and the tests of ``against``."""
    if statistic not in ("all", *STATISTICS):
        raise UnknownNameError(f"no statistic is called {statistic!r}", f"one of all, {', '.join(STATISTICS)}")
    for name in STATISTICS if statistic == "all" else [statistic]:
        if ours := build_table(results, name):
            yield ours
        if published is not None and (theirs := build_table(published, name, ", published runs")):
            yield theirs
        wanted = name in TESTED or statistic != "all"
        if wanted and against in results.methods and (tests := significance(results, name, against)):
            yield tests


def render(
    results: Results,
    published: Results | None = None,
    statistic: str = "all",
    style: str = "terminal",
    against: str = "edrbo",
    width: int = 120,
    color: bool = False,
) -> str:
    """The tables as text of one of ``STYLES``; ``width`` and ``color`` are those of the terminal."""
    if style not in STYLES:
        raise UnknownNameError(f"no format is called {style!r}", f"one of {', '.join(STYLES)}")
    tables = list(all_tables(results, published, statistic, against))
    if style == "terminal":
        return _for_terminal(tables, results, width, color)
    if style == "csv":
        return _for_programs(tables)
    shown = [_plain(one, style) if isinstance(one, Significance) else FORMATS[style](one) for one in tables]
    return "\n".join(shown)


def notes(results: Results) -> list[str]:
    """What a reader of the tables must know."""
    found = []
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


def _for_terminal(tables: list[ResultTable | Significance], results: Results, width: int, color: bool) -> str:
    from rich.console import Console
    from rich.table import Table

    text = StringIO()
    console = Console(file=text, width=width, force_terminal=color or None, highlight=False)
    for one in tables:
        if isinstance(one, ResultTable):
            for part in to_terminal(one, width):
                console.print(part, "")
            continue
        head, *rows = one.lines()
        table = Table(title=one.title, box=None, title_justify="left", pad_edge=False)
        for i, name in enumerate(head):
            table.add_column(name, justify="left" if i == 0 else "right")
        for row in rows:
            table.add_row(*row)
        console.print(table, "")
    for note in notes(results):
        console.print(note, soft_wrap=True, markup=False)
    return text.getvalue()


def _for_programs(tables: list[ResultTable | Significance]) -> str:
    """One CSV table of all cells; tests have a format of their own and are left to the others."""
    parts = [FORMATS["csv"](one) for one in tables if isinstance(one, ResultTable)]
    lines = [line for i, part in enumerate(parts) for line in part.splitlines()[1 if i else 0 :]]
    return "\n".join(lines) + "\n"


def _plain(tests: Significance, style: str) -> str:
    head, *rows = tests.lines()
    if style == "markdown":
        lines = [f"**{tests.title}**", "", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
        return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"
    body = [" & ".join(row) + r" \\" for row in rows]
    lines = [rf"% {tests.title}", r"\begin{tabular}{lrrrr}", r"\toprule", " & ".join(head) + r" \\", r"\midrule", *body]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"
