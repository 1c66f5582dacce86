"""The numbers that docs/results/README.md and docs/why.md quote: ``python scripts/numbers_in_docs.py``.

All of them from the committed runs. Tables of one file of runs are ``edrbo bench table docs/results/….csv.gz``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from edrbo.bench import problems
from edrbo.bench.analysis.regret_table import regret_table
from edrbo.bench.analysis.relative import relative
from edrbo.bench.analysis.results import Results, load_results
from edrbo.bench.analysis.significance import significance
from edrbo.bench.analysis.stats import rank, statistic, summarize
from edrbo.bench.analysis.table import Entry, Row, Table, format_pair
from edrbo.records.settings import DEFAULT

RUNS = Path(__file__).parents[1] / "docs" / "results"
PAPER = ("edrbo", "erbo", "wdrbo", "sbo-kde", "drbo-kde", "stableopt", "drbo-mmd", "drbo-mmd-minmax", "ucb")
SHIFTS = {
    "simple": "own law",
    "shift-down": "moved down",
    "shift-up": "moved up",
    "spread": "wider",
    "worst-case": "worst in the ball",
}


def only_methods(results: Results, methods: tuple[str, ...]) -> Results:
    return Results(tuple(run for run in results.runs if run.method in methods))


def recommendations(results: Results) -> Table:
    """Regrets of the recommended design as shares of each problem's range, averaged over problems, in thousandths."""
    ranges = {name: problems.get(name).value_range for name in results.problems}
    rows = []
    for method in results.methods:
        shares = []
        for kind in SHIFTS:
            of_problems = [
                np.mean([statistic(run, kind) for run in results.of(name, method).values()]) / ranges[name]
                for name in results.problems
            ]
            shares.append(1000 * float(np.mean(of_problems)))
        rows.append((method, [*shares, float(np.mean(shares[1:]))]))
    rows.sort(key=lambda row: row[1][-1])
    columns = (*SHIFTS.values(), "mean of the last four")
    entries = [Row(name, tuple(Entry(f"{value:.1f}", value=value) for value in values)) for name, values in rows]
    return Table("regret of the recommended design, thousandths of the range", columns, tuple(entries))


def instead(results: Results) -> Table:
    """Final cumulative regret, and simple regret of the recommendation, of edrbo and what people would use instead."""
    methods = ("edrbo", "ucb", "tpe", "random")
    both = [summarize(results, name) for name in ("final", "simple")]
    rows = tuple(
        Row(name, tuple(_three_digits(cells[name, method].mean) for cells in both for method in methods))
        for name in results.problems
    )
    columns = (*methods, *(f"recommended: {method}" for method in methods))
    return Table("final cumulative regret, and simple regret of the recommended design", columns, rows)


def _three_digits(value: float) -> Entry:
    return Entry(format_pair(value, value)[0], value=value)


def comparisons(results: Results, method: str, name: str) -> None:
    found = significance(results, name, method)
    assert found is not None
    print(found.table().to_markdown())


def default_method(results: Results) -> None:
    """The default beside the paper's nine, whose runs are older, and what it recommends on all seventeen problems."""
    own = load_results(RUNS / "default.csv.gz")
    nine = Results(tuple(run for run in (*own.runs, *results.runs) if run.problem in problems.names()))
    print("## The default\n")
    print(regret_table(only_methods(nine, (DEFAULT, *PAPER)), "final").to_markdown())
    print(recommendations(nine).to_markdown())
    for other in (*PAPER, "edrbo-warped"):
        print(f"after the initial designs, {DEFAULT} to {other}: {_ratio(nine, other)}")
    further = Results(tuple(run for run in own.runs if run.problem in problems.further_names()))
    if "edrbo" in further.methods:
        print(f"the same on our own problems, to edrbo: {_ratio(further, 'edrbo')}")
    for words, runs in (("the nine", nine), ("our own", further)):
        for method in runs.methods:
            shares = [
                statistic(run, "simple") / problems.get(run.problem).value_range
                for run in runs.runs
                if run.method == method
            ]
            print(f"more than 5 % below the best, {words}, {method}: {sum(s > 0.05 for s in shares)} of {len(shares)}")


def _ratio(results: Results, other: str) -> str:
    one = relative(results, "after", DEFAULT, other)
    return f"{one.mean:.2f} ({one.interval[0]:.2f} … {one.interval[1]:.2f})"


def main() -> None:
    results = load_results(RUNS / "regret.csv.gz")
    default_method(results)
    nine = only_methods(results, PAPER)
    for name in ("final", "mean"):
        ranks = rank(summarize(nine, name), nine.problems, nine.methods)
        print(f"average rank of edrbo among the paper's nine, {name}: {ranks.mean[ranks.methods.index('edrbo')]:.2f}\n")
    print(recommendations(results).to_markdown())
    print(instead(Results((*results.runs, *load_results(RUNS / "instead.csv.gz").runs))).to_markdown())
    print("## edrbo among the paper's nine\n")
    for name in ("final", "simple", "worst-case"):
        comparisons(nine, "edrbo", name)
    print("## edrbo-warped against edrbo, in six readings\n")
    pair = only_methods(results, ("edrbo", "edrbo-warped"))
    for name in ("final", "after", "mean", "simple", "shift-up", "worst-case"):
        comparisons(pair, "edrbo-warped", name)
    for words, runs in (("the nine", pair), ("our own", load_results(RUNS / "further.csv.gz"))):
        one = relative(runs, "after", "edrbo-warped", "edrbo")
        low, high = one.interval
        print(f"after the initial designs, ratio of means, {words}: {one.mean:.2f} ({low:.2f} … {high:.2f})")
        print("  " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in one.ratios.items()))


if __name__ == "__main__":
    main()
