"""CPU time of one suggestion, with and without a refit, and of eight at once, at 306 observations of 17 designs and 5
contexts.

    OMP_NUM_THREADS=1 python benchmarks/high_speed.py

The problem is recipe without one of its idle reals: 9 reals, 4 whole numbers and 4 choices, 24 coded columns and 5
contexts. Half of the designs lie anywhere, half around the optimum, as a run leaves them; a refit starts where the
fit before it ended.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
import torch

from edrbo import Optimizer, Space
from edrbo.bench import problems
from edrbo.streams import stream
from edrbo.surrogate.ensemble import fit_sizes

OBSERVATIONS, SEEDS, LEFT_OUT = 306, 5, "reflux"  # 306: the first number above 300 at which a run refits


def state(n: int, method: str, seed: int) -> Optimizer:
    problem = problems.get("recipe")
    assert problem.design is not None
    rng = stream(seed, "benchmark state", "recipe", OBSERVATIONS)
    anywhere, near = rng.random((2, OBSERVATIONS, problem.d_x))
    near = np.clip(problem.x_star + 0.3 * (near - 0.5), 0.0, 1.0)
    designs = problem.snap(np.where((np.arange(OBSERVATIONS) % 2 == 0)[:, None], anywhere, near))
    contexts = problem.sample_contexts(OBSERVATIONS, rng)
    values = problem.evaluate(designs, contexts)
    names = {name: variable for name, variable in problem.design.design.items() if name != LEFT_OUT}
    space = Space(names, {f"c{k + 1}": (0, 1) for k in range(problem.d_c)})
    optimizer = Optimizer(space, method, seed=seed)
    for design, c, y in zip(problem.design.decode_designs(designs[:n]), contexts, values, strict=False):
        del design[LEFT_OUT]
        optimizer.tell(design, c.tolist(), float(y))
    return optimizer


def seconds(optimizer: Optimizer, count: int) -> float:
    start = time.process_time()
    optimizer.ask(count)
    return time.process_time() - start


def main() -> None:
    torch.set_num_threads(1)
    before, size = fit_sizes(OBSERVATIONS)[-2:]
    found: dict[tuple[str, str], list[float]] = {}
    for seed in range(SEEDS):
        for name in ("edrbo", "edrbo-mean"):
            shorter, now = state(before, name, seed), state(size, name, seed)
            assert shorter.model is not None  # all fits up to this one, which are not timed
            optimizer = Optimizer.of(now.state, shorter.fit)
            found.setdefault((name, "refit"), []).append(seconds(optimizer, 1))
            found.setdefault((name, "no refit"), []).append(seconds(Optimizer.of(now.state, optimizer.fit), 1))
            found.setdefault((name, "eight, refit"), []).append(seconds(Optimizer.of(now.state, shorter.fit), 8))
    print(f"{size} observations, {now.space.d_x} coded columns, {now.space.d_c} contexts, {SEEDS} states")
    for (name, which), times in found.items():
        print(f"{name}, {which}: {statistics.median(times):.3g} ({min(times):.3g} … {max(times):.3g}) CPU s")


if __name__ == "__main__":
    main()
