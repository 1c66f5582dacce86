"""CPU time of whole suggestions under each goal, as a multiple of the mean's: at 200 observations, in a run.

    OMP_NUM_THREADS=1 python benchmarks/goal_suggestions.py

What ``goal_speed.py`` leaves out is here: the data are coded, the model is conditioned or fitted again when its turn
comes, and where a goal takes turns with the mean, both turns are taken. The first 200 outcomes are the same for all
goals; then ten suggestions are asked for and reported, and their mean time counts (two seeds, the smaller of two).
Goals take turns, so that a busy moment of the machine is nobody's. Two design variables, a smooth made-up f.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import torch
from goal_speed import GOALS, show

from edrbo import Optimizer, Space

TOLD, ASKED, SEEDS, TIMES = 200, 10, 2, 2


def outcome(x: np.ndarray, c: np.ndarray) -> float:
    tilt = c @ np.linspace(0.5, 1.0, len(c)) * (x[0] - 0.3)
    return float(np.sin(3 * x.sum()) * np.cos(4 * c[0]) + tilt + 0.3 * np.sin(6 * c.sum()))


def seconds(goal: str, d_c: int, seed: int) -> float:
    """Of one suggestion, on average."""
    draw = np.random.default_rng(seed)
    space = Space(design={"x1": (0, 1), "x2": (0, 1)}, context={f"c{k}": (0, 1) for k in range(d_c)})
    optimizer, spent = Optimizer(space, goal=goal, seed=seed), 0.0
    for number in range(TOLD + ASKED + 1):
        x, c = draw.random(2), np.clip(0.5 + 0.2 * draw.standard_normal(d_c), 0.0, 1.0)
        design = dict(zip(space.design_names, x, strict=True))
        if number >= TOLD:
            began = time.process_time()
            suggestion = optimizer.ask()
            spent += time.process_time() - began if number > TOLD else 0.0  # the first fit of all is nobody's
            design, x = suggestion, np.array(list(suggestion.design.values()))
        optimizer.tell(design, c.tolist(), outcome(x, c))
    return spent / ASKED


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # what is made up looks mistyped here and there
    times = [
        [[[seconds(goal, d_c, seed) for goal in GOALS] for d_c in (1, 2, 3)] for seed in range(SEEDS)]
        for _ in range(TIMES)
    ]
    show(np.min(times, axis=0).mean(axis=0))


if __name__ == "__main__":
    main()
