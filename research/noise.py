"""Whether intervals of single outcomes hold where it is quiet and where it is noisy.

    python research/noise.py --out research/results/noise-varies.csv    # four problems, seeds 0–9, 80 runs

The first half of the runs is uniform, the second chosen by the optimizer. Then outcome intervals of 95 % are asked for
at designs and contexts spread evenly, and their coverage is worked out from the true mean and the true noise there:
exactly, not by drawing. ``quiet`` and ``noisy`` are its means over the half with less and the half with more noise.
``auto`` lets the noise vary where the data say so, ``constant`` does not. On the last problem it is the same.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import edrbo

RUNS = 80
DESIGNS = (np.arange(8) + 0.5) / 8
CONTEXTS = (np.arange(4) + 0.5) / 4


@dataclass(frozen=True)
class Problem:
    """Mean and standard deviation of an outcome at (x, c), and whether it is noisy there rather than quiet."""

    mean: Callable[[float, float], float]
    sd: Callable[[float, float], float]
    noisy: Callable[[float, float], bool]


PROBLEMS = {
    "step": Problem(
        lambda x, c: math.sin(6 * x) + 0.5 * c * x, lambda x, c: 0.4 if x > 0.5 else 0.05, lambda x, c: x > 0.5
    ),
    "context": Problem(
        lambda x, c: -3 * (x - 0.3 - 0.4 * c) ** 2 + c, lambda x, c: 0.03 * math.exp(2.5 * c), lambda x, c: c > 0.5
    ),
    "middle": Problem(
        lambda x, c: math.cos(5 * x) * c + x,
        lambda x, c: 0.04 + 0.4 * math.exp(-(((x - 0.5) / 0.2) ** 2)),
        lambda x, c: abs(x - 0.5) < 0.25,
    ),
    "constant": Problem(lambda x, c: math.sin(6 * x) + 0.5 * c * x, lambda x, c: 0.15, lambda x, c: x > 0.5),
}


def run(problem: Problem, seed: int, noise_model: str) -> dict[str, float]:
    draw = np.random.default_rng([38, 7, seed])
    optimizer = edrbo.Optimizer(
        edrbo.Space({"x": (0, 1)}, {"c": (0, 1)}),
        seed=seed,
        noise_model="auto" if noise_model == "auto" else "constant",
    )
    for number in range(RUNS):
        c = float(draw.random())
        design = {"x": float(draw.random())} if number < RUNS // 2 else optimizer.ask().design
        x = float(design["x"])
        optimizer.tell(design, {"c": c}, problem.mean(x, c) + problem.sd(x, c) * float(draw.standard_normal()))
    halves: dict[bool, list[float]] = {False: [], True: []}
    for c in CONTEXTS.tolist():
        found = optimizer.predict([{"x": float(x)} for x in DESIGNS], context={"c": c})
        for x, low, high in zip(DESIGNS.tolist(), found.outcome_lower, found.outcome_upper, strict=True):
            mean, sd = problem.mean(x, c), problem.sd(x, c)
            halves[problem.noisy(x, c)].append(normal((high - mean) / sd) - normal((low - mean) / sd))
    model = optimizer.model
    varies = model is not None and model.gp.hyper.noise_profile is not None
    return {"varies": float(varies), "quiet": float(np.mean(halves[False])), "noisy": float(np.mean(halves[True]))}


def normal(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def summary(rows: list[dict[str, str]]) -> str:
    lines = []
    for name in PROBLEMS:
        for noise_model in ("auto", "constant"):
            own = [row for row in rows if (row["problem"], row["noise_model"]) == (name, noise_model)]
            if own:
                quiet, noisy, varies = (
                    np.mean([float(row[key]) for row in own]) for key in ("quiet", "noisy", "varies")
                )
                lines.append(
                    f"{name}, {noise_model}: quiet {quiet:.1%}, noisy {noisy:.1%}; noise varies in "
                    f"{varies * len(own):.0f} of {len(own)}"
                )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    rows: list[dict[str, str]] = []
    if options.out.exists():
        with options.out.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    done = {(row["problem"], row["noise_model"], int(row["seed"])) for row in rows}
    for seed in range(options.seeds):
        for name, problem in PROBLEMS.items():
            for noise_model in ("auto", "constant"):
                if (name, noise_model, seed) in done:
                    continue
                row = {"problem": name, "noise_model": noise_model, "seed": str(seed)}
                row |= {key: f"{value:.6g}" for key, value in run(problem, seed, noise_model).items()}
                new = not options.out.exists()
                with options.out.open("a", newline="", encoding="utf-8") as file:
                    writer = csv.DictWriter(file, list(row), lineterminator="\n")
                    if new:
                        writer.writeheader()
                    writer.writerow(row)
                rows.append(row)
    print(summary(rows))


if __name__ == "__main__":
    main()
