"""Statistics of runs: cumulative regrets in two readings, ranks, paired tests, critical differences.

Lower is better throughout. With r_t the exact expected regret of evaluation t = 1, …, T and R_t = r_1 + … + r_t:

    final     R_T, the cumulative regret after the last evaluation
    after     R_T less the regret of the initial designs, which are the same for all methods
    mean      the mean of R_t over the steps after the initial designs; the paper's table shows this one
    simple    regret of the recommended design
    and the robust regrets of the recommended design (see :mod:`edrbo.bench.run.judge`)
    GOAL@N    regret under GOAL of what was recommended under it after N evaluations, where that was looked at
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edrbo.bench.analysis.results import AT, ReplicateRun, Results
from edrbo.bench.problems.oracle.distributions import Array
from edrbo.errors import InvalidValueError, UnknownNameError
from edrbo.records.goals import parse_goal

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


def title_of(name: str, goal: str) -> str:
    """What a statistic of runs under ``goal`` is, in words."""
    if AT in name:
        under, _, evaluations = name.partition(AT)
        return f"simple regret after {evaluations} evaluations, under {under} ({parse_goal(under).title()})"
    if goal == "expected" or name not in UNDER_GOAL:
        return STATISTICS[name]
    return f"{STATISTICS[name]}, under {goal} ({parse_goal(goal).title()})"


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
class Comparison:
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


def compare(results: Results, name: str, method: str, problem: str | None = None) -> list[Comparison]:
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
    return [Comparison(method, *row, holm=float(h)) for row, h in zip(found, corrected, strict=True)]


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
