"""The runs of ``goals_evidence.py``, judged by the exact oracles.

    OMP_NUM_THREADS=1 nice -n 15 python benchmarks/goals_tables.py judge RUNS docs/results/goals.csv
    python benchmarks/goals_tables.py show docs/results/goals.csv [--seeds 5:10]

``judge`` writes a row a run and recommendation: problem, arm, seed, ``by`` (the goal that recommended it), and its
regret under each goal and in three changed worlds (docs/benchmark.md), each as a share of the range over designs. Rows
that are in the file are not made again; delete the file when runs were made anew.

``show`` prints the tables of docs/goals.md, on seeds that all problems and arms have. A problem and a goal count
as the same where the means over seeds differ by less than a thousandth of the range.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
from goals_evidence import ARMS, GOALS, METHODS, goal_of

from edrbo.bench import problems
from edrbo.bench.problems.oracle.goals import goal_range, goal_regret
from edrbo.bench.problems.problem import Problem
from edrbo.bench.run.judge import changed_worlds
from edrbo.records.goals import parse_goal

WORLDS = ("shift-down", "shift-up", "spread")
FIELDS = ("problem", "arm", "seed", "by", *GOALS, *WORLDS)
SAME = 1e-3
EVERYTHING = (*problems.names(), *problems.further_names())
Rows = list[dict[str, str]]


def regrets(problem: Problem, x: np.ndarray) -> dict[str, float]:
    """Of one design (d_x,), as shares of ranges."""
    found = {}
    for name in GOALS:
        goal = parse_goal(goal_of(name, problem))
        found[name] = float(goal_regret(problem, goal, x)) / goal_range(problem, goal)
    for name, changed in changed_worlds(problem).items():
        found[name] = float(changed.regret(x)) / changed.value_range
    return found


def judge(runs: Path, file: Path) -> None:
    rows = _read(file) if file.exists() else []
    done = {(row["problem"], row["arm"], row["seed"]) for row in rows}
    for path in sorted(runs.glob("*/*/*.json"), key=lambda path: (int(path.stem), path)):
        name, arm, seed = path.parts[-3], path.parts[-2], path.stem
        if (name, arm, seed) in done or arm not in ARMS:
            continue
        recommended = json.loads(path.read_text())["recommended"]
        for by in GOALS if arm in ("expected", *METHODS) else (arm,):
            found = regrets(problems.get(name), np.array(recommended[by]))
            numbers = {key: f"{value:.4g}" for key, value in found.items()}
            rows.append({"problem": name, "arm": arm, "seed": seed, "by": by, **numbers})
        with file.open("w", newline="") as out:
            writer = csv.DictWriter(out, FIELDS)
            writer.writeheader()
            writer.writerows(rows)


def _read(file: Path) -> Rows:
    with file.open() as lines:
        return list(csv.DictReader(lines))


def whole_seeds(rows: Rows, wanted: range | None) -> Rows:
    """The rows of seeds that every problem and arm has."""
    there = defaultdict(set)
    for row in rows:
        there[int(row["seed"])].add((row["problem"], row["arm"]))
    whole = {seed for seed, found in there.items() if len(found) == len(EVERYTHING) * len(ARMS)}
    kept = whole if wanted is None else whole & set(wanted)
    print(f"seeds {', '.join(map(str, sorted(kept)))}: {len(EVERYTHING)} problems, {len(ARMS)} arms, 100 evaluations\n")
    return [row for row in rows if int(row["seed"]) in kept]


def means(rows: Rows, arm: str, by: str, under: str) -> np.ndarray:
    """Mean over seeds of the regret ``under`` a goal or in a world, by problem."""
    found = defaultdict(list)
    for row in rows:
        if (row["arm"], row["by"]) == (arm, by):
            found[row["problem"]].append(float(row[under]))
    return np.array([np.mean(found[name]) for name in EVERYTHING])


def show(rows: Rows) -> None:
    print("Mean regret over problems, thousandths of the range. Methods recommend by the mean | by the goal.\n")
    print("| goal | goal given | only the mean | mean asked, goal recommended | " + " | ".join(METHODS) + " |")
    print("|---|" + "---:|" * (3 + len(METHODS)))
    for goal in GOALS:
        cells = [_shown(means(rows, goal, goal, goal)), _shown(means(rows, "expected", "expected", goal))]
        cells.append(_shown(means(rows, "expected", goal, goal)))
        cells += [f"{_shown(means(rows, m, 'expected', goal))} | {_shown(means(rows, m, goal, goal))}" for m in METHODS]
        print(f"| {goal} | " + " | ".join(cell.replace(" | ", " / ") for cell in cells) + " |")
    print("\nThe goal given against only the mean, problems:\n")
    print("| goal | better | same | worse |\n|---|---:|---:|---:|")
    for goal in GOALS[1:]:
        gain = means(rows, "expected", "expected", goal) - means(rows, goal, goal, goal)
        print(f"| {goal} | {(gain > SAME).sum()} | {(np.abs(gain) <= SAME).sum()} | {(gain < -SAME).sum()} |")
    print("\nWhen the world changes, mean over problems, thousandths:\n")
    print("| | " + " | ".join((*WORLDS, "worst law in the ball")) + " |\n|---|" + "---:|" * (len(WORLDS) + 1))
    for arm, by in (("robust", "robust"), ("expected", "expected"), *((m, g) for m in METHODS for g in GOALS[::2])):
        cells = [_shown(means(rows, arm, by, world)) for world in (*WORLDS, "robust")]
        name = f"edrbo, {arm}" if arm in GOALS else f"{arm}, recommends by {by}"
        print(f"| {name} | " + " | ".join(cells) + " |")
    print("\nBy problem, goal given / only the mean, thousandths:\n")
    print("| problem | " + " | ".join(GOALS[1:]) + " |\n|---|" + "---:|" * (len(GOALS) - 1))
    for i, name in enumerate(EVERYTHING):
        both = [(means(rows, g, g, g)[i], means(rows, "expected", "expected", g)[i]) for g in GOALS[1:]]
        print(f"| {name} | " + " | ".join(f"{1e3 * a:.1f} / {1e3 * b:.1f}" for a, b in both) + " |")


def _shown(shares: np.ndarray) -> str:
    return f"{1e3 * shares.mean():.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    judging = commands.add_parser("judge")
    judging.add_argument("runs", type=Path)
    showing = commands.add_parser("show")
    showing.add_argument("--seeds")
    for command in (judging, showing):
        command.add_argument("file", type=Path)
    options = parser.parse_args()
    if options.command == "judge":
        judge(options.runs, options.file)
    else:
        wanted = range(*map(int, options.seeds.split(":"))) if options.seeds else None
        show(whole_seeds(_read(options.file), wanted))


if __name__ == "__main__":
    main()
