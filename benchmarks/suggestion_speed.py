"""CPU seconds of one suggestion with a refit, one thread: the default beside the method of the paper.

    OMP_NUM_THREADS=1 python benchmarks/suggestion_speed.py

Observations are made up: six of ten designs lie around the best one, as in a run, the others anywhere. Hyper-parameters
were fitted at the size before, as they would have been, and the time is that of the ask that fits them again.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import torch
from states import space_of

from edrbo import Optimizer
from edrbo.bench import problems
from edrbo.surrogate.ensemble import fit_sizes

STATES = (
    *((200, name, 5) for name in ("ackley", "modified-branin")),
    (1000, "ackley", 2),
    (2000, "ackley", 1),
)


def seconds(name: str, size: int, method: str, seed: int) -> float:
    problem, rng = problems.get(name), np.random.default_rng(seed)
    last = fit_sizes(size)[-1]
    before = fit_sizes(last - 1)[-1]
    around = problem.x_star + 0.05 * rng.standard_normal((last, problem.d_x))
    anywhere = rng.random((last, problem.d_x))
    x = np.clip(np.where(rng.random((last, 1)) < 0.6, around, anywhere), 0.0, 1.0)
    c = problem.sample_contexts(last, rng)
    optimizer = Optimizer(space_of(problem), method, seed=seed)
    for i in range(last):
        if i == before:
            optimizer.cancel(optimizer.ask())
        design = dict(zip(optimizer.space.design_names, x[i], strict=True))
        optimizer.tell(design, c[i].tolist(), float(problem.observe(x[i], c[i], rng)))
    began = time.process_time()
    optimizer.ask()
    return time.process_time() - began


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # what is made up looks mistyped here and there
    for size, name, states in STATES:
        for method in ("edrbo-mean", "edrbo"):
            found = [seconds(name, size, method, seed) for seed in range(states)]
            middle, low, high = np.median(found), min(found), max(found)
            print(f"{size} observations, {name}, {method}: {middle:.3f} ({low:.3f} … {high:.3f}) s", flush=True)


if __name__ == "__main__":
    main()
