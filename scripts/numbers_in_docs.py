"""The numbers that research/comparison.md and research/journal.md quote: ``python scripts/numbers_in_docs.py``.

All of them from the committed runs. Tables of one file of runs are ``edrbo bench table research/results/….csv.gz``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from edrbo.bench import problems
from edrbo.bench.analysis.results import ReplicateRun, Results, load_results, look_name
from edrbo.bench.analysis.stats import rank, significance, statistic, summarize
from edrbo.bench.analysis.table import Entry, Table, TableRow, format_pair, with_places
from edrbo.bench.analysis.tables import regret_table, relative
from edrbo.records.settings import DEFAULT

RUNS = Path(__file__).parents[1] / "research" / "results"
PAPER = ("edrbo", "erbo", "wdrbo", "sbo-kde", "drbo-kde", "stableopt", "drbo-mmd", "drbo-mmd-minmax", "ucb")
SHIFTS = {
    "simple": "own distribution",
    "shift-down": "moved down",
    "shift-up": "moved up",
    "spread": "wider",
    "worst-case": "worst in the ball",
}
LOOKS, LAST, ROBUST = (50, 100), 200, "robust:0.1"
STUCK = 0.05  # of the range below the best
INSTEAD = (DEFAULT, "ucb", "tpe", "random")
IDENTIFY = "edrbo-identify"


def of_methods(results: Results, methods: Iterable[str]) -> Results:
    wanted = set(methods)
    return replace(results, runs=tuple(run for run in results.runs if run.method in wanted))


def share(results: Results, method: str, name: str) -> float:
    """The mean of a statistic over seeds as a share of each problem's range, averaged over problems: thousandths."""
    of_problems = [
        np.mean([statistic(run, name) for run in results.of(problem, method).values()])
        / problems.get(problem).value_range
        for problem in results.problems
    ]
    return 1000 * float(np.mean(of_problems))


def recommendations(results: Results) -> Table:
    """Regrets of the recommended design in changed worlds, best first."""
    found = {method: [share(results, method, kind) for kind in SHIFTS] for method in results.methods}
    rows = [(method, [*shares, float(np.mean(shares[1:]))]) for method, shares in found.items()]
    columns = (*SHIFTS.values(), "mean of the last four")
    return _shares("regret of the recommended design", columns, sorted(rows, key=lambda row: row[1][-1]))


def on_the_way(results: Results, planned: Mapping[int, Results]) -> Table:
    """Regrets of what is recommended after 50, 100 and 200 evaluations, for the mean and for the worst distribution.

    Those of ``edrbo-identify`` at 50 and 100 are of ``planned`` runs, which were told that there would be so many.
    """
    columns = [(goal, n) for goal in ("expected", ROBUST) for n in (*LOOKS, LAST)]
    rows = []
    for method in results.methods:
        shares = []
        for goal, n in columns:
            shares.append(at_look(results, planned, method, goal, n))
        rows.append((method, shares))
    heads = tuple(f"{'mean' if goal == 'expected' else 'worst distribution'}, {n}" for goal, n in columns)
    return _shares("regret of the recommendation", heads, sorted(rows, key=lambda row: row[1][2]))


def at_look(results: Results, planned: Mapping[int, Results], method: str, goal: str, n: int) -> float:
    """The share after ``n`` evaluations, of ``planned`` runs where ``edrbo-identify`` was told of so many."""
    runs = planned[n] if method == IDENTIFY and n in planned else results
    last = n == len(runs.runs[0].regret)
    return share(runs, method, "simple" if last and goal == "expected" else look_name(goal, n))


