"""The runs of ``goals_evidence.py``, judged by the exact oracles.

    python research/goals_tables.py collect RUNS research/results/goals-recommended.csv.gz
    OMP_NUM_THREADS=1 python research/goals_tables.py judge research/results/goals-recommended.csv.gz FILE.csv
    python research/goals_tables.py show research/results/goals.csv [--seeds 3:10]
    python research/goals_tables.py turns research/results/goal-turns.csv [--seeds 0:3]

``collect`` keeps of every run the recommended designs, a row each: problem, arm, seed, ``by`` (the goal that
recommended it) and the coded design. ``judge`` gives each its regret under the goals and in three changed worlds
(docs/benchmark.md) as shares of the ranges over designs; what no table needs is left empty. Rows that are in FILE.csv
are not made again. The arm ``oracle`` is the design that is truly best, on average or by a goal: what giving a goal can
bring, and what it costs in worlds that it is not meant for.

``show`` prints the tables of docs/goals.md: with other methods on seeds that all problems and arms have, of edrbo alone
on those that all problems have of it. A problem and a goal count as the same where the means over seeds differ by less
than a thousandth of the range.

``turns`` prints the table of the journal about asking for the mean in every second step: of runs ``in turn`` the regret
under their goal, beside that of the same seeds when it was asked for ``alone`` and of ``only the mean``.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from arguments import EVERYTHING, seed_range
from goals_evidence import ARMS, GOALS, METHODS, goal_of
from kept_runs import add
from rich.progress import track

from edrbo.bench import problems
from edrbo.bench.problems.oracle.goals import goal_optimum, goal_range, goal_regret
from edrbo.bench.problems.problem import Problem
from edrbo.bench.run.replicate import changed_worlds
from edrbo.records.goals import parse_goal

WORLDS = ("shift-down", "shift-up", "spread")
WORLDLY = ("expected", "robust")  # goals whose designs are judged in them
KEYS = ("problem", "arm", "seed", "by")
SAME, MUCH = 1e-3, 5e-3  # of the range: no difference, and something that can be gained
ORACLE = "oracle"
Rows = list[dict[str, str]]


def collect(runs: Path, file: Path) -> None:
    """Of the seeds that all problems have of edrbo."""
    found = defaultdict(list)
    for path in sorted(runs.glob("*/*/*.json"), key=lambda path: (int(path.stem), path)):
        name, arm, seed = path.parts[-3], path.parts[-2], path.stem
        for by, x in json.loads(path.read_text())["recommended"].items():
            found[seed].append((name, arm, seed, by, " ".join(f"{part:.7g}" for part in x)))
    with gzip.GzipFile(file, "wb", mtime=0) as packed:
        rows = [row for seed in found if _whole({row[:4] for row in found[seed]}, seed, GOALS) for row in found[seed]]
        packed.write("\n".join(map(",".join, [(*KEYS, "x"), *rows])).encode())


def asked_of(arm: str) -> tuple[str, ...]:
    """The goals a run's data are asked for a design by."""
    return GOALS if arm in ("expected", *METHODS) else (arm,)


def _whole(found: set[tuple[str, ...]], seed: str, arms: tuple[str, ...]) -> bool:
    return found >= {(name, arm, seed, by) for name in EVERYTHING for arm in arms for by in asked_of(arm)}


def judge(recommended: Path, file: Path) -> None:
    done = {tuple(row[key] for key in KEYS) for row in (_read(file) if file.exists() else [])}
    designs = {(name, ORACLE, "", by): None for name in EVERYTHING for by in WORLDLY}
    designs |= {tuple(row[key] for key in KEYS): np.array(row["x"].split(), float) for row in _read(recommended)}
    left = sorted((key for key in designs if key not in done), key=lambda key: EVERYTHING.index(key[0]))
    for key in track(left, f"{len(left)} designs"):  # problem by problem, whose optima are found once
        problem, design = problems.get(key[0]), designs[key]
        x = truly_best(problem, key[3]) if design is None else design
        numbers = {under: f"{value:.4g}" for under, value in regrets(problem, x, key[3])}
        add(file, (*KEYS, *GOALS, *WORLDS), {**dict(zip(KEYS, key, strict=True)), **numbers})


