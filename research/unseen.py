"""Are answers under every goal right? An independent check on ten problems that nothing in this package was chosen on.

    nice -n 15 python research/unseen.py run HISTORIES [--seeds 0:3] [--goals mean] [--problems all]
    nice -n 15 python research/unseen.py ask HISTORIES ANSWERS.csv [--goals mean,robust,…]
    python research/unseen.py pack HISTORIES research/results/unseen-runs.npz
    python research/unseen.py pack ANSWERS.csv research/results/unseen.csv.gz
    python research/unseen.py table research/results/unseen.csv.gz [--short] [--problems confirm]

``run`` lets the default method choose 80 evaluations for each problem, noise and goal (60 where the goal is ``limit1``
or ``limit2``: the mean under one limit or two) and keeps the designs, a file a run. Contexts and noise follow from the
seed. ``ask`` tells them to a new optimizer and asks it under each goal after 20, 40 and 80; a row an answer, with what
is true. HISTORIES is the folder or the packed file, so that answers can be made again without a search. Both go on
where they were stopped. Problems and truths are in ``unseen_problems.py`` and use nothing of the engine. Constants are
chosen on the problems ``choose`` and confirmed on those called ``confirm``.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import kept_runs
import numpy as np
import torch
from arguments import seed_range
from unseen_problems import (
    GOALS,
    KEPT,
    PROBLEMS,
    SHARE,
    Unseen,
    best_within,
    limiting,
    limiting_range,
    lower_limit,
    shares,
)

import edrbo
from edrbo import Optimizer, Space

EVALUATIONS, LOOKS = 80, (20, 40, 80)
LIMITED_EVALUATIONS, LIMITED_LOOKS = 60, (20, 40, 60)
LATER = {30: 20, 50: 40}  # ten runs after a look
ELSEWHERE = 3  # designs besides the recommended one of which a limit's chance is asked
NOISES = ("0", "0.1", "uneven")
WITHIN = (0.01, 0.05)  # of the range: how probable is it that nothing is better by more?
HALVES = {"choose": PROBLEMS[::2], "confirm": PROBLEMS[1::2], "all": PROBLEMS}
LIMITS = {"limit1": 1, "limit2": 2}
COLUMNS = (
    *("problem", "noise", "given", "seed", "look", "goal", "range", "truth", "best", "value", "low", "high"),
    *("model", "contexts", "experts", "left", "within 1 %", "within 5 %", "ten more", "worst", "worst truth", "design"),
    *("later truth", "chances", "keeps"),
)
Design = dict[str, float]


def optimizer_of(problem: Unseen, seed: int, goal: str) -> Optimizer:
    space = Space(
        design={f"x{k}": (0.0, 1.0) for k in range(problem.d_x)},
        context={f"c{k}": (0.0, 1.0) for k in range(problem.d_c)},
    )
    if goal not in LIMITS:
        return Optimizer(space, seed=seed, goal=problem.goal_text(goal))
    limits = {
        f"g{k}": edrbo.Limit(lower=lower_limit(problem, k), probability=SHARE, confidence=KEPT)
        for k in range(LIMITS[goal])
    }
    return Optimizer(space, seed=seed, outcomes={"y": edrbo.Maximize(), **limits})


class World:
    """The contexts and the noise of a run, which follow from problem, noise, goal and seed."""

    def __init__(self, problem: Unseen, noise: str, goal: str, seed: int) -> None:
        self.problem, self.noise, self.limits = problem, noise, LIMITS.get(goal, 0)
        random = np.random.default_rng([seed, 36, PROBLEMS.index(problem)])
        self.contexts = problem.contexts(random.random((EVALUATIONS, problem.d_u)))
        self.errors = random.standard_normal(EVALUATIONS)
        self.limit_errors = random.standard_normal((EVALUATIONS, 2))

    def tell(self, optimizer: Optimizer, what: Any, x: Any, number: int) -> None:
        problem, c = self.problem, self.contexts[number]
        y: Any = float(problem.f(x, c) + problem.noise_sd(self.noise, x) * self.errors[number])
        if self.limits:
            share = problem.noise_sd(self.noise, x) / problem.range("mean")
            y = {"y": y}
            for k in range(self.limits):
                error = share * limiting_range(problem, k) * self.limit_errors[number, k]
                y[f"g{k}"] = float(limiting(problem, k, x, c) + error)
        optimizer.tell(what, {f"c{k}": float(value) for k, value in enumerate(c)}, y)


def run(problem: Unseen, noise: str, goal: str, seed: int) -> dict[str, Any]:
    optimizer, world = optimizer_of(problem, seed, goal), World(problem, noise, goal, seed)
    designs = []
    for number in range(LIMITED_EVALUATIONS if goal in LIMITS else EVALUATIONS):
        suggestion = optimizer.ask()
        designs.append(np.array(list(suggestion.design.values())))
        world.tell(optimizer, suggestion, designs[-1], number)
    return {"x": np.array(designs, dtype=np.float32)}


def named(x: Any) -> Design:
    return {f"x{k}": float(value) for k, value in enumerate(x)}


def replayed(
    problem: Unseen, noise: str, goal: str, seed: int, designs: Any, looks: Sequence[int]
) -> Iterator[tuple[int, Optimizer]]:
    """The optimizer after each number of observations in ``looks``."""
    optimizer = optimizer_of(problem, seed, goal if goal in LIMITS else "mean")
    world = World(problem, noise, goal, seed)
    for number, x in enumerate(designs.astype(np.float32).astype(np.float64)):
        world.tell(optimizer, named(x), x, number)
        if number + 1 in looks:
            yield number + 1, optimizer


def answered(problem: Unseen, optimizer: Optimizer, goal: str, look: int) -> dict[str, Any]:
    """The optimizer's answer under a goal, and what is true of it."""
    answer = optimizer.recommend(goal=problem.goal_text(goal), radius=0.1 if goal == "mean" else 0.0)
    x, size = np.array(list(answer.design.values())), problem.range(goal)
    return {
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


def limited(problem: Unseen, optimizer: Optimizer, goal: str, look: int, seed: int) -> dict[str, Any]:
    """The same under limits: with their chances, there and at designs anywhere, and where they hold."""
    count, chances, kept = LIMITS[goal], [], []
    answer = optimizer.recommend(radius=0.0)
    x = np.array(list(answer.design.values()))
    anywhere = np.random.default_rng([seed, look, 38]).random((ELSEWHERE, problem.d_x))
    for design in (x, *anywhere):
        found = answer if design is x else optimizer.recommend(radius=0.0, candidates=[named(design)])
        chances += [found.outcomes[f"g{k}"].holds for k in range(count)]
        kept += (shares(problem, count, design[None])[0] >= SHARE).tolist()
    return {
        "look": look,
        "goal": goal,
        "range": problem.range("mean"),
        "truth": problem.truth("mean", x),
        "best": best_within(problem, count),
        "design": " ".join(f"{value:.6g}" for value in x),
        "chances": " ".join(f"{chance:.4f}" for chance in chances),
        "keeps": " ".join(str(int(one)) for one in kept),
    }


def asked(
    problem: Unseen, noise: str, given: str, seed: int, designs: Any, goals: list[str]
) -> Iterator[dict[str, Any]]:
    """All answers of a run; the mean's with what is true of the design that is recommended ten runs later."""
    if given in LIMITS:
        for look, optimizer in replayed(problem, noise, given, seed, designs, LIMITED_LOOKS):
            yield limited(problem, optimizer, given, look, seed)
        return
    waiting: dict[int, dict[str, Any]] = {}
    later = LATER if "mean" in goals else {}
    for look, optimizer in replayed(problem, noise, given, seed, designs, (*LOOKS, *later)):
        if look in later:
            x = np.array(list(optimizer.recommend(radius=0.0).design.values()))
            yield {**waiting.pop(later[look]), "later truth": problem.truth("mean", x)}
            continue
        for goal in goals:
            row = answered(problem, optimizer, goal, look)
            if goal == "mean" and look in later.values():
                waiting[look] = row
            else:
                yield row


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
    needed = np.quantile(off / np.maximum(half, 1e-12), 0.95)
    return float(1.0 / max(needed, 1e-12))


def table(rows: list[dict[str, str]], short: bool) -> None:
    whole = [row for row in rows if row["goal"] not in LIMITS]
    print(
        "| goal | noise | look | answers | runs | covered | width | bound holds | mean bound | × narrowest | regret |"
    )
    print("|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for given in ("asked", "given"):
        some = [row for row in whole if (row["goal"] == row["given"]) == (given == "given") or row["goal"] == "mean"]
        some = some if given == "asked" else [row for row in some if row["goal"] != "mean"]
        for goal in GOALS:
            of_goal = [row for row in some if row["goal"] == goal]
            cells = [] if short else [(noise, "") for noise in NOISES] + [("", str(look)) for look in LOOKS]
            cells += [("", "")]
            for noise, look in cells:
                cell = [row for row in of_goal if noise in ("", row["noise"]) and look in ("", row["look"])]
                if cell:
                    print(_line(f"{goal}, {given}" if goal != "mean" else goal, noise or "all", look or "all", cell))
    print()
    print("| | within 1 %: said → true (answers) | within 5 % |")
    print("|---|---|---|")
    for goal in GOALS:
        some = [row for row in whole if row["goal"] == goal]
        if some:
            true = np.abs(number(some, "best") - number(some, "truth")) / number(some, "range")
            cells = [_bins(number(some, f"within {100 * share:.0f} %"), true <= share) for share in WITHIN]
            print(f"| {goal} | {' | '.join(cells)} |")
    worst = [row for row in whole if row["worst"]]
    for look in LOOKS:
        some = [row for row in worst if row["look"] == str(look)]
        if some:
            below = (number(some, "worst truth") - number(some, "worst")) / number(some, "range")
            print(f"worst case at {look}: holds in {np.mean(below >= -1e-9):.1%} of {len(some)}, ", end="")
            print(f"median {np.median(below):.3f} below")
    for look in LATER.values():
        some = [row for row in whole if row["look"] == str(look) and row.get("later truth")]
        if some:
            size = number(some, "range")
            gain = (number(some, "later truth") - number(some, "truth")) / size
            said = number(some, "ten more") / size
            print(f"ten more runs at {look}: said {said.mean():.3f}, true {gain.mean():.3f} (± ", end="")
            print(f"{gain.std() / len(gain) ** 0.5:.3f}) of {len(some)}")
    for goal, count in LIMITS.items():
        _limit_lines([row for row in rows if row["goal"] == goal], count)


def _bins(said: Any, true: Any) -> str:
    ends = ((0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.01))
    found = [(said >= low) & (said < high) for low, high in ends]
    return "; ".join(f"{said[b].mean():.2f} → {true[b].mean():.2f} ({b.sum()})" for b in found if b.any())


def _limit_lines(rows: list[dict[str, str]], count: int) -> None:
    if not rows:
        return
    chances = [np.array(row["chances"].split(), dtype=float) for row in rows]
    keeps = [np.array(row["keeps"].split(), dtype=float) for row in rows]
    sure = [(chance[:count] >= KEPT).all() for chance in chances]
    kept = [keep[:count].all() for keep, yes in zip(keeps, sure, strict=True) if yes]
    print(f"{count} limit(s): said to hold in {sum(sure)} of {len(rows)} answers, and all held in {sum(kept)}")
    print("  chances, said → true:", _bins(np.concatenate(chances), np.concatenate(keeps)))
    for look in LIMITED_LOOKS:
        some = [row for row in rows if row["look"] == str(look)]
        gap = (number(some, "best") - number(some, "truth")) / number(some, "range")
        held = np.array([float(row["keeps"].split()[0]) for row in some]) > 0
        print(f"  at {look}: median gap {np.median(np.maximum(gap, 0.0)):.3f} ({len(some)}; held {held.mean():.0%})")


def _line(goal: str, noise: str, look: str, rows: list[dict[str, str]]) -> str:
    size = number(rows, "range")
    truth, low, high = (number(rows, name) for name in ("truth", "low", "high"))
    left = number(rows, "left") / size
    inside = (truth >= low - 1e-9 * size) & (truth <= high + 1e-9 * size)
    regret = np.abs(number(rows, "best") - truth) / size
    runs = len({(row["problem"], row["noise"], row["given"], row["seed"]) for row in rows})
    return (
        f"| {goal} | {noise} | {look} | {len(rows)} | {runs} | {inside.mean():.1%} | {np.mean((high - low) / size):.3f}"
        f" | {np.mean(left >= regret - 1e-6):.1%} | {left.mean():.3f} | {narrowest(regret, left):.2f}"
        f" | {regret.mean():.3f} |"
    )


# ------------------------------------------------------------------------------------------------ commands


def histories(path: Path) -> dict[tuple[str, str, str, int], Any]:
    """The designs of each run, by problem, noise, goal and seed: of a folder or of what was packed."""
    if path.suffix == ".npz":
        packed = np.load(path)
        return {_parsed(name): packed[name] for name in packed.files}
    files = sorted(file for file in path.glob("*.npz") if not file.name.startswith("part-"))
    return {_parsed(file.stem): np.load(file)["x"].astype(np.float32) for file in files}


def _parsed(name: str) -> tuple[str, str, str, int]:
    problem, noise, goal, seed = name.split("~")
    return problem, noise, goal, int(seed)


def wanted_goals(given: str, goals: list[str], seed: int, every: int) -> list[str]:
    """Of a run for the mean also other goals: with ``every`` in turn, that many by seed."""
    if given != "mean":
        return [given] if given in goals or given in LIMITS else []
    others = [goal for goal in goals if goal != "mean"]
    chosen = others if not every else [others[(seed * every + k) % len(others)] for k in range(min(every, len(others)))]
    return [goal for goal in goals if goal == "mean" or goal in chosen]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=("run", "ask", "pack", "table"))
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--seeds", type=seed_range, default="0:3")
    parser.add_argument("--problems", choices=tuple(HALVES), default="all")
    parser.add_argument("--noises", default=",".join(NOISES))
    parser.add_argument("--goals", default="mean")
    parser.add_argument("--given", default=None, help="only histories of these goals")
    parser.add_argument("--every", type=int, default=0, help="ask a run for the mean only for so many of the others")
    parser.add_argument("--short", action="store_true", help="all noises and looks together")
    options = parser.parse_args()
    torch.set_num_threads(1)
    problems = {problem.name: problem for problem in HALVES[options.problems]}
    goals, noises = options.goals.split(","), options.noises.split(",")
    if options.command == "run":
        options.paths[0].mkdir(parents=True, exist_ok=True)
        for seed in options.seeds:
            for noise in noises:
                for goal in goals:
                    for problem in problems.values():
                        target = options.paths[0] / f"{problem.name}~{noise}~{goal}~{seed}.npz"
                        if not target.exists():
                            partial = target.with_name("part-" + target.name)
                            np.savez_compressed(partial, **run(problem, noise, goal, seed))
                            os.replace(partial, target)
    elif options.command == "ask":
        source, file = options.paths
        known = {
            (*(row[key] for key in ("problem", "noise", "given", "seed")), row["goal"]) for row in kept_runs.rows(file)
        }
        for (name, noise, given, seed), designs in sorted(histories(source).items(), key=lambda item: item[0][::-1]):
            if name not in problems or noise not in noises or seed not in options.seeds:
                continue
            if options.given is not None and given not in options.given.split(","):
                continue
            here = {"problem": name, "noise": noise, "given": given, "seed": str(seed)}
            wanted = wanted_goals(given, goals, seed, options.every)
            wanted = [goal for goal in wanted if (*here.values(), goal) not in known]
            found = list(asked(problems[name], noise, given, seed, designs, wanted)) if wanted else []
            for row in found:  # a run at a time: what is there is whole
                kept_runs.add(file, COLUMNS, {**dict.fromkeys(COLUMNS, ""), **here, **row})
    elif options.command == "pack":
        source, target = options.paths
        if source.is_dir():
            np.savez_compressed(target, **{"~".join(map(str, key)): x for key, x in histories(source).items()})
        else:
            with source.open("rb") as plain, gzip.GzipFile(target, "wb", mtime=0) as packed:
                shutil.copyfileobj(plain, packed)
    else:
        table([row for row in read(options.paths[0]) if row["problem"] in problems], options.short)


if __name__ == "__main__":
    main()
