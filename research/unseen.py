"""Are answers under every goal right? An independent check on ten problems that nothing in this package was chosen on.

    nice -n 15 python research/unseen.py run HISTORIES [--seeds 0:3] [--goals mean] [--problems all]
    nice -n 15 python research/unseen.py ask HISTORIES ANSWERS.csv [--goals mean,robust,…]
    nice -n 15 python research/unseen.py again HISTORIES ANSWERS.csv NEW.csv
    python research/unseen.py pack ANSWERS.csv research/results/unseen.csv.gz
    python research/unseen.py table research/results/unseen.csv.gz [--short] [--problems confirm]

``run`` lets the default method choose 80 evaluations for each problem, noise and seed, and keeps the observations, a
file a run. ``ask`` tells them to a new optimizer and asks it under each goal after 20, 40 and 80; a row an answer, with
what is true. Both go on where they were stopped. Problems and truths are in ``unseen_problems.py`` and use nothing of
the engine. Constants are chosen on the problems ``choose`` and confirmed on those called ``confirm``.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kept_runs
import numpy as np
import torch
from arguments import seed_range
from unseen_problems import GOALS, PROBLEMS, Unseen

from edrbo import Optimizer, Space

EVALUATIONS, LOOKS = 80, (20, 40, 80)
NOISES = ("0", "0.1", "uneven")
WITHIN = (0.01, 0.05)  # of the range: how probable is it that nothing is better by more?
HALVES = {"choose": PROBLEMS[::2], "confirm": PROBLEMS[1::2], "all": PROBLEMS}
COLUMNS = (
    *("problem", "noise", "given", "seed", "look", "goal", "range", "truth", "best", "value", "low", "high"),
    *("model", "contexts", "experts", "left", "within 1 %", "within 5 %", "ten more", "worst", "worst truth", "design"),
)


def optimizer_of(problem: Unseen, seed: int, goal: str) -> Optimizer:
    space = Space(
        design={f"x{k}": (0.0, 1.0) for k in range(problem.d_x)},
        context={f"c{k}": (0.0, 1.0) for k in range(problem.d_c)},
    )
    return Optimizer(space, seed=seed, goal=problem.goal_text(goal))


def run(problem: Unseen, noise: str, goal: str, seed: int) -> dict[str, Any]:
    optimizer = optimizer_of(problem, seed, goal)
    world = np.random.default_rng([seed, 36, PROBLEMS.index(problem)])
    contexts = problem.contexts(world.random((EVALUATIONS, problem.d_u)))
    errors = world.standard_normal(EVALUATIONS)
    rows: dict[str, list[Any]] = {"x": [], "c": [], "y": []}
    for c, error in zip(contexts, errors, strict=True):
        suggestion = optimizer.ask()
        x = np.array(list(suggestion.design.values()))
        y = float(problem.f(x, c) + problem.noise_sd(noise, x) * error)
        tell(optimizer, suggestion, c, y)
        for name, value in zip(rows, (x, c, y), strict=True):
            rows[name].append(value)
    return {name: np.array(value) for name, value in rows.items()}


def tell(optimizer: Optimizer, what: Any, c: Any, y: float) -> None:
    optimizer.tell(what, {f"c{k}": float(value) for k, value in enumerate(c)}, y)


def replayed(problem: Unseen, history: Any, seed: int) -> Iterator[tuple[int, Optimizer]]:
    """The optimizer after each number of observations in ``LOOKS``."""
    optimizer = optimizer_of(problem, seed, "mean")
    for n, (x, c, y) in enumerate(zip(history["x"], history["c"], history["y"], strict=True), 1):
        tell(optimizer, {f"x{k}": float(value) for k, value in enumerate(x)}, c, float(y))
        if n in LOOKS:
            yield n, optimizer


def answers(problem: Unseen, optimizer: Optimizer, goals: list[str], look: int) -> list[dict[str, Any]]:
    found = []
    for goal in goals:
        answer = optimizer.recommend(goal=problem.goal_text(goal), radius=0.1 if goal == "mean" else 0.0)
        x = np.array(list(answer.design.values()))
        size = problem.range(goal)
        found.append(
            {
                "look": look,
                "goal": goal,
                "range": size,
                "truth": problem.truth(goal, x),
                "best": problem.best(goal),
                "value": answer.value,
                "low": answer.value_interval[0],
                "high": answer.value_interval[1],
                **answer.value_parts,
                "left": answer.optimality_gap,
                "within 1 %": answer.probability_best_within(WITHIN[0] * size),
                "within 5 %": answer.probability_best_within(WITHIN[1] * size),
                "ten more": answer.expected_improvement_10,
                "worst": answer.worst_case if goal == "mean" else "",
                "worst truth": problem.truth("robust", x) if goal == "mean" else "",
                "design": " ".join(f"{value:.6g}" for value in x),
            }
        )
    return found


def valued(problem: Unseen, optimizer: Optimizer, row: dict[str, str]) -> dict[str, Any]:
    """What is believed of the design of an answer."""
    design = {f"x{k}": float(value) for k, value in enumerate(row["design"].split())}
    found = optimizer.predict(design, goal=problem.goal_text(row["goal"]))
    parts = {"model": found.from_model[0], "contexts": found.from_contexts[0], "experts": found.from_experts[0]}
    shown = {"value": found.value[0], "low": found.value_lower[0], "high": found.value_upper[0]}
    return shown | (parts if row["goal"] == "mean" else {})


def key_of(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in ("problem", "noise", "given", "seed", "look", "goal"))


# ------------------------------------------------------------------------------------------------ tables


def read(path: Path) -> list[dict[str, str]]:
    if path.suffix != ".gz":
        return kept_runs.rows(path)
    with gzip.open(path, "rt", newline="") as file:
        return list(csv.DictReader(file))


def number(rows: list[dict[str, str]], name: str) -> Any:
    return np.array([float(row[name]) for row in rows])


def narrowest(off: Any, half: Any) -> float:
    """The mean width over the width that a rescaling by one factor would need for 95 %."""
    needed = np.quantile(np.abs(off) / half, 0.95)
    return float(1.0 / max(needed, 1e-12))


def table(rows: list[dict[str, str]], short: bool) -> None:
    print("| goal | noise | look | answers | runs | covered | width | narrowest | bound holds | mean bound | regret |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for given in ("asked", "given"):
        some = [row for row in rows if (row["goal"] == row["given"]) == (given == "given") or row["goal"] == "mean"]
        some = some if given == "asked" else [row for row in some if row["goal"] != "mean"]
        for goal in GOALS:
            of_goal = [row for row in some if row["goal"] == goal]
            cells = [] if short else [(noise, "") for noise in NOISES] + [("", str(look)) for look in LOOKS]
            cells += [("", "")]
            for noise, look in cells:
                cell = [row for row in of_goal if row["noise"].startswith(noise) and look in ("", row["look"])]
                cell = [row for row in cell if not noise or row["noise"] == noise]
                if cell:
                    print(_line(f"{goal}, {given}" if goal != "mean" else goal, noise or "all", look or "all", cell))
    worst = [row for row in rows if row["worst"]]
    for look in LOOKS:
        some = [row for row in worst if row["look"] == str(look)]
        if some:
            below = (number(some, "worst truth") - number(some, "worst")) / number(some, "range")
            holds = np.mean(below >= -1e-9)
            print(f"worst case at {look}: holds in {holds:.1%} of {len(some)}, median {np.median(below):.3f} below")
    print("chance of being within, said → true, in four bins:")
    for goals in (("mean",), tuple(goal for goal in GOALS if goal != "mean")):
        some = [row for row in rows if row["goal"] in goals]
        for share, name in zip(WITHIN, ("within 1 %", "within 5 %"), strict=True):
            said = number(some, name)
            true = np.abs(number(some, "best") - number(some, "truth")) / number(some, "range") <= share
            bins = [(said >= low) & (said < high) for low, high in ((0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.01))]
            words = "; ".join(f"{said[b].mean():.2f} → {true[b].mean():.2f} ({b.sum()})" for b in bins if b.any())
            print("mean" if goals == ("mean",) else "other goals", name, words)


def _line(goal: str, noise: str, look: str, rows: list[dict[str, str]]) -> str:
    size = number(rows, "range")
    truth, low, high = (number(rows, name) for name in ("truth", "low", "high"))
    value, left = number(rows, "value"), number(rows, "left") / size
    inside = (truth >= low - 1e-9 * size) & (truth <= high + 1e-9 * size)
    half = np.where(truth >= value, high - value, value - low) / size
    tight = narrowest((truth - value) / size, np.maximum(half, 1e-12))
    regret = np.abs(number(rows, "best") - truth) / size
    runs = len({(row["problem"], row["noise"], row["given"], row["seed"]) for row in rows})
    return (
        f"| {goal} | {noise} | {look} | {len(rows)} | {runs} | {inside.mean():.1%} | {np.mean((high - low) / size):.3f}"
        f" | {tight:.2f} | {np.mean(left >= regret - 1e-6):.1%} | {left.mean():.3f} | {regret.mean():.3f} |"
    )


# ------------------------------------------------------------------------------------------------ commands


def parse(path: Path) -> tuple[str, str, str, int]:
    problem, noise, goal, seed = path.stem.split("~")
    return problem, noise, goal, int(seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=("run", "ask", "again", "pack", "table"))
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--seeds", type=seed_range, default="0:3")
    parser.add_argument("--problems", choices=tuple(HALVES), default="all")
    parser.add_argument("--noises", default=",".join(NOISES))
    parser.add_argument("--goals", default="mean")
    parser.add_argument("--given", default=None, help="only histories of these goals")
    parser.add_argument("--short", action="store_true", help="all noises and looks together")
    options = parser.parse_args()
    torch.set_num_threads(1)
    problems = {problem.name: problem for problem in HALVES[options.problems]}
    goals = options.goals.split(",")
    if options.command == "run":
        options.paths[0].mkdir(parents=True, exist_ok=True)
        for seed in options.seeds:
            for noise in options.noises.split(","):
                for goal in goals:
                    for problem in problems.values():
                        target = options.paths[0] / f"{problem.name}~{noise}~{goal}~{seed}.npz"
                        if not target.exists():
                            partial = target.with_name("part-" + target.name)
                            np.savez_compressed(partial, **run(problem, noise, goal, seed))
                            os.replace(partial, target)
    elif options.command == "ask":
        folder, file = options.paths
        known = {key_of(row) for row in kept_runs.rows(file)}
        paths = [path for path in folder.glob("*.npz") if not path.name.startswith("part-")]
        for path in sorted(paths, key=lambda path: parse(path)[::-1]):
            name, noise, given, seed = parse(path)
            if name not in problems or noise not in options.noises.split(",") or seed not in options.seeds:
                continue
            if options.given is not None and given not in options.given.split(","):
                continue
            for look, optimizer in replayed(problems[name], np.load(path), seed):
                wanted = [
                    goal
                    for goal in goals
                    if given in ("mean", goal) and (name, noise, given, str(seed), str(look), goal) not in known
                ]
                for row in answers(problems[name], optimizer, wanted, look):
                    kept_runs.add(file, COLUMNS, {"problem": name, "noise": noise, "given": given, "seed": seed, **row})
    elif options.command == "again":
        folder, source, file = options.paths
        done = {key_of(row) for row in kept_runs.rows(file)}
        groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
        for row in kept_runs.rows(source):
            wants = row["problem"] in problems and int(row["seed"]) in options.seeds and key_of(row) not in done
            if wants and (options.given is None or row["given"] in options.given.split(",")):
                groups.setdefault(tuple(key_of(row)[:4]), []).append(row)
        for (name, noise, given, seed), rows in groups.items():
            history = np.load(folder / f"{name}~{noise}~{given}~{seed}.npz")
            for look, optimizer in replayed(problems[name], history, int(seed)):
                for row in rows:
                    if row["look"] == str(look):
                        kept_runs.add(file, COLUMNS, row | valued(problems[name], optimizer, row))
    elif options.command == "pack":
        with options.paths[0].open("rb") as source, gzip.GzipFile(options.paths[1], "wb", mtime=0) as target:
            shutil.copyfileobj(source, target)
    else:
        table([row for row in read(options.paths[0]) if row["problem"] in problems], options.short)


if __name__ == "__main__":
    main()
