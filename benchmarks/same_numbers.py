"""The same numbers before and after a change that must not change any.

    python benchmarks/same_numbers.py record before.json     # with the old code
    python benchmarks/same_numbers.py compare before.json    # with the new code, on the same machine

Every case is a fixed history, reported to an optimizer, and then what it suggests and recommends. Both use nothing but
the public interface, so that the files of the package may move. Compare on one machine only: the last bits of a matrix
product differ between makes of CPU, and a maximizer may turn such a bit into another of two equally good designs.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import edrbo

Numbers = dict[str, list[float]]
Case = Callable[[], Numbers]


def valley(x: np.ndarray, c: np.ndarray) -> float:
    return float(-((x - 0.3 - 0.4 * c.mean()) ** 2).sum() + 0.3 * np.sin(9 * x[0]) * c[0])


def hills(x: np.ndarray, c: np.ndarray) -> float:
    one = 1.2 * math.exp(-12 * float(((x - 0.25) ** 2).sum()) - float(((c - 0.4) ** 2).sum()))
    two = math.exp(-6 * float(((x - 0.75) ** 2).sum()))
    return one + two


def kinked(x: np.ndarray, c: np.ndarray) -> float:
    return float(9 * min(x[0], c[0]) + max(0.0, x[0] - c[0]) - 5 * x[0] - 0.5 * np.abs(x[1:]).sum())


PROBLEMS = {"valley": (valley, 1, 1), "kinked": (kinked, 2, 1), "hills": (hills, 2, 2)}
SIZES = (8, 30, 60)


def box_space(d_x: int, d_c: int) -> edrbo.Space:
    return edrbo.Space({f"x{i}": (0.0, 1.0) for i in range(d_x)}, {f"c{k}": (0.0, 1.0) for k in range(d_c)})


def reported(optimizer: edrbo.Optimizer, f: Callable[..., float], d_x: int, d_c: int, n: int) -> edrbo.Optimizer:
    rng = np.random.default_rng(n)
    for _ in range(n):
        x, c = rng.random(d_x), np.clip(rng.normal(0.5, 0.2, d_c), 0, 1)
        design = {f"x{i}": float(value) for i, value in enumerate(x)}
        optimizer.tell(design, {f"c{k}": float(value) for k, value in enumerate(c)}, f(x, c))
    return optimizer


def numbers(optimizer: edrbo.Optimizer, ask: dict[str, Any] | None = None, **context_distribution: Any) -> Numbers:
    suggestions = optimizer.ask(**(ask or {}), **context_distribution)
    listed = suggestions if isinstance(suggestions, list) else [suggestions]
    found = optimizer.recommend(**context_distribution)
    values = [found.expected, found.disagreement, *found.context_effect.values()]
    return {
        "ask": [_number(value) for suggestion in listed for value in suggestion.design.values()],
        "recommend": [_number(value) for value in found.design.values()],
        "values": [float(value) for value in values],
        "intervals": [float(value) for value in (*found.interval, found.robust, found.worst_case)],
    }


def _number(value: Any) -> float:
    return float(sum(ord(letter) for letter in value)) if isinstance(value, str) else float(value)


def plain(method: str, problem: str, n: int) -> Case:
    f, d_x, d_c = PROBLEMS[problem]
    return lambda: numbers(reported(edrbo.Optimizer(box_space(d_x, d_c), method, seed=n), f, d_x, d_c, n))


def mixed(n: int, seed: int, **settings: Any) -> edrbo.Optimizer:
    """A mixed space, with what a plant does: late and missing contexts, failures, contexts alone."""
    space = edrbo.Space(
        {"speed": (10, 60), "rate": edrbo.Real(1e-3, 1, log=True), "layers": edrbo.Integer(1, 6), "kind": ["a", "b"]},
        {"humidity": (0, 100), "price": None},
    )
    optimizer, rng = edrbo.Optimizer(space, seed=seed, **settings), np.random.default_rng(seed)
    optimizer.observe_context(np.column_stack([rng.normal(50, 10, 30), rng.normal(3, 1, 30)]))
    for i in range(n):
        suggestion = optimizer.ask() if i < 12 else _random_design(rng)
        design = suggestion.design if isinstance(suggestion, edrbo.Suggestion) else suggestion
        context = {"humidity": float(rng.normal(50, 10)), "price": float(rng.normal(3, 1))}
        y = (
            -(((design["speed"] - 30) / 20) ** 2)
            - 0.2 * abs(design["layers"] - 3)
            - 0.1 * (math.log10(design["rate"]) + 2) ** 2
            + 0.3 * (design["kind"] == "b")
            + 0.004 * context["humidity"] * context["price"]
        )
        if i % 9 == 4:
            optimizer.tell(suggestion, failed=True)
        elif i % 7 == 3:
            optimizer.tell(suggestion, None, y)
            if isinstance(suggestion, edrbo.Suggestion):
                optimizer.tell_context(suggestion, context)
        elif i % 5 == 2:
            optimizer.tell(suggestion, None, y)
        else:
            optimizer.tell(suggestion, context, y, noise_variance=0.01 if i % 4 == 1 else None)
    return optimizer


def _random_design(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "speed": float(rng.uniform(10, 60)),
        "rate": float(10 ** rng.uniform(-3, 0)),
        "layers": int(rng.integers(1, 7)),
        "kind": "ab"[rng.integers(2)],
    }


def cases() -> Iterator[tuple[str, Case]]:
    for method in edrbo.method_names():
        for problem in PROBLEMS:
            for n in SIZES:
                yield f"{method} {problem} {n}", plain(method, problem, n)
    for seed in range(4):
        for n in (6, 18, 40):
            direction = "minimize" if seed % 2 else "maximize"
            yield f"mixed {direction} {n} {seed}", _of_mixed(n, seed, direction=direction)
    for n in (18, 40):
        yield f"mixed batch {n}", _of_mixed(n, 7, {"n": 3})
        yield (
            f"mixed forecast {n}",
            _of_mixed(n, 7, context_distribution={"forecast": [[40.0, 2.0], [60.0, 3.5], [45.0, 2.5]]}),
        )
        yield f"mixed context {n}", _of_mixed(n, 7, context_distribution={"context": {"humidity": 40.0, "price": 2.0}})
        yield f"mixed forgetting {n}", _of_mixed(n, 7, context_half_life=10.0)
        yield f"mixed warped {n}", _of_mixed(n, 7, method="edrbo-warped")


def _of_mixed(n: int, seed: int, ask: Any = None, context_distribution: Any = None, **settings: Any) -> Case:
    return lambda: numbers(mixed(n, seed, **settings), ask, **(context_distribution or {}))


def run() -> dict[str, Numbers]:
    import torch

    torch.set_num_threads(1)
    found = {}
    for name, case in cases():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[name] = case()
        print(name, file=sys.stderr)
    return found


def compare(before: dict[str, Numbers], after: dict[str, Numbers]) -> bool:
    """Print which cases differ by more than 1e-9, relative to one or to the number; whether there are none."""
    good = True
    for kind in ("ask", "recommend", "values", "intervals"):
        apart = {name: _apart(old[kind], after[name][kind]) for name, old in before.items()}
        other = {name: far for name, far in apart.items() if not far <= 1e-9}
        good &= not other
        print(f"{kind:10} {len(before) - len(other)} of {len(before)} cases the same")
        for name, far in other.items():
            print(f"           {name}: {far:.1e}")
    return good


def _apart(old: list[float], new: list[float]) -> float:
    if len(new) != len(old):
        return math.inf
    return max((abs(one - two) / max(1.0, abs(one)) for one, two in zip(old, new, strict=True)), default=0.0)


def main() -> int:
    if len(sys.argv) != 3 or sys.argv[1] not in ("record", "compare"):
        print(__doc__)
        return 2
    path = Path(sys.argv[2])
    if sys.argv[1] == "record":
        path.write_text(json.dumps(run()), encoding="utf-8")
        return 0
    return 0 if compare(json.loads(path.read_text(encoding="utf-8")), run()) else 1


if __name__ == "__main__":
    sys.exit(main())
