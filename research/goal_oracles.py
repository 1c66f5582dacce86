"""The oracles of all goals on all problems against a million contexts and many designs.

    OMP_NUM_THREADS=1 nice -n 15 python research/goal_oracles.py research/results/goal_oracles.csv

A row a problem, goal and direction; rows that are in the file are not made again.

    value, drawn, error    the oracle's value at a design halfway between the best on average and a random one, that of
                           a million contexts (100,000 on the portfolios), and the standard error of the latter, from
                           50 batches
    scale                  the range of f over the contexts, one for a share, squared for Hit
    best, grid, range      the oracle's optimum, the best of many designs (of which the 30 that look best on few
                           contexts are taken exactly), and the range of the value over designs

At the end it says how far the oracle is off at most: |value − drawn| beyond four standard errors as a share of scale,
and by how much a design beats the optimum as a share of the range.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from arguments import EVERYTHING
from scipy.stats import qmc

from edrbo.bench import problems
from edrbo.bench.problems.oracle.goals import goal_optimum, goal_range, goal_value, rough_value
from edrbo.bench.problems.problem import Problem
from edrbo.records.goals import (
    CVaR,
    Direction,
    Expected,
    Goal,
    MeanSd,
    ProbabilityBetterThan,
    ProbabilityWithin,
    Quantile,
    Robust,
    TargetLoss,
    WorstCase,
)

FIELDS = ("problem", "goal", "direction", "value", "drawn", "error", "scale", "best", "grid", "range")
DIRECTIONS: tuple[Direction, Direction] = ("maximize", "minimize")
DRAWS, PORTFOLIO_DRAWS, BATCHES = 1_000_000, 100_000, 50
NOT_DRAWN = (WorstCase, Robust)  # a sample says nothing of them


def goals_of(problem: Problem) -> list[Goal]:
    best, room = problem.optimum, 0.2 * problem.value_range
    shares: list[Goal] = [ProbabilityBetterThan(best), ProbabilityWithin(best - room, best + room), TargetLoss(best)]
    return [Expected(), CVaR(0.1), Quantile(0.1), WorstCase(), Robust(0.1), MeanSd(1.0), *shares]


def outcomes(problem: Problem, x: np.ndarray) -> np.ndarray:
    """f of one design (d_x,) in contexts drawn at random."""
    count = DRAWS if problem.data is None else PORTFOLIO_DRAWS
    contexts = problem.sample_contexts(count, np.random.default_rng(21))
    return np.concatenate([problem.evaluate(x, part) for part in np.array_split(contexts, BATCHES)])


def drawn_value(goal: Goal, values: np.ndarray, direction: Direction) -> tuple[float, float]:
    """Of all values, and the standard error from batches."""

    def of(part: np.ndarray) -> float:
        return float(goal.value(part, np.full(len(part), 1 / len(part)), direction))

    batches = [of(part) for part in np.array_split(values, BATCHES)]
    return of(values), float(np.std(batches, ddof=1) / np.sqrt(BATCHES))


def best_of_many(problem: Problem, goal: Goal, direction: Direction) -> float:
    slow = isinstance(goal, Robust) and problem.d_c > 1
    if problem.d_x <= 2 and not slow:
        line = np.linspace(0, 1, 2001 if problem.d_x == 1 else 81)
        designs = np.stack(np.meshgrid(*[line] * problem.d_x), axis=-1).reshape(-1, problem.d_x)
    else:
        designs = qmc.Sobol(problem.d_x, rng=np.random.default_rng(98)).random_base2(8 if slow else 12)
    sense = goal.sense(direction)
    near = designs[np.argsort(-sense * rough_value(problem, goal, designs, direction))[:30]]
    return sense * float((sense * goal_value(problem, goal, near, direction)).max())


def rows_of(name: str, done: set[tuple[str, str, str]]) -> list[dict[str, str]]:
    problem, rows = problems.get(name), []
    x = (problem.x_star + np.random.default_rng(22).random(problem.d_x)) / 2
    values: np.ndarray | None = None
    for goal in goals_of(problem):
        for direction in DIRECTIONS:
            key = name, goal.to_text(), direction
            if key in done:
                continue
            values = outcomes(problem, x) if values is None else values
            spread = float(np.ptp(values))
            scale = {"outcome": spread, "probability": 1.0, "squared outcome": spread**2}[goal.kind]
            drawn, error = (np.nan, np.nan) if isinstance(goal, NOT_DRAWN) else drawn_value(goal, values, direction)
            numbers = (
                float(goal_value(problem, goal, x, direction)),
                drawn,
                error,
                scale,
                goal_optimum(problem, goal, direction)[1],
                best_of_many(problem, goal, direction),
                goal_range(problem, goal, direction),
            )
            texts = ("" if np.isnan(number) else f"{number:.8g}" for number in numbers)
            rows.append(dict(zip(FIELDS, (*key, *texts), strict=True)))
    return rows


def report(rows: list[dict[str, str]]) -> None:
    for what in sorted({row["goal"].split(":")[0] for row in rows}):
        mine = [row for row in rows if row["goal"].split(":")[0] == what]
        off = [_off(row) for row in mine if row["drawn"]]
        beaten = [_sense(row) * (float(row["grid"]) - float(row["best"])) / float(row["range"]) for row in mine]
        drawn = f"off the draws by {max(off):.1e}" if off else "not drawn"
        print(f"{what:<11} {len(mine)} cases, {drawn}; best design beats the optimum by {max(0.0, max(beaten)):.1e}")


def _off(row: dict[str, str]) -> float:
    beyond = abs(float(row["value"]) - float(row["drawn"])) - 4 * float(row["error"])
    return max(0.0, beyond) / float(row["scale"])


def _sense(row: dict[str, str]) -> float:
    smaller = row["goal"].startswith("hit") or (
        row["direction"] == "minimize" and not row["goal"].startswith(("reach", "within"))
    )
    return -1.0 if smaller else 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    file: Path = parser.parse_args().file
    rows = list(csv.DictReader(file.open())) if file.exists() else []
    for name in EVERYTHING:
        done = {(row["problem"], row["goal"], row["direction"]) for row in rows}
        rows += rows_of(name, done)
        with file.open("w", newline="") as out:
            writer = csv.DictWriter(out, FIELDS)
            writer.writeheader()
            writer.writerows(rows)
    report(rows)


if __name__ == "__main__":
    main()
