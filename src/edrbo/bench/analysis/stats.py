"""Statistics of runs: cumulative regrets in two readings, ranks, paired tests, critical differences.

Lower is better throughout. With r_t the exact expected regret of evaluation t = 1, …, T and R_t = r_1 + … + r_t:

    final     R_T, the cumulative regret after the last evaluation
    after     R_T less the regret of the initial designs, which are the same for all methods
    mean      the mean of R_t over the steps after the initial designs; the paper's table shows this one
    simple    regret of the recommended design
    and the robust regrets of the recommended design (see :mod:`edrbo.bench.run.replicate`)
    GOAL@N    regret under GOAL of what was recommended under it after N evaluations, where that was looked at

Curves over evaluations have the mean over seeds and how well it is known. Whether a method is better than the others
or only luckier is said by paired tests on common seeds.

"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from edrbo.bench.analysis.results import AT, PUBLISHED, ReplicateRun, Results
from edrbo.bench.analysis.table import Entry, Table, TableRow
from edrbo.bench.problems.oracle.distributions import Array
from edrbo.errors import InvalidValueError, UnknownNameError
from edrbo.records.goals import parse_goal
from edrbo.records.settings import DEFAULT
from edrbo.streams import stream

Series = Callable[[ReplicateRun], Array]

WINDOW = 5  # instantaneous regrets are averaged over so many steps: single ones jump with the context
RESAMPLES = 1_000
IN_QUESTION = DEFAULT


@dataclass(frozen=True, eq=False)
class Curve:
    """Steps 1, …, T (T), the mean over seeds, and the ends of its 95 % interval (T each)."""

    steps: Array
    mean: Array
    low: Array
    high: Array


def curve_of(runs: Sequence[ReplicateRun], of: Series) -> Curve:
    """T is the length of the shortest run.

    The interval is that of the mean, by resampling seeds. It is above zero where the regrets are, so that it has a
    place on a log axis, where mean ± deviation has none.
    """
    series = [of(run) for run in runs]
    steps = min(map(len, series))
    table = np.stack([values[:steps] for values in series])
    low, high = np.quantile(_shares(len(table)) @ table, (0.025, 0.975), axis=0)
    return Curve(np.arange(1.0, steps + 1.0), table.mean(axis=0), low, high)


@cache
def _shares(seeds: int) -> Array:
    """How often each seed is drawn, as a share: RESAMPLES × seeds."""
    drawn = stream(0, "resampled seeds", seeds).multinomial(seeds, np.full(seeds, 1.0 / seeds), RESAMPLES)
    return np.asarray(drawn / seeds, dtype=np.float64)


def cumulative_regret(run: ReplicateRun) -> Array:
    return np.cumsum(run.regret)


def smoothed_regret(run: ReplicateRun) -> Array:
    """Mean of the last ``WINDOW`` regrets, of fewer at the beginning."""
    total = np.cumsum(run.regret)
    before = np.concatenate([np.zeros(WINDOW), total])[: len(total)]
    return np.asarray((total - before) / np.minimum(np.arange(1, len(total) + 1), WINDOW))


def suggestion_seconds(run: ReplicateRun) -> Array:
    return run.seconds


def in_question(results: Results, wanted: str = IN_QUESTION) -> str:
    """The method that a page or figure is about: the one that is wanted, if it was run."""
    return wanted if wanted in results.methods else results.methods[0]


def final_means(results: Results, problem: str) -> dict[str, float]:
    """The mean final cumulative regret of each method on a problem."""
    found = {method: list(results.of(problem, method).values()) for method in results.methods}
    return {method: float(np.mean([run.regret.sum() for run in runs])) for method, runs in found.items() if runs}


def best_rival(finals: dict[str, float], method: str) -> str | None:
    """The other method with the least regret; published runs are shown, but take no part in the contest."""
    others = [other for other in finals if other != method and PUBLISHED not in other]
    return min(others, key=finals.__getitem__, default=None)


def seeds_text(results: Results) -> str:
    """``10 seeds (100–109)``"""
    seeds = sorted({run.seed for run in results.runs})
    whole = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    listed = f"{seeds[0]}–{seeds[-1]}" if whole else ", ".join(map(str, seeds))
    return f"{len(seeds)} seed{'s' * (len(seeds) != 1)} ({listed})"


def days_text(results: Results) -> str:
    """The days on which the replicates were begun, as far as their journals are at hand."""
    days = sorted({str(header["started"])[:10] for header in results.headers if header.get("started")})
    if not days:
        return ""
    return f"run on {days[0]}" if len(days) == 1 else f"run from {days[0]} to {days[-1]}"


STATISTICS = {
    "final": "final cumulative regret",
    "after": "cumulative regret after the initial designs",
    "mean": "mean over steps of the cumulative regret (the paper's statistic)",
    "simple": "simple regret of the recommended design",
    "shift-down": "regret of the recommended design when contexts move down by 0.1",
    "shift-up": "regret of the recommended design when contexts move up by 0.1",
    "spread": "regret of the recommended design when contexts spread 1.5 times as far",
    "worst-case": "regret of the recommended design under the worst distribution within Wasserstein distance 0.1",
}


UNDER_GOAL = ("final", "after", "mean", "simple")  # the others are about the mean under another distribution


def _goal_title(goal: str) -> str:
    """In words; of a goal that a plugin brought to the runs, its text."""
    try:
        return parse_goal(goal).title()
    except UnknownNameError:
        return goal


def title_of(name: str, goal: str) -> str:
    """What a statistic of runs under ``goal`` is, in words."""
    if AT in name:
        under, _, evaluations = name.partition(AT)
        return f"simple regret after {evaluations} evaluations, under {under} ({_goal_title(under)})"
    if goal == "expected" or name not in UNDER_GOAL:
        return STATISTICS[name]
    return f"{STATISTICS[name]}, under {goal} ({_goal_title(goal)})"


def statistic(run: ReplicateRun, name: str) -> float:
    """One number of a run; NaN if it is not known."""
    if name not in STATISTICS and AT not in name:
        raise UnknownNameError(f"no statistic is called {name!r}", f"one of {', '.join(STATISTICS)}")
    cumulative = np.cumsum(run.regret)
    if name == "final":
        return float(cumulative[-1])
    if name == "after":
        return float(run.regret[run.initial :].sum())
    if name == "mean":
        after = cumulative[run.initial :] if len(cumulative) > run.initial else cumulative
        return float(after.mean())
    return run.recommended.get(name, float("nan"))


@dataclass(frozen=True)
class Cell:
    """Mean and standard deviation (ddof 1; 0 for one seed) over ``seeds`` runs."""

    mean: float
    std: float
    seeds: int


def summarize(results: Results, name: str) -> dict[tuple[str, str], Cell]:
    """A cell for every (problem, method) that has runs with this statistic."""
    cells = {}
    for problem in results.problems:
        for method in results.methods:
            values = np.array([statistic(run, name) for run in results.of(problem, method).values()])
            values = values[~np.isnan(values)]
            if len(values):
                spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
                cells[problem, method] = Cell(float(values.mean()), spread, len(values))
    return cells


@dataclass(frozen=True)
class Ranks:
    """Ranks of ``methods`` (columns) on the ``problems`` (rows) that all of them have run."""

    methods: list[str]
    problems: list[str]
    table: Array

    @property
    def mean(self) -> Array:
        return np.asarray(self.table.mean(axis=0))

    @property
    def std(self) -> Array:
        return np.asarray(self.table.std(axis=0, ddof=1) if len(self.problems) > 1 else np.zeros(len(self.methods)))


def rank(cells: dict[tuple[str, str], Cell], problems: list[str], methods: list[str]) -> Ranks:
    """Rank methods by their means on each problem; ties share the mean of their ranks."""
    from scipy.stats import rankdata

    methods = [method for method in methods if any((problem, method) in cells for problem in problems)]
    common = [problem for problem in problems if all((problem, method) in cells for method in methods)]
    means = np.array([[cells[problem, method].mean for method in methods] for problem in common])
    ranks = rankdata(means.reshape(len(common), len(methods)), axis=1) if common else means.reshape(0, len(methods))
    return Ranks(methods, common, np.asarray(ranks, dtype=np.float64))


@dataclass(frozen=True)
class PairedComparison:
    """``method`` against ``other`` on ``pairs`` common seeds.

    ``ratio`` is the median of other/method (above 1: ``method`` is better); ``p`` of the two-sided Wilcoxon signed-rank
    test of the paired log ratios, ``holm`` after Holm's correction over all others. ``p_of_problems`` is that of the
    same test with one number a problem, the median of its log ratios: NaN for one problem.
    """

    method: str
    other: str
    pairs: int
    ratio: float
    p: float
    p_of_problems: float
    holm: float


def compare(results: Results, name: str, method: str, problem: str | None = None) -> list[PairedComparison]:
    """``method`` against every other, on one problem or pooled over all.

    Log ratios make problems of different scales comparable; for a test of signs and ranks within one problem they are
    as good as differences.
    """
    if method not in results.methods:
        raise UnknownNameError(f"there are no runs of {method!r}", f"one of {', '.join(results.methods)}")
    others = [other for other in results.methods if other != method]
    found = []
    for other in others:
        of_problems = [
            ratios
            for where in (results.problems if problem is None else [problem])
            if len(ratios := _log_ratios(results, name, method, other, where))
        ]
        if of_problems:
            ratios = np.sort(np.concatenate(of_problems))
            medians = np.array([np.median(one) for one in of_problems])
            p_of_problems = _wilcoxon(medians) if len(medians) > 1 else float("nan")
            found.append((other, len(ratios), float(np.exp(np.median(ratios))), _wilcoxon(ratios), p_of_problems))
    corrected = holm(np.array([row[3] for row in found]))
    return [PairedComparison(method, *row, holm=float(h)) for row, h in zip(found, corrected, strict=True)]


def _log_ratios(results: Results, name: str, method: str, other: str, problem: str) -> Array:
    """log(other/method) for every seed that both have."""
    tiny = np.finfo(float).tiny  # a regret of zero is a tie with zero, and infinitely better than anything else
    ours, theirs = results.of(problem, method), results.of(problem, other)
    ratios = []
    for seed in sorted(ours.keys() & theirs.keys()):
        a, b = statistic(ours[seed], name), statistic(theirs[seed], name)
        if not (np.isnan(a) or np.isnan(b)):
            ratios.append(np.log(max(b, tiny)) - np.log(max(a, tiny)))
    return np.array(ratios)


def _wilcoxon(differences: Array) -> float:
    """Two-sided p value; 1 when there is no difference at all."""
    from scipy.stats import wilcoxon

    return float(wilcoxon(differences).pvalue) if (differences != 0).any() else 1.0


def holm(p: Array) -> Array:
    """Holm's step-down correction: the smallest p times m, the next times m − 1, …, made monotone."""
    m = len(p)
    order = np.argsort(p, kind="stable")
    steps = np.minimum(1.0, np.maximum.accumulate(p[order] * (m - np.arange(m))))
    corrected = np.empty(m)
    corrected[order] = steps
    return corrected


