"""Is a method better than the others, or only luckier? Paired tests on common seeds, as a table."""

from __future__ import annotations

from dataclasses import dataclass

from edrbo.bench.analysis.results import Results
from edrbo.bench.analysis.stats import Comparison, compare, title_of
from edrbo.bench.analysis.table import Entry, Row, Table

SIGNIFICANT = 0.05
COLUMNS = ("pairs", "ratio", "p of all pairs (Holm)", "p of problems", "problems better/same/worse")
NOTE = (
    "A ratio above 1 says that the other method's number is larger (the median over pairs). "
    "The test of all pairs speaks of these problems alone: with other seeds the difference would show again, on a new "
    "problem perhaps not. The test of problems takes one number a problem and so speaks of problems like these; with "
    "nine it cannot fall below 0.004. The last column counts the problems on which the difference is significant on "
    f"its own (Holm, {SIGNIFICANT:g})."
)


@dataclass(frozen=True)
class Significance:
    """Comparisons of ``method`` with each other one: pooled over problems, and on every problem.

    Holm's correction is over the other methods, within the pooled comparison and within each problem.
    """

    title: str
    method: str
    pooled: list[Comparison]
    by_problem: dict[str, list[Comparison]]

    def counts(self, other: str) -> tuple[int, int, int]:
        """Problems where ``method`` is significantly better, not different, significantly worse."""
        found = [c for row in self.by_problem.values() for c in row if c.other == other]
        better = sum(c.holm < SIGNIFICANT and c.ratio > 1 for c in found)
        worse = sum(c.holm < SIGNIFICANT and c.ratio < 1 for c in found)
        return better, len(found) - better - worse, worse

    def table(self) -> Table:
        rows = tuple(Row(one.other, self._entries(one)) for one in self.pooled)
        return Table(self.title, COLUMNS, rows, corner=f"{self.method} against", note=NOTE)

    def _entries(self, one: Comparison) -> tuple[Entry, ...]:
        counts = "/".join(map(str, self.counts(one.other)))
        of_problems = one.p_of_problems
        return (
            Entry(str(one.pairs), value=one.pairs),
            Entry(f"{one.ratio:.2f}", value=one.ratio),
            Entry(f"{one.holm:.2g}", value=one.holm),
            Entry() if of_problems != of_problems else Entry(f"{of_problems:.2g}", value=of_problems),
            Entry(counts, value=counts),
        )


def significance(results: Results, statistic: str, method: str) -> Significance | None:
    """``method`` against the others; None if nothing can be paired."""
    pooled = compare(results, statistic, method)
    if not pooled:
        return None
    by_problem = {problem: compare(results, statistic, method, problem) for problem in results.problems}
    return Significance(f"{title_of(statistic, results.goal)}: paired Wilcoxon tests", method, pooled, by_problem)
