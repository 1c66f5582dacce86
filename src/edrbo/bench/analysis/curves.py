"""Curves over evaluations: the mean over seeds, how well it is known, and which curves a reader looks for first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from edrbo.bench.analysis.results import PUBLISHED, ReplicateRun, Results
from edrbo.bench.problems.oracle.distributions import Array
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