@dataclass(frozen=True)
class CriticalDifference:
    """Friedman's test over problems, and the difference of average ranks that Nemenyi's test calls significant."""

    friedman_p: float
    difference: float
    alpha: float


def critical_difference(ranks: Ranks, alpha: float = 0.05) -> CriticalDifference:
    """CD = q_α √(k(k+1)/(6N)), with q_α the studentized range of k groups and infinite freedom, over √2."""
    from scipy.stats import friedmanchisquare, studentized_range

    n, k = ranks.table.shape
    if n < 2 or k < 3:
        raise InvalidValueError(
            f"{k} methods on {n} common problems are too few for critical differences",
            "three methods on two problems are needed",
        )
    q = float(studentized_range.ppf(1 - alpha, k, np.inf)) / np.sqrt(2)
    same = bool((ranks.table == ranks.table[:, :1]).all())
    p = 1.0 if same else float(friedmanchisquare(*ranks.table.T).pvalue)
    return CriticalDifference(p, float(q * np.sqrt(k * (k + 1) / (6 * n))), alpha)


def cliques(ranks: Ranks, difference: float) -> list[list[str]]:
    """Maximal groups of neighbors in rank that do not differ significantly; groups of one are left out."""
    order = np.argsort(ranks.mean, kind="stable")
    means = ranks.mean[order]
    groups: list[tuple[int, int]] = []
    for first in range(len(order)):
        last = int(np.searchsorted(means, means[first] + difference, side="right")) - 1
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return [[ranks.methods[i] for i in order[first : last + 1]] for first, last in groups]


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
    pooled: list[PairedComparison]
    by_problem: dict[str, list[PairedComparison]]

    def counts(self, other: str) -> tuple[int, int, int]:
        """Problems where ``method`` is significantly better, not different, significantly worse."""
        found = [c for row in self.by_problem.values() for c in row if c.other == other]
        better = sum(c.holm < SIGNIFICANT and c.ratio > 1 for c in found)
        worse = sum(c.holm < SIGNIFICANT and c.ratio < 1 for c in found)
        return better, len(found) - better - worse, worse

    def table(self, label: Callable[[str], str] = str) -> Table:
        """A row for each other method; ``label`` says what methods are called."""
        rows = tuple(TableRow(label(one.other), self._entries(one)) for one in self.pooled)
        return Table(self.title, COLUMNS, rows, corner=f"{label(self.method)} against", note=NOTE)

    def _entries(self, one: PairedComparison) -> tuple[Entry, ...]:
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