def given_the_goal(results: Results, planned: Mapping[int, Results]) -> Table:
    """Under the worst distribution: those that were given the goal, ``edrbo-identify`` that asked for the mean, and
    the least regret of the rivals, which ask by their own ideas and recommend by the goal."""
    operating = load_results(RUNS / "goal-told.csv.gz")
    reported = [
        (IDENTIFY, [share(load_results(RUNS / f"identify-robust-{n}.csv.gz"), IDENTIFY, "simple") for n in LOOKS])
    ]
    names = {n: look_name(ROBUST, n) if n < len(operating.runs[0].regret) else "simple" for n in LOOKS}
    for method in (DEFAULT, "edrbo"):
        reported.append((method, [share(operating, method, names[n]) for n in LOOKS]))
    asked = [share(planned[n], IDENTIFY, look_name(ROBUST, n)) for n in LOOKS]
    rivals = [method for method in results.methods if method not in (IDENTIFY, DEFAULT, "edrbo")]
    least = [min(share(results, method, look_name(ROBUST, n)) for method in rivals) for n in LOOKS]
    rows = [(f"{method}, given the goal", found) for method, found in reported]
    rows += [(f"{IDENTIFY}, asks for the mean", asked), ("the best of the rivals", least)]
    return _shares("regret under the worst distribution", tuple(f"worst distribution, {n}" for n in LOOKS), rows)


def twice(states: Sequence[tuple[Results, Mapping[int, Results]]]) -> Table:
    """The same seeds by two states of the code, the earlier one first: regret of what is recommended for the mean, and
    in how many runs of a hundred it is far off in the end. ``edrbo-identify`` at 50 and 100 as in ``on_the_way``.
    """
    rows = []
    for method in states[-1][0].methods:
        shares = []
        for n in (*LOOKS, LAST):
            for results, planned in states:
                shares.append(at_look(results, planned, method, "expected", n))
        off = [far_off(run) for results, _ in states for run in results.runs if run.method == method]
        rows.append((method, [*shares, 100 * float(np.mean(off))]))
    columns = [f"{n}, {when}" for n in (*LOOKS, LAST) for when in ("before", "now")]
    heads = (*columns, f"% of runs more than {STUCK:.0%} off")
    return _shares("regret of the recommendation", heads, sorted(rows, key=lambda row: row[1][4] + row[1][5]))


def far_off(run: ReplicateRun) -> bool:
    return statistic(run, "simple") > STUCK * problems.get(run.problem).value_range


def planned_runs(name: str) -> dict[int, Results]:
    """The runs of ``edrbo-identify`` that were told of fewer evaluations, by their number."""
    return {n: load_results(RUNS / f"{name}-{n}.csv.gz") for n in LOOKS}


def two_states(now: Results) -> list[tuple[Results, dict[int, Results]]]:
    before = load_results(RUNS / "regret-before.csv.gz"), planned_runs("identify-before")
    return [before, (now, planned_runs("identify"))]


def _shares(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, Sequence[float]]]) -> Table:
    """Thousandths of the range: a method a row, the best of each column marked."""
    entries = [[Entry(f"{value:.1f}", value=value) for value in values] for _, values in rows]
    marked = zip(*map(with_places, zip(*entries, strict=True)), strict=True)
    shown = [TableRow(name, tuple(row)) for (name, _), row in zip(rows, marked, strict=True)]
    return Table(f"{title}, thousandths of the range", columns, tuple(shown))


def instead(results: Results) -> Table:
    """What people would use instead: regret after the initial designs and of the recommendation relative to the
    default's, geometric means over problems, and seconds of all suggestions of a run."""
    rows = []
    for method in results.methods:
        cells = [Entry("1", value=1.0)] * 2
        if method != DEFAULT:
            cells = [_relative(results, name, method) for name in ("after", "simple")]
        seconds = float(np.mean([run.seconds.sum() for run in results.runs if run.method == method]))
        shares = Entry(f"{share(results, method, 'simple'):.1f}")
        rows.append(TableRow(method, (*cells, shares, Entry(f"{seconds:.1f}", value=seconds))))
    columns = ("cumulative regret, ratio", "simple regret, ratio", "simple regret, thousandths", "seconds a run")
    return Table(f"relative to {DEFAULT}", columns, tuple(rows))


def _relative(results: Results, name: str, method: str) -> Entry:
    one = relative(results, name, method, DEFAULT)
    return Entry(f"{one.mean:.2f} ({one.interval[0]:.2f} … {one.interval[1]:.2f})", value=one.mean)


