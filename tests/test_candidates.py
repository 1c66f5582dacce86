"""Questions about some designs only: variables that are held, and lists of candidates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from edrbo.acquisition.search.maximizer import best_listed
from edrbo.errors import AllTriedError, InvalidDesignError, InvalidValueError
from edrbo.lab import Study
from edrbo.optimizer.optimizer import Optimizer
from edrbo.space import Integer, Real, Space

SPACE = Space({"x": (0, 1), "s": Real(0, 2, step=0.1), "n": Integer(1, 5), "k": ["u", "v"]}, {"load": (0, 1)})


def value(design: Any, load: float) -> float:
    return (
        -((design["x"] - load) ** 2)
        - (design["s"] - 1.2) ** 2
        - 0.1 * (design["n"] - 4) ** 2
        + 0.2 * (design["k"] == "v")
    )


def filled(space: Space = SPACE, count: int = 7) -> Optimizer:
    optimizer = Optimizer(space, initial=4, seed=3)
    for load in np.random.default_rng(1).random(count):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, {"load": load}, value(suggestion, load))
    return optimizer


@pytest.fixture(scope="module")
def reported() -> str:
    return filled().to_json()


@pytest.mark.parametrize("count", [0, 7])
def test_what_is_held_stays(reported: str, count: int) -> None:
    """Before and after there is a model; also between the steps, where the machine happens to be."""
    optimizer = Optimizer.from_json(reported) if count else Optimizer(SPACE)
    for fixed in ({"x": 0.3, "k": "u"}, {"s": 0.123}, {"n": 2}, {"x": 1, "s": 0, "n": 5, "k": "v"}):
        suggestion = optimizer.ask(fixed=fixed)
        assert {name: suggestion[name] for name in fixed} == pytest.approx(fixed, abs=1e-9) or "k" in fixed
        assert all(suggestion[name] == part for name, part in fixed.items() if name in ("k", "n"))
        assert suggestion["n"] in range(1, 6)
        assert "s" in fixed or (round(10 * suggestion["s"], 6)).is_integer()
    if count:
        found = optimizer.recommend(fixed={"k": "u", "n": 2})
        assert (found.design["k"], found.design["n"]) == ("u", 2)
        assert found.expected < optimizer.recommend().expected
        assert found.design["s"] == pytest.approx(1.2, abs=0.5)


def test_held_under_constraints() -> None:
    space = Space({"a": (0, 1), "b": (0, 1), "c": (0, 1)}, constraints=["a + b + c == 1"])
    optimizer = Optimizer(space)
    suggestion = optimizer.ask(fixed={"a": 0.25})
    assert suggestion["a"] == 0.25
    assert suggestion["b"] + suggestion["c"] == pytest.approx(0.75, abs=1e-9)
    with pytest.raises(InvalidDesignError):
        optimizer.ask(fixed={"a": 0.7, "b": 0.6})


@pytest.mark.parametrize(
    ("fixed", "words"),
    [
        ({"X": 1}, "did you mean|'X' is not a design variable"),
        ({"load": 0.5}, "'load' is not a design variable"),
        ({"x": 2}, "x is 2, outside 0 to 1"),
        ({"x": "much"}, "must be a finite number"),
        ({"k": "w"}, "not one of its choices"),
        ({"x": [0.1, 0.2]}, "at one value"),
        ([0.3], "give values by name"),
    ],
)
def test_what_cannot_be_held(fixed: Any, words: str) -> None:
    with pytest.raises(InvalidDesignError, match=words):
        Optimizer(SPACE).ask(fixed=fixed)


SHELF = [{"x": x, "s": s, "n": n, "k": k} for x, s, n, k in ((0.1, 0, 1, "u"), (0.5, 1.2, 4, "v"), (0.9, 2, 5, "u"))]


def test_only_these_designs_exist(reported: str) -> None:
    optimizer = Optimizer.from_json(reported)
    assert optimizer.recommend(candidates=SHELF).design == SHELF[1]
    assert optimizer.recommend(candidates=SHELF, fixed={"k": "u"}).design in (SHELF[0], SHELF[2])
    batch = optimizer.ask(3, candidates=SHELF)
    assert sorted(map(dict, batch), key=lambda design: design["x"]) == SHELF
    with pytest.raises(AllTriedError):
        optimizer.ask(candidates=SHELF)
    optimizer.tell(batch[0], {"load": 0.4}, 0.0)
    assert dict(optimizer.ask(candidates=SHELF)) == dict(batch[0])  # it may meet another context
    optimizer.tell(optimizer.pending[-1], {"load": 0.4}, 0.0)
    with pytest.raises(AllTriedError):
        optimizer.ask(candidates=SHELF, repeat=False)


def test_without_contexts_what_was_reported_is_not_asked_again() -> None:
    optimizer = Optimizer(Space({"x": (0, 1)}), initial=2)
    for _ in range(3):
        suggestion = optimizer.ask(candidates=[[0.2], [0.4], [0.9]])
        optimizer.tell(suggestion, value=-abs(suggestion["x"] - 0.3))
    assert sorted(optimizer.observations.x[:, 0]) == [0.2, 0.4, 0.9]
    with pytest.raises(AllTriedError):
        optimizer.ask(candidates=[[0.2], [0.4], [0.9]])
    assert optimizer.ask(candidates=[[0.2], [0.4]], repeat=True)["x"] in (0.2, 0.4)


def test_lists_that_cannot_be() -> None:
    optimizer = Optimizer(Space({"x": (0, 1), "y": (0, 1)}, constraints=["x + y <= 1"]))
    with pytest.raises(InvalidDesignError):
        optimizer.ask(candidates=[])
    with pytest.raises(InvalidDesignError):
        optimizer.ask(candidates=[[0.6, 0.6], [1, 1]])
    with pytest.raises(InvalidDesignError):
        optimizer.ask(candidates=[[0.5, 0.5]], fixed={"x": 0.2})
    with pytest.raises(TypeError, match="'fixd'"):
        optimizer.ask(fixd={"x": 0.2})  # type: ignore[call-overload]
    with pytest.raises(InvalidValueError, match="repeat"):
        optimizer.ask(repeat=True)
    with pytest.raises(InvalidValueError, match="'no'"):
        optimizer.ask(candidates=[[0.5, 0.5]], repeat="no")  # type: ignore[arg-type]
    assert optimizer.ask(candidates=[[0.6, 0.6], [0.5, 0.5]]).design == {"x": 0.5, "y": 0.5}


def test_the_best_of_many_is_found_by_way_of_stand_ins() -> None:
    x = torch.linspace(0, 1, 5001, dtype=torch.float64)[:, None]
    asked = []

    def objective(some: torch.Tensor) -> torch.Tensor:
        asked.append(len(some))
        return -(some[:, 0] - 0.61803).square()

    found = best_listed(
        [lambda some: -(some[:, 0] - 0.6).abs(), lambda some: -(some[:, 0] - 0.615).abs(), objective], x
    )
    assert float(found.x[0]) == pytest.approx(0.618, abs=1.1e-3)
    assert asked == [40]


def test_a_study_is_asked_the_same_way(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "s.db", SPACE, initial=3)
    assert study.ask(fixed={"n": 3})["n"] == 3
    assert all(dict(s) in SHELF for s in study.ask(2, candidates=SHELF))
    (pending,) = [design for design in SHELF if design not in [dict(s) for s in study.pending]]
    assert dict(study.ask(candidates=SHELF)) == pending
    study.tell(study.pending[1], {"load": 0.3}, 1.0)
    assert study.recommend(candidates=SHELF).design in SHELF
