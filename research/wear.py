"""Wear: how often a change is seen where there is none, how soon where there is one, and what ``drift`` is worth.

    python research/wear.py alarms --out research/results/wear-alarms.csv    # 100 runs, nothing changes
    python research/wear.py power  --out research/results/wear-power.csv     # the process changes at run 50
    python research/wear.py regret --out research/results/wear-regret.csv    # the best design moves, or stays

alarms, power    Draws of a smooth process of one design and one or two contexts, with noise a fifth of its sd.
                 Designs are half uniform and half near the best so far. ``process_change`` is asked every 5 runs, as
                 somebody would who looks after every few. In one case of four a tenth of the outcomes has three times
                 the noise.
regret           60 runs chosen by the optimizer with drift=None, 20 and "learned"; the mean regret now of the
                 recommended design after runs 30, 35, … 60.

Rows are written as they come, and what the file holds is not run again.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import edrbo

RUNS, CHANGE, EVERY, NOISE = 100, 50, 5, 0.2
CONTEXTS = (np.arange(21) + 0.5) / 21
Row = dict[str, Any]


class RandomFunction:
    """A draw of a smooth process of variance one with lengthscales around 0.5 (d inputs)."""

    def __init__(self, draw: np.random.Generator, d: int) -> None:
        self.w = draw.normal(size=(200, d)) / draw.uniform(0.3, 0.8, d)
        self.phase = draw.uniform(0, 2 * np.pi, 200)
        self.a = draw.normal(size=200) / 10

    def __call__(self, point: np.ndarray) -> float:
        return float(np.cos(point @ self.w.T + self.phase) @ self.a)


def study(seed: int, change: float, kind: str) -> Row:
    """Looks every few runs; ``change`` is its size in standard deviations of f."""
    draw = np.random.default_rng([38, 5, seed])
    d_c = 1 + seed % 2
    before, other = RandomFunction(draw, 1 + d_c), RandomFunction(draw, 1 + d_c)
    names = [f"c{k}" for k in range(d_c)]
    optimizer = edrbo.Optimizer(edrbo.Space({"x": (0, 1)}, dict.fromkeys(names, (0, 1))))
    best, heavy = (-np.inf, 0.5), seed % 4 == 3
    for run in range(RUNS):
        near = np.clip(best[1] + 0.1 * draw.standard_normal(), 0, 1)
        point = np.array([draw.random() if run % 2 else near, *draw.random(d_c)])
        value = before(point)
        if change and run >= CHANGE:
            value += change * (1.0 if kind == "level" else other(point))
        sd = NOISE * (3.0 if heavy and draw.random() < 0.1 else 1.0)
        value += sd * draw.standard_normal()
        best = max(best, (value, float(point[0])))
        optimizer.tell({"x": point[0]}, dict(zip(names, point[1:].tolist(), strict=True)), value)
        if run >= 14 and run % EVERY == EVERY - 1 and (found := optimizer.process_change()) is not None:
            return {"alarm": run + 1, "since": found.run}
    return {"alarm": "", "since": ""}


def alarms(count: int) -> Iterator[tuple[Row, Callable[[], Row]]]:
    for seed in range(count):
        yield {"seed": seed}, lambda seed=seed: study(seed, 0.0, "")


def power(count: int) -> Iterator[tuple[Row, Callable[[], Row]]]:
    for seed in range(count):
        for kind in ("level", "shape"):
            for size in (0.5, 1.0):
                yield (
                    {"kind": kind, "size": size, "seed": seed},
                    lambda seed=seed, size=size, kind=kind: study(1000 + seed, size, kind),
                )


def moves(x: float, c: float, run: float) -> float:
    return -4 * (x - 0.2 - 0.6 * run / 60) ** 2 + 0.3 * c * x


def jumps(x: float, c: float, run: float) -> float:
    return -4 * (x - (0.25 if run < 30 else 0.7)) ** 2 + 0.3 * c * x


def stays(x: float, c: float, run: float) -> float:
    return float(np.sin(6 * x) + 0.5 * c * x)


PROBLEMS = {"moves": moves, "jumps": jumps, "stays": stays}


def wearing(problem: str, drift: str, seed: int) -> Row:
    f, draw = PROBLEMS[problem], np.random.default_rng([38, 6, seed])
    given: Any = {"none": None, "20": 20.0, "learned": "learned"}[drift]
    optimizer = edrbo.Optimizer(edrbo.Space({"x": (0, 1)}, {"c": (0, 1)}), seed=seed, drift=given)
    grid, regrets = np.linspace(0, 1, 201), []
    for run in range(60):
        suggestion, c = optimizer.ask(), float(draw.random())
        optimizer.tell(suggestion, {"c": c}, f(suggestion["x"], c, run) + 0.05 * draw.standard_normal())
        if run >= 29 and run % 5 == 4:
            worth = [np.mean([f(x, c, run + 1) for c in CONTEXTS]) for x in [*grid, optimizer.recommend().design["x"]]]
            regrets.append(max(worth) - worth[-1])
    return {"regret": float(np.mean(regrets))}


def regret(count: int) -> Iterator[tuple[Row, Callable[[], Row]]]:
    for seed in range(count):
        for problem in PROBLEMS:
            for drift in ("none", "20", "learned"):
                yield (
                    {"problem": problem, "drift": drift, "seed": seed},
                    lambda problem=problem, drift=drift, seed=seed: wearing(problem, drift, seed),
                )


CASES = {"alarms": (alarms, 200), "power": (power, 25), "regret": (regret, 5)}


def summary(case: str, rows: list[Row]) -> str:
    if case == "alarms":
        return f"{sum(row['alarm'] != '' for row in rows)} of {len(rows)} studies of {RUNS} runs have a false alarm"
    lines = []
    if case == "power":
        for kind, size in sorted({(row["kind"], row["size"]) for row in rows}):
            own = [row for row in rows if (row["kind"], row["size"]) == (kind, size)]
            seen = [row for row in own if row["alarm"] != "" and int(row["alarm"]) > CHANGE]
            early = sum(row["alarm"] != "" and int(row["alarm"]) <= CHANGE for row in own)
            delay = np.median([int(row["alarm"]) - CHANGE for row in seen]) if seen else np.nan
            off = np.median([abs(int(row["since"]) - CHANGE) for row in seen]) if seen else np.nan
            lines.append(
                f"{kind}, {size} sd: seen in {len(seen)} of {len(own)} ({early} alarms before), after {delay:.0f} runs "
                f"(median), placed {off:.0f} runs off"
            )
        return "\n".join(lines)
    for problem in PROBLEMS:
        own = [row for row in rows if row["problem"] == problem]
        means = {
            drift: np.mean([float(row["regret"]) for row in own if row["drift"] == drift])
            for drift in ("none", "20", "learned")
            if any(row["drift"] == drift for row in own)
        }
        lines.append(f"{problem}: " + ", ".join(f"drift {name} {mean:.4f}" for name, mean in means.items()))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("case", choices=list(CASES))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int)
    options = parser.parse_args()
    make, usual = CASES[options.case]
    rows: list[Row] = []
    if options.out.exists():
        with options.out.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    for case, found in make(usual if options.count is None else options.count):
        named = {name: str(value) for name, value in case.items()}
        if any(all(row[name] == value for name, value in named.items()) for row in rows):
            continue
        row = {**named, **{k: f"{v:.6g}" if isinstance(v, float) else str(v) for k, v in found().items()}}
        new = not options.out.exists()
        with options.out.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)
        rows.append(row)
    print(summary(options.case, rows))


if __name__ == "__main__":
    main()
