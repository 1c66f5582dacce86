"""What 40 runs of an earlier study are worth: the regret of the first 20 runs beside that without them.

    nice -n 19 python research/earlier.py run --out research/results/earlier.csv [--seeds 10]
    python research/earlier.py table --out research/results/earlier.csv

Three arms with the same seeds, contexts and noise:

    none        no earlier study
    related     40 runs at random designs of 3 + 2 f(x + δ, c), δ of 5 % of the range in a random direction
    unrelated   40 runs of a random smooth function (of a Gaussian process with lengthscale 0.3) as far spread as f

Noise has a standard deviation of 1 % of the spread of f, in all. What is in the file is not run again. The table has
for each problem the mean over seeds of the cumulative regret, relative to ``none``, and the geometric mean.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import edrbo
from edrbo.bench import problems
from edrbo.bench.problems.problem import Problem
from edrbo.streams import stream

Array = NDArray[np.float64]

PROBLEMS = ("modified-branin", "six-hump-camel", "branin-williams", "three-hump-camel")
ARMS = ("none", "related", "unrelated")
EARLIER, RUNS, SHIFT, NOISE = 40, 20, 0.05, 0.01
FEATURES, LENGTHSCALE = 200, 0.3
COLUMNS = ("problem", "seed", "arm", "regret", "correlation")


def names_of(problem: Problem) -> tuple[list[str], list[str]]:
    return [f"x{k}" for k in range(problem.d_x)], [f"c{k}" for k in range(problem.d_c)]


def named(names: list[str], row: Array) -> dict[str, float]:
    return dict(zip(names, row.tolist(), strict=True))


def smooth_function(width: int, random: np.random.Generator) -> Callable[[Array], Array]:
    """Of unit variance, by random Fourier features."""
    frequency = random.standard_normal((width, FEATURES)) / LENGTHSCALE
    phase, weight = random.uniform(0, 2 * math.pi, FEATURES), random.standard_normal(FEATURES)

    def function(z: Array) -> Array:
        found: Array = math.sqrt(2.0 / FEATURES) * np.cos(z @ frequency + phase) @ weight
        return found

    return function


def earlier_study(problem: Problem, arm: str, seed: int, spread: float) -> edrbo.EarlierStudy:
    random = stream(seed, "earlier", arm)
    x, c = random.random((EARLIER, problem.d_x)), problem.sample_contexts(EARLIER, random)
    if arm == "related":
        moved = np.clip(x + SHIFT * random.choice([-1.0, 1.0], problem.d_x), 0.0, 1.0)
        y = 3.0 + 2.0 * problem.evaluate(moved, c)
        noise = 2.0 * NOISE * spread
    else:
        lower, upper = problem.bounds
        unit = np.concatenate([x, (c - lower) / (upper - lower)], axis=1)
        y, noise = spread * smooth_function(unit.shape[1], random)(unit), NOISE * spread
    y = y + noise * random.standard_normal(EARLIER)
    designs, contexts = names_of(problem)
    return edrbo.EarlierStudy(arm, [named(designs, row) for row in x], y, [named(contexts, row) for row in c])


def run(problem: Problem, arm: str, seed: int) -> tuple[float, float]:
    """The cumulative regret, and the correlation that was learned."""
    random = stream(seed, "spread")
    x, c = random.random((2048, problem.d_x)), problem.sample_contexts(2048, random)
    spread = float(problem.evaluate(x, c).std())
    designs, contexts = names_of(problem)
    lower, upper = problem.bounds
    space = edrbo.Space(
        design=dict.fromkeys(designs, (0, 1)),
        context={name: (float(low), float(high)) for name, low, high in zip(contexts, lower, upper, strict=True)},
    )
    earlier = None if arm == "none" else [earlier_study(problem, arm, seed, spread)]
    optimizer = edrbo.Optimizer(space, seed=seed, earlier=earlier)
    world, total = stream(seed, "world"), 0.0
    for _ in range(RUNS):
        suggestion = optimizer.ask()
        x = np.array([[suggestion.design[name] for name in designs]])
        c = problem.sample_contexts(1, world)
        y = float(problem.evaluate(x, c)[0]) + NOISE * spread * float(world.standard_normal())
        optimizer.tell(suggestion, named(contexts, c[0]), y)
        total += float(problem.regret(x)[0])
    known = None if optimizer.model is None else optimizer.model.correlation
    return total, math.nan if known is None else float(known[0])


def table(path: Path) -> str:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    regret = {(row["problem"], int(row["seed"]), row["arm"]): float(row["regret"]) for row in rows}
    lines, logs = [f"{'problem':<20}{'seeds':>6}{'related':>10}{'unrelated':>11}"], []
    for name in PROBLEMS:
        seeds = [s for s in range(1000) if all((name, s, arm) in regret for arm in ARMS)]
        if not seeds:
            continue
        means = [sum(regret[name, s, arm] for s in seeds) for arm in ARMS]
        ratios = [mean / means[0] for mean in means[1:]]
        logs.append(np.log(ratios))
        lines.append(f"{name:<20}{len(seeds):>6}{ratios[0]:>10.2f}{ratios[1]:>11.2f}")
    related, unrelated = np.exp(np.mean(logs, axis=0))
    return "\n".join([*lines, f"{'geometric mean':<26}{related:>10.2f}{unrelated:>11.2f}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--out", type=Path, default=Path("research/results/earlier.csv"))
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    if options.what == "run":
        known = set()
        if options.out.exists():
            with options.out.open() as file:
                known = {(row["problem"], int(row["seed"]), row["arm"]) for row in csv.DictReader(file)}
        else:
            options.out.write_text(",".join(COLUMNS) + "\n")
        for seed in range(options.seeds):
            for name in PROBLEMS:
                for arm in ARMS:
                    if (name, seed, arm) not in known:
                        regret, correlation = run(problems.get(name), arm, seed)
                        with options.out.open("a") as file:
                            file.write(f"{name},{seed},{arm},{regret:.6g},{correlation:.3f}\n")
    print(table(options.out))


if __name__ == "__main__":
    main()
