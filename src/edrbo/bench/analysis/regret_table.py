"""The table of a statistic: a problem a row, a method a column, mean ± standard deviation, average ranks below.

Published runs have a table of their own, with their own ranks.
"""

from __future__ import annotations

from edrbo.bench.analysis.results import Results
from edrbo.bench.analysis.stats import Cell, rank, summarize, title_of
from edrbo.bench.analysis.table import Entry, Row, Table, mean_entry, with_places

RANK_ROW = "average rank"


def regret_table(results: Results, statistic: str, title_suffix: str = "") -> Table | None:
    """The table of one statistic, or None if no run has it."""
    cells = summarize(results, statistic)
    if not cells:
        return None
    methods = [method for method in results.methods if any((p, method) in cells for p in results.problems)]
    rows = [
        Row(problem, with_places(_entry(cells.get((problem, method))) for method in methods))
        for problem in results.problems
        if any((problem, method) in cells for method in methods)
    ]
    ranks = rank(cells, results.problems, methods)
    if ranks.problems:
        pairs = zip(ranks.mean, ranks.std, strict=True)
        means = (mean_entry(float(mean), float(std), len(ranks.problems)) for mean, std in pairs)
        rows.append(Row(RANK_ROW, with_places(means), apart=True))
    return Table(title_of(statistic, results.goal) + title_suffix, tuple(methods), tuple(rows))


def _entry(cell: Cell | None) -> Entry:
    return Entry() if cell is None else mean_entry(cell.mean, cell.std, cell.seeds)