def truly_best(problem: Problem, by: str) -> np.ndarray:
    """The design (d_x,) that is best under a goal, by the oracle."""
    return problem.x_star if by == "expected" else goal_optimum(problem, parse_goal(goal_of(by, problem)))[0]


def regrets(problem: Problem, x: np.ndarray, by: str) -> Iterator[tuple[str, float]]:
    """Of one design (d_x,), as shares of ranges: under the goal that recommended it, of the mean's under all."""
    for name in GOALS if by == "expected" else (by,):
        goal = parse_goal(goal_of(name, problem))
        yield name, float(goal_regret(problem, goal, x)) / goal_range(problem, goal)
    if by in WORLDLY:
        for name, changed in changed_worlds(problem).items():
            yield name, float(changed.regret(x)) / changed.value_range


def _read(file: Path) -> Rows:
    with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
        return list(csv.DictReader(lines))


class Table:
    """Regrets by problem and seed, of seeds that all problems have of these ``arms``."""

    def __init__(self, rows: Rows, wanted: range | None, arms: tuple[str, ...]) -> None:
        self._found = {tuple(row[key] for key in KEYS): row for row in rows}
        there = sorted({int(row["seed"]) for row in rows if row["seed"]})
        whole = [seed for seed in there if _whole(set(self._found), str(seed), arms)]
        self.seeds = [seed for seed in whole if wanted is None or seed in wanted]
        self.gain = {goal: self.truly("expected", goal) for goal in GOALS}

    def of(self, arm: str, by: str, under: str) -> np.ndarray:
        """Problems × seeds, in thousandths of the range."""
        return self._column(arm, by, under, [str(seed) for seed in self.seeds])

    def truly(self, by: str, under: str) -> np.ndarray:
        """The same of the design that is truly best by a goal (problems)."""
        return self._column(ORACLE, by, under, [""])[:, 0]

    def _column(self, arm: str, by: str, under: str, seeds: list[str]) -> np.ndarray:
        return 1e3 * np.array([[float(self._found[n, arm, s, by][under]) for s in seeds] for n in EVERYTHING])


def show(rows: Rows, wanted: range | None) -> None:
    missing = {(name, ORACLE, "", by) for name in EVERYTHING for by in WORLDLY} - {
        tuple(row[key] for key in KEYS) for row in rows
    }
    if missing:
        raise SystemExit(f"{len(missing)} of the truly best designs are not judged yet: run judge to its end first")
    everyone, own = (Table(rows, wanted, arms) for arms in (ARMS, GOALS))
    print(f"{len(EVERYTHING)} problems, 100 evaluations; thousandths of the range of each problem's goal or world.")
    if everyone.seeds:
        _methods(everyone)
        _worlds(everyone)
    _paired(own)
    _problems(own)


def _methods(table: Table) -> None:
    print(f"\nSeeds {_numbers(table)}: mean regret over problems ± standard error over seeds. Methods recommend by the")
    print("mean / by the goal.\n")
    print("| goal | goal given | only the mean | mean asked, goal recommended | " + " | ".join(METHODS) + " |")
    print("|---|" + "---:|" * (3 + len(METHODS)))
    for goal in GOALS:
        cells = [_shown(table.of(*arm, goal)) for arm in ((goal, goal), ("expected", "expected"), ("expected", goal))]
        cells += [" / ".join(_shown(table.of(m, by, goal)) for by in ("expected", goal)) for m in METHODS]
        print(f"| {goal} | " + " | ".join(cells) + " |")


def _problems(table: Table) -> None:
    print(
        f"\nSeeds {_numbers(table)}, by problem: mean over seeds, goal given / only the mean (the truly best design on"
    )
    print("average):\n")
    print("| problem | " + " | ".join(GOALS[1:]) + " |\n|---|" + "---:|" * (len(GOALS) - 1))
    both = {goal: (table.of(goal, goal, goal), table.of("expected", "expected", goal)) for goal in GOALS[1:]}
    for i, name in enumerate(EVERYTHING):
        cells = [f"{a[i].mean():.1f} / {b[i].mean():.1f} ({table.gain[goal][i]:.1f})" for goal, (a, b) in both.items()]
        print(f"| {name} | " + " | ".join(cells) + " |")