def by_problem(results: Results, methods: Sequence[str], name: str) -> Table:
    cells = summarize(results, name)
    rows = tuple(
        TableRow(problem, tuple(_three_digits(cells[problem, method].mean) for method in methods))
        for problem in results.problems
    )
    return Table(f"{name}, mean over seeds", tuple(methods), rows)


def _three_digits(value: float) -> Entry:
    return Entry(format_pair(value, value)[0], value=value)


def comparisons(results: Results, method: str, name: str) -> None:
    found = significance(results, name, method)
    assert found is not None
    print(found.table().to_markdown())


def ratios(results: Results) -> None:
    for other in results.methods:
        if other != DEFAULT:
            print(f"after the initial designs, {DEFAULT} to {other}: {_ratio(results, other)}")


def _ratio(results: Results, other: str) -> str:
    one = relative(results, "after", DEFAULT, other)
    return f"{one.mean:.2f} ({one.interval[0]:.2f} … {one.interval[1]:.2f})"


def stuck(results: Results) -> None:
    for method in results.methods:
        runs = [run for run in results.runs if run.method == method]
        far = [run.problem for run in runs if far_off(run)]
        where = ", ".join(f"{name} {far.count(name)}" for name in dict.fromkeys(far))
        print(f"more than {STUCK:.0%} below the best, {method}: {len(far)} of {len(runs)} ({where})")


def seconds(results: Results) -> None:
    """Of all suggestions of a run, by method, and of the 810 runs of the paper."""
    means = {
        method: float(np.mean([run.seconds.sum() for run in results.runs if run.method == method]))
        for method in results.methods
    }
    print(", ".join(f"{method} {mean:.1f} s" for method, mean in means.items()))
    print(f"the paper's runs: {90 * sum(means[m] for m in PAPER if m in means) / 3600:.2f} h of one core\n")


def comparison(results: Results, planned: Mapping[int, Results]) -> None:
    """The tables of one comparison, and what the text says of it."""
    table = regret_table(results, "final")
    assert table is not None
    print(table.to_markdown())
    print(recommendations(results).to_markdown())
    print(on_the_way(results, planned).to_markdown())
    ratios(results)
    stuck(results)
    seconds(results)
    for method in ("edrbo", DEFAULT):
        nine = of_methods(results, {*(set(PAPER) - {"edrbo"}), method})
        for name in ("final", "mean"):
            ranks = rank(summarize(nine, name), nine.problems, nine.methods)
            print(f"average rank of {method} among nine, {name}: {ranks.mean[ranks.methods.index(method)]:.2f}")
    for name in ("final", "simple", "worst-case"):
        comparisons(results, DEFAULT, name)


def main() -> None:
    nine = load_results(RUNS / "regret.csv.gz")
    print("# Without noise\n")
    comparison(nine, planned_runs("identify"))
    print(given_the_goal(nine, planned_runs("identify")).to_markdown())
    print(twice(two_states(nine)).to_markdown())
    print("# With noise of 5 % of the range\n")
    comparison(load_results(RUNS / "noise.csv.gz"), planned_runs("identify-noise"))
    print("# What people would use instead\n")
    both = Results((*nine.runs, *load_results(RUNS / "instead.csv.gz").runs))
    for name in ("final", "simple"):
        print(by_problem(both, INSTEAD, name).to_markdown())
    rivals = load_results(RUNS / "rivals.csv.gz")
    print(instead(rivals).to_markdown())
    for name in ("final", "simple"):
        print(by_problem(rivals, rivals.methods, name).to_markdown())
    print("# Elsewhere\n")
    original = regret_table(load_results(RUNS / "original.csv.gz"), "final")
    assert original is not None
    print(original.to_markdown())
    stuck(load_results(RUNS / "default.csv.gz"))
    for words, file in (("the nine", "warped.csv.gz"), ("our own", "further.csv.gz")):
        one = relative(load_results(RUNS / file), "after", "edrbo-warped", "edrbo")
        low, high = one.interval
        print(f"edrbo-warped to edrbo after the initial designs, {words}: {one.mean:.2f} ({low:.2f} … {high:.2f})")
    for name in ("after", "simple"):
        comparisons(load_results(RUNS / "warped.csv.gz"), "edrbo-warped", name)


if __name__ == "__main__":
    main()
