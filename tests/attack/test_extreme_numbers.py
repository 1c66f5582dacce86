"""The attack by numbers: data as extreme as they come. Every ask and every recommendation is finite, or says in a typed
error or a warning why not, and takes at most ten seconds. The times are printed (pytest -s, or -rP)."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from edrbo import Optimizer, Space
from edrbo.errors import EdrboError
from edrbo.records.outcomes import Limit, Maximize, Minimize

MOST_SECONDS = 10.0  # of CPU, for one ask or recommendation
PLAIN = Space({"x": (0.0, 1.0), "y": (0.0, 1.0)}, {"c": (0.0, 1.0)})
Case = Callable[[], Optimizer]


def reported(
    space: Space,
    value: Callable[[int, dict[str, Any], np.ndarray], Any],
    count: int = 12,
    context: Callable[[int], list[Any]] | None = None,
    **choices: Any,
) -> Optimizer:
    """An optimizer that has been reported ``count`` outcomes, of designs of its own."""
    optimizer = Optimizer(space, initial=count, seed=3, **choices)
    rng = np.random.default_rng(5)
    for k in range(count):
        suggestion = optimizer.ask()
        seen = (rng.random(space.d_c).tolist() if context is None else context(k)) if space.d_c else None
        found = value(k, suggestion.design, rng)
        optimizer.tell(suggestion, seen, failed=True) if found is None else optimizer.tell(suggestion, seen, found)
    return optimizer


def hill(k: int, design: dict[str, Any], rng: np.random.Generator) -> float:
    return -((design["x"] - 0.3) ** 2) - (design["y"] - 0.6) ** 2 + 0.01 * float(rng.normal())


def scaled(by: float, shift: float = 0.0) -> Case:
    return lambda: reported(PLAIN, lambda *given: by * hill(*given) + shift)


def repeated(count: int) -> Case:
    def make() -> Optimizer:
        optimizer = Optimizer(PLAIN, initial=4, seed=3)
        for k in range(count):
            optimizer.tell({"x": 0.5, "y": 0.5}, [0.5], 1.0 + (k % 3) * 1e-9)
        return optimizer

    return make


def outcomes(**aims: Any) -> Case:
    def make() -> Optimizer:
        values = lambda *given: {"gloss": hill(*given), "haze": hill(*given) ** 2}  # noqa: E731
        return reported(PLAIN, values, outcomes={"gloss": Maximize(), **aims})

    return make


def goal(text: str) -> Case:
    return lambda: reported(PLAIN, hill, goal=text)


def wide(count: int) -> Case:
    space = Space({f"x{k}": (0.0, 1.0) for k in range(count)}, {"c": (0.0, 1.0)})
    return lambda: reported(space, lambda k, design, rng: -sum((part - 0.4) ** 2 for part in design.values()), 15)


def levels(count: int) -> Case:
    space = Space({"kind": [f"level {k}" for k in range(count)], "x": (0.0, 1.0)}, {"c": (0.0, 1.0)})
    return lambda: reported(space, lambda k, design, rng: len(design["kind"]) - design["x"], 15)


def within(*constraints: str) -> Case:
    variables = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
    return lambda: reported(Space(variables, {"c": (0.0, 1.0)}, list(constraints)), hill)


CASES: dict[str, Case] = {
    "constant outcomes": lambda: reported(PLAIN, lambda *_: 7.0),
    "constant outcomes of zero": lambda: reported(PLAIN, lambda *_: 0.0),
    "constant but for one": lambda: reported(PLAIN, lambda k, *_: float(k == 3)),
    "scale of 1e300": scaled(1e300),
    "scale of 1e-300": scaled(1e-300),
    "scale of 1e-310, subnormal": scaled(1e-310),
    "a small hill on 1e15": scaled(1.0, 1e15),
    "one outlier of 1e300": lambda: reported(PLAIN, lambda k, *rest: 1e300 if k == 4 else hill(k, *rest)),
    "both ends of floats": lambda: reported(PLAIN, lambda k, *_: (-1.0) ** k * 1.7e308),
    "300 duplicates": repeated(300),
    "one observation": repeated(1),
    "two observations": repeated(2),
    "all failed": lambda: reported(PLAIN, lambda *_: None),
    "all failed but one": lambda: reported(PLAIN, lambda k, *rest: hill(k, *rest) if k == 5 else None),
    "constant contexts": lambda: reported(PLAIN, hill, context=lambda k: [0.5]),
    "contexts that differ by 1e-12": lambda: reported(PLAIN, hill, context=lambda k: [0.5 + k * 1e-12]),
    "contexts of 1e300": lambda: reported(
        Space({"x": (0.0, 1.0), "y": (0.0, 1.0)}, {"c": None}), hill, context=lambda k: [k * 1e300 / 12]
    ),
    "contexts far outside": lambda: reported(PLAIN, hill, context=lambda k: [1e6 * k]),
    "bounds of 1e300": lambda: reported(
        Space({"x": (-1e300, 1e300), "y": (0.0, 1.0)}, {"c": (0.0, 1.0)}), lambda k, d, r: d["x"] / 1e300 + d["y"]
    ),
    "bounds of 1e-300": lambda: reported(
        Space({"x": (0.0, 1e-300), "y": (0.0, 1.0)}, {"c": (0.0, 1.0)}), lambda k, d, r: d["x"] * 1e300 + d["y"]
    ),
    "60 design variables": wide(60),
    "200 levels": levels(200),
    "a sliver": within("x + y <= 1.0001", "x + y >= 1"),
    "an equality surface": within("x + y == 1"),
    "a point": within("x == 0.25", "y == 0.75"),
    "a region that is empty": within("x + y <= -1"),
    "an impossible limit": outcomes(haze=Limit(upper=-1e9)),
    "a limit without a chance": outcomes(haze=Limit(lower=1e300, probability=0.999999)),
    "a limit that always holds": outcomes(haze=Limit(upper=1e300)),
    "a weight of 1e-300": outcomes(haze=Minimize(weight=1e-300)),
    "an absurd quantile": goal("quantile:1e-12"),
    "the worst 1e-9": goal("cvar:1e-9"),
    "a target of 1e300": goal("reach:1e300"),
    "a ball of 1e300": goal("robust:1e300"),
}


def checked(what: str, call: Callable[[], Any], numbers: Callable[[Any], list[float]]) -> str:
    """What came of a call, in words."""
    begun = time.process_time()
    said = ""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            values = numbers(call())
        except EdrboError as problem:
            said = f"{type(problem).__name__}: {problem.message}"
        else:
            ours = [one for one in found if type(one.message).__module__.startswith("edrbo")]
            strange = [one for one in found if one not in ours]
            assert not strange, f"{what}: {strange[0].message}"
            assert all(map(math.isfinite, values)) or ours, f"{what}: {values}"
            said = ", ".join(dict.fromkeys(type(one.message).__name__ for one in ours))
    seconds = time.process_time() - begun
    assert seconds < MOST_SECONDS, f"{what} took {seconds:.1f} s"
    return f"{what} {seconds:.2f} s{f', {said}' if said else ''}"


@pytest.mark.parametrize("name", CASES)
def test_numbers(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            optimizer = CASES[name]()
        except EdrboError as problem:
            print(f"{name}: refused before anything was asked: {problem.message}")
            return
    asked = checked("ask", optimizer.ask, lambda found: settings(optimizer.space, found.design))
    answered = checked("recommend", optimizer.recommend, lambda found: answer(optimizer.space, found))
    print(f"{name}: {asked}; {answered}")


def settings(space: Space, design: dict[str, Any]) -> list[float]:
    return [float(part) for part in space.encode_designs([design])[0]]


def answer(space: Space, found: Any) -> list[float]:
    """Every number of it."""
    ends = [*found.value_interval, *found.interval, *found.outcome_interval]
    return [*settings(space, found.design), found.value, found.expected, found.robust, found.worst_case, *ends]