def _paired(table: Table) -> None:
    print(
        f"\nSeeds {_numbers(table)}: regret of only the mean less that of the goal given, paired by problem and seed."
    )
    print(
        f"Mean ± standard error over seeds; problems in which giving it is better, the same (within {1e3 * SAME:g}) or"
    )
    print(f"worse; and of those where the best design on average has a regret above {1e3 * MUCH:g} under the goal:\n")
    print("| goal | gain | better | same | worse | something to gain: better | same | worse |\n|---|" + "---:|" * 7)
    total = np.zeros(6, dtype=int)
    for goal in GOALS[1:]:
        gain = table.of("expected", "expected", goal) - table.of(goal, goal, goal)
        cells = [*counts(gain.mean(1)), *counts(gain.mean(1)[table.gain[goal] > 1e3 * MUCH])]
        total += np.array(cells)
        print(f"| {goal} | {_shown(gain)} | " + " | ".join(map(str, cells)) + " |")
    print("| all | | " + " | ".join(map(str, total)) + " |")


def counts(gain: np.ndarray) -> tuple[int, int, int]:
    """Of problems in which so much is gained, in thousandths: better, the same and worse."""
    better, worse = int((gain > 1e3 * SAME).sum()), int((gain < -1e3 * SAME).sum())
    return better, len(gain) - better - worse, worse


def _worlds(table: Table) -> None:
    print(f"\nSeeds {_numbers(table)}, when the world changes: mean over problems ± standard error over seeds.\n")
    print(
        "| | " + " | ".join((*WORLDS, "worst distribution in the ball", "mean of the four")) + " |\n|---|" + "---:|" * 5
    )
    for some, count in (("", len(EVERYTHING)), (", on the paper's nine", len(problems.names()))):
        for by in WORLDLY:
            found = [table.truly(by, world)[:count].mean() for world in (*WORLDS, "robust")]
            cells = " | ".join(f"{one:.1f}" for one in (*found, np.mean(found)))
            print(f"| the truly best design by {by}{some} | {cells} |")
    arms = (("robust", "robust"), ("expected", "expected"), ("expected", "robust"))
    for arm, by in (*arms, *((m, g) for g in WORLDLY for m in METHODS)):
        found = [table.of(arm, by, world) for world in (*WORLDS, "robust")]
        name = f"edrbo, asks by {arm}" if arm in GOALS else arm
        cells = " | ".join(map(_shown, (*found, np.mean(found, axis=0))))
        print(f"| {name}, recommends by {by} | {cells} |")


def turns(rows: Rows, wanted: range | None) -> None:
    rows = [row for row in rows if wanted is None or int(row["seed"]) in wanted]
    kinds = ("in turn", "goal alone", "only the mean")
    print(
        "| goal | " + " | ".join(kinds) + " | in turn beside goal alone: better | same | worse |\n|---|" + "---:|" * 6
    )
    for goal in dict.fromkeys(row["goal"] for row in rows):
        names = sorted({row["problem"] for row in rows if row["goal"] == goal})
        means = {
            kind: np.array(
                [np.mean([1e3 * float(r[kind]) for r in rows if (r["goal"], r["problem"]) == (goal, n)]) for n in names]
            )
            for kind in kinds
        }
        beside = counts(means["goal alone"] - means["in turn"])
        cells = [f"{means[kind].mean():.1f}" for kind in kinds] + [str(count) for count in beside]
        print(f"| {goal} | " + " | ".join(cells) + " |")


def _numbers(table: Table) -> str:
    return ", ".join(map(str, table.seeds))


def _shown(values: np.ndarray) -> str:
    """Mean over problems (rows) of the mean over seeds, with its standard error over seeds."""
    by_seed = values.mean(0)
    error = by_seed.std(ddof=1) / np.sqrt(len(by_seed)) if len(by_seed) > 1 else np.nan
    return f"{by_seed.mean():.1f} ± {error:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, source in (("collect", "runs"), ("judge", "recommended"), ("show", None), ("turns", None)):
        command = commands.add_parser(name)
        if source is not None:
            command.add_argument("source", type=Path, metavar=source)
        else:
            command.add_argument("--seeds", type=seed_range)
        command.add_argument("file", type=Path)
    options = parser.parse_args()
    if options.command == "show":
        show(_read(options.file), options.seeds)
    elif options.command == "turns":
        turns(_read(options.file), options.seeds)
    else:
        (collect if options.command == "collect" else judge)(options.source, options.file)


if __name__ == "__main__":
    main()
