"""All tables of a set of results, in one format: a problem a row, a method a column, mean ± standard deviation, average
ranks below (published runs have a table of their own, with their own ranks); and how large a method's regret is
relative to another's: ratios of means by problem, and their geometric mean.

The interval of that mean is a bootstrap over problems, and over the seeds within each: it says how far it would move
with other problems like these and other seeds. Resampling seeds alone would speak of these problems only, and be far
too narrow with two or three of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import StringIO

import numpy as np

from edrbo.bench.analysis.results import Results
from edrbo.bench.analysis.stats import (
    IN_QUESTION,
    STATISTICS,
    Cell,
    in_question,
    rank,
    significance,
    statistic,
    summarize,
    title_of,
)
from edrbo.bench.analysis.table import Entry, Table, TableRow, mean_entry, with_places, write_csv
from edrbo.bench.problems.oracle.distributions import Array
from edrbo.errors import InvalidValueError, UnknownNameError

DRAWS = 4000
NOTE = (
    "Below 1 the method's number is smaller, that is better. The interval resamples problems, and seeds within each: "
    "it speaks of problems like these. The last column counts the seeds that a problem has."
)


@dataclass(frozen=True)
class Relative:
    """Ratio of means by problem; the geometric ``mean`` of the ratios with its 95 % interval; seeds a problem."""

    method: str
    ratios: dict[str, float]
    mean: float
    interval: tuple[float, float]
    seeds: tuple[int, int]


def relative(results: Results, name: str, method: str, reference: str) -> Relative:
    """``method`` against ``reference`` on common problems and seeds, by the statistic ``name``."""
    pairs = {problem: _pairs(results, name, method, reference, problem) for problem in results.problems}
    pairs = {problem: both for problem, both in pairs.items() if both.shape[1]}
    if not pairs:
        raise InvalidValueError(f"{method} and {reference} have no problem and seed in common")
    ratios = {problem: float(both[0].mean() / both[1].mean()) for problem, both in pairs.items()}
    mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
    counts = [both.shape[1] for both in pairs.values()]
    return Relative(method, ratios, mean, _interval(list(pairs.values())), (min(counts), max(counts)))


def _pairs(results: Results, name: str, method: str, reference: str, problem: str) -> Array:
    """The statistic of both on their common seeds: (2, seeds)."""
    ours, theirs = results.of(problem, method), results.of(problem, reference)
    seeds = sorted(ours.keys() & theirs.keys())
    both = np.array([[statistic(runs[seed], name) for seed in seeds] for runs in (ours, theirs)])
    return both[:, ~np.isnan(both).any(axis=0)] if seeds else np.zeros((2, 0))


def _interval(pairs: list[Array]) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    logs = np.empty((len(pairs), DRAWS))
    for row, both in zip(logs, pairs, strict=True):
        pick = rng.integers(both.shape[1], size=(DRAWS, both.shape[1]))
        row[:] = np.log(both[0, pick].mean(-1) / both[1, pick].mean(-1))
    chosen = rng.integers(len(pairs), size=(DRAWS, len(pairs)))
    means = logs[chosen, np.arange(DRAWS)[:, None]].mean(axis=1)
    low, high = np.exp(np.percentile(means, [2.5, 97.5]))
    return float(low), float(high)


def relative_table(results: Results, name: str, reference: str, methods: list[str] | None = None) -> Table:
    """A method a row, a problem a column, then the geometric mean with its interval and the number of seeds."""
    if reference not in results.methods:
        raise UnknownNameError(f"there are no runs of {reference!r}", f"one of {', '.join(results.methods)}")
    shown = [one for one in methods or results.methods if one != reference]
    rows = tuple(_row(relative(results, name, method, reference), results.problems) for method in shown)
    columns = (*results.problems, "geometric mean (95 %)", "seeds")
    title = f"{title_of(name, results.goal)}, relative to {results.label(reference)}"
    return Table(title, columns, rows, note=NOTE).named(results.label)


def _row(one: Relative, problems: list[str]) -> TableRow:
    cells = [
        Entry(f"{one.ratios[problem]:.2f}", value=one.ratios[problem]) if problem in one.ratios else Entry("–")
        for problem in problems
    ]
    low, high = one.interval
    mean = Entry(f"{one.mean:.2f} ({low:.2f} … {high:.2f})", value=one.mean)
    fewest, most = one.seeds
    seeds = str(most) if fewest == most else f"{fewest}–{most}"
    return TableRow(one.method, (*cells, mean, Entry(seeds, value=seeds)))


RANK_ROW = "average rank"


def regret_table(results: Results, statistic: str, title_suffix: str = "") -> Table | None:
    """The table of one statistic, or None if no run has it."""
    cells = summarize(results, statistic)
    if not cells:
        return None
    methods = [method for method in results.methods if any((p, method) in cells for p in results.problems)]
    rows = [
        TableRow(problem, with_places(_entry(cells.get((problem, method))) for method in methods))
        for problem in results.problems
        if any((problem, method) in cells for method in methods)
    ]
    ranks = rank(cells, results.problems, methods)
    if ranks.problems:
        pairs = zip(ranks.mean, ranks.std, strict=True)
        means = (mean_entry(float(mean), float(std), len(ranks.problems)) for mean, std in pairs)
        rows.append(TableRow(RANK_ROW, with_places(means), apart=True))
    title = title_of(statistic, results.goal) + title_suffix
    return Table(title, tuple(methods), tuple(rows)).named(results.label)


def _entry(cell: Cell | None) -> Entry:
    return Entry() if cell is None else mean_entry(cell.mean, cell.std, cell.seeds)


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
            yield tests.table(results.label)


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
        [] if results.goal == "expected" else [f"methods were given, and regrets are measured under, {results.goal}"]
    )
    if results.failures:
        found.append(f"{len(results.failures)} replicates failed and are left out")
    if results.unfinished:
        found.append(f"{results.unfinished} replicates are unfinished and left out")
    if len(results.distinct("settings")) > 1:
        found.append("runs of different settings stand side by side: compare them with care")
    if len(results.distinct("versions")) > 1:
        found.append("runs of different versions of edrbo or its libraries stand side by side")
    found += [f"data: {data}" for data in results.distinct("data") if data]
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
