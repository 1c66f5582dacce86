"""How large a method's regret is relative to another's: ratios of means by problem, and their geometric mean.

The interval is a bootstrap over problems, and over the seeds within each: it says how far the geometric mean would move
with other problems like these and other seeds. Resampling seeds alone would speak of these problems only, and be far
too narrow with two or three of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edrbo.bench.analysis.results import Results
from edrbo.bench.analysis.stats import statistic, title_of
from edrbo.bench.analysis.table import Entry, Row, Table
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
    return Table(f"{title_of(name, results.goal)}, relative to {reference}", columns, rows, note=NOTE)


def _row(one: Relative, problems: list[str]) -> Row:
    cells = [
        Entry(f"{one.ratios[problem]:.2f}", value=one.ratios[problem]) if problem in one.ratios else Entry("–")
        for problem in problems
    ]
    low, high = one.interval
    mean = Entry(f"{one.mean:.2f} ({low:.2f} … {high:.2f})", value=one.mean)
    fewest, most = one.seeds
    seeds = str(most) if fewest == most else f"{fewest}–{most}"
    return Row(one.method, (*cells, mean, Entry(seeds, value=seeds)))
