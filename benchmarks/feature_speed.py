"""What each feature adds to a suggestion: CPU seconds of `ask` on a small mixed problem, one thread.

    OMP_NUM_THREADS=1 python benchmarks/feature_speed.py [rows]

Thirty runs of two numbers, a whole number and one context; the hyper-parameters are those of these runs already. With
`failures` six more have failed behind a wall, with `choices` the whole number is a choice of three and one of four is
added, with `earlier` there are 40 runs of an earlier study. Median (least and largest) of some seeds, and the ratio to
the plain one.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
import torch

from edrbo import Optimizer, Real, Space

RUNS, FAILED, SEEDS = 30, 6, 7
ROWS = (
    (),
    ("constraint",),
    ("failures",),
    ("choices",),
    ("earlier",),
    ("tolerance",),
    ("constraint", "failures"),
    ("constraint", "failures", "choices"),
    ("constraint", "failures", "choices", "earlier"),
)


def space_of(features: tuple[str, ...]) -> Space:
    tolerance = {"tolerance": 2.0} if "tolerance" in features else {}
    design: dict[str, Any] = {"speed": Real(10, 60, **tolerance), "dose": (1.0, 9.0), "layers": (1, 8)}
    if "choices" in features:
        design |= {"layers": ["one", "two", "three"], "kind": ["a", "b", "c", "d"]}
    constraints = ["speed * dose <= 300"] if "constraint" in features else []
    return Space(design, {"humidity": (0.0, 1.0)}, constraints)


def designs(space: Space, count: int, random: np.random.Generator) -> list[dict[str, Any]]:
    return space.decode_designs(space.admit(random.random((count, space.d_x))))


def outcome(design: dict[str, Any], humidity: float) -> float:
    layers = design["layers"]
    level = {"one": 0.0, "two": 0.5, "three": 0.2}[layers] if isinstance(layers, str) else -0.05 * (layers - 4) ** 2
    speed, dose = (design["speed"] - 10) / 50, (design["dose"] - 1) / 8
    return float(np.sin(4 * speed + humidity) - 2 * (dose - 0.4 * humidity - 0.2) ** 2 + level)


def made(features: tuple[str, ...], seed: int) -> Optimizer:
    """With all its runs, and fitted to none yet."""
    random, space = np.random.default_rng(seed), space_of(features)
    earlier = None
    if "earlier" in features:
        from edrbo import EarlierStudy

        known, humidity = designs(space, 40, random), random.random(40)
        values = [2 * outcome(x, h + 0.1) + 3 for x, h in zip(known, humidity, strict=True)]
        earlier = [EarlierStudy("line 1", known, values, {"humidity": humidity})]
    more: dict[str, Any] = {} if earlier is None else {"earlier": earlier}
    optimizer = Optimizer(space, seed=seed, **more)
    for design in designs(space, RUNS, random):
        humidity = random.random()
        optimizer.tell(design, {"humidity": humidity}, outcome(design, humidity) + 0.05 * random.standard_normal())
    if "failures" in features:
        walled = [x for x in designs(space, 200, random) if x["speed"] > 45][:FAILED]
        for design in walled:
            optimizer.tell(design, {"humidity": random.random()}, failed=True)
    return optimizer


def seconds(features: tuple[str, ...], seed: int) -> float:
    optimizer = made(features, seed)
    optimizer.cancel(optimizer.ask())
    began = time.process_time()
    optimizer.ask()
    return time.process_time() - began


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    seconds((), 0)
    plain = 0.0
    for features in ROWS[: int(sys.argv[1]) if len(sys.argv) > 1 else None]:
        found = [seconds(features, seed) for seed in range(SEEDS)]
        middle = float(np.median(found))
        plain = plain or middle
        name = " + ".join(features) or "plain"
        ends = f"({min(found):.3f} … {max(found):.3f})"
        print(f"{name:<44}{middle:>7.3f} s {ends:<20}{middle / plain:>5.1f} ×", flush=True)


if __name__ == "__main__":
    main()
