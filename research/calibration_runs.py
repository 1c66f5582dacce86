"""The runs on which intervals are judged: what the default method reported itself, with the forecasts it made on the
way.

    nice -n 15 python research/calibration_runs.py RUNS [--seeds 0:10] [--problems all] [--part 0/1] [--method edrbo]

One file a run, RUNS/PROBLEM-NOISE-SEED.npz; what is there is not run again. Seeds come first, so that a few seeds of
all problems are there early.

    x, c, y        200 × d_x, 200 × d_c, 200: designs, contexts, outcomes
    mean, sd       200 × M: each expert's belief about f(x_t, c_t) before y_t was reported (NaN before the first), and
    noise          200 × M: the variance of its observation noise in units of y
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from arguments import problem_names, seed_range

from edrbo import Optimizer
from edrbo.bench import problems
from edrbo.bench.learners.learner import Setup
from edrbo.bench.problems.oracle.shift import with_noise
from edrbo.bench.problems.problem import Problem
from edrbo.streams import stream

EVALUATIONS, INITIAL = 200, 5
CHECKPOINTS = (20, 40, 100, 200)
NOISES = (0.0, 0.05)  # standard deviation, as a fraction of the range of the expected value


def run(name: str, share: float, seed: int, method: str = "edrbo", until: int = EVALUATIONS) -> dict[str, Any]:
    base = problems.get(name)
    problem = with_noise(base, share * base.value_range)
    contexts = problem.sample_contexts(EVALUATIONS, stream(seed, "contexts", name))
    optimizer = optimizer_of(problem, seed, method)
    rows: dict[str, list[Any]] = {key: [] for key in ("x", "c", "y", "mean", "sd", "noise")}
    for t in range(until):
        suggestion, c = optimizer.ask(), contexts[t]
        x = np.array(list(suggestion.design.values()))
        y = float(problem.observe(x, c, stream(seed, "observation noise", name, t)))
        forecast = _forecast(optimizer, np.concatenate([x, c]))
        optimizer.tell(suggestion, c.tolist(), y)
        for key, value in zip(rows, (x, c, y, *forecast), strict=True):
            rows[key].append(value)
    return {key: np.array(value) for key, value in rows.items()}


def optimizer_of(problem: Problem, seed: int, method: str = "edrbo") -> Optimizer:
    return Optimizer(Setup(problem.d_x, problem.d_c, seed, INITIAL).space, method, seed=seed, initial=INITIAL)


def _forecast(optimizer: Any, joint: Any) -> tuple[Any, Any, Any]:
    model = optimizer.model
    if model is None:
        nothing = np.full(4, np.nan)
        return nothing, nothing, nothing
    # the coding of contexts is the identity here: they lie in their bounds [0, 1]
    mean, sd = model.moments(torch.from_numpy(joint)[None])
    noise = model.gp.hyper.noise_variance * model.scaling.scale**2
    return mean[:, 0].numpy(), sd[:, 0].numpy(), noise.numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=Path)
    parser.add_argument("--seeds", type=seed_range, default="0:10")
    parser.add_argument("--problems", type=problem_names, default="all")
    parser.add_argument("--method", default="edrbo")
    parser.add_argument("--noises", default=",".join(map(str, NOISES)))
    parser.add_argument("--until", type=int, default=EVALUATIONS, help="evaluations of a run")
    parser.add_argument("--part", default="0/1", help="i/n: every n-th run, beginning with the i-th")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.runs.mkdir(parents=True, exist_ok=True)
    index, count = map(int, options.part.split("/"))
    todo = [
        (name, share, seed)
        for seed in options.seeds
        for share in map(float, options.noises.split(","))
        for name in options.problems
    ]
    for name, share, seed in todo[index::count]:
        target = options.runs / f"{name}-{share:g}-{seed}.npz"
        if target.exists():
            continue
        record = run(name, share, seed, options.method, options.until)
        partial = target.with_suffix(".part.npz")
        np.savez_compressed(partial, **record)
        os.replace(partial, target)
        print(target.name, flush=True)


if __name__ == "__main__":
    main()
