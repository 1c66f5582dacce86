"""Is a method better than the others, or only luckier? Paired tests on common seeds, as a table of text."""

from __future__ import annotations

from dataclasses import dataclass

from edrbo.bench.analysis.results import Results
from edrbo.bench.analysis.stats import STATISTICS, Comparison, compare

SIGNIFICANT = 0.05


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

    def lines(self) -> list[list[str]]:
        """Heading and rows."""
        head = [f"{self.method} against", "pairs", "ratio", "p (Holm)", "better/same/worse"]
        rows = [
            [c.other, str(c.pairs), f"{c.ratio:.2f}", f"{c.holm:.2g}", "/".join(map(str, self.counts(c.other)))]
            for c in self.pooled
        ]
        return [head, *rows]


def significance(results: Results, statistic: str, method: str) -> Significance | None:
    """``method`` against the others; None if nothing can be paired."""
    pooled = compare(results, statistic, method)
    if not pooled:
        return None
    by_problem = {problem: compare(results, statistic, method, problem) for problem in results.problems}
    return Significance(f"{STATISTICS[statistic]}: paired Wilcoxon tests", method, pooled, by_problem)
