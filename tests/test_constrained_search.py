"""Constraints from the first suggestion to the recommendation, in all the places where a space is kept."""

from __future__ import annotations

import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from edrbo.acquisition.search.local_search import climb_inside
from edrbo.acquisition.search.maximizer import maximize
from edrbo.errors import ConstraintWarning, NotStorableError, StudyError
from edrbo.lab import Study
from edrbo.lab.config import read_toml, write_toml
from edrbo.optimizer.optimizer import Optimizer
from edrbo.space import Integer, Real, Space


class Bumps:
    """A smooth function of the unit cube with several maxima."""

    def __init__(self, d: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.centers, self.heights = torch.from_numpy(random.random((6, d))), torch.from_numpy(random.random(6) + 0.5)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        apart = (x[:, None] - self.centers).square().sum(-1)
        return (self.heights * (-apart / 0.08).exp()).sum(-1)


@pytest.mark.parametrize(
    "constraints",
    [["a + b <= 0.7"], ["a + 2 * b == 1"], ["a * b <= 0.05", "a + b >= 0.6"], ["(a - 0.5)**2 + b**2 <= 0.1"]],
)
def test_the_maximum_is_that_of_a_fine_grid(constraints: list[str]) -> None:
    space = Space({"a": (0, 1), "b": (0, 1)}, constraints=constraints)
    assert space.region is not None
    line = np.linspace(0, 1, 401)
    grid = np.array(list(product(line, line)))
    if "==" in constraints[0]:
        grid = np.stack([1 - 2 * line / 2, line / 2], axis=1)
    grid = grid[space.region.inside(grid)]
    for seed in range(2):
        bumps = Bumps(2, seed)
        found = maximize([bumps], space, seed=seed)
        assert space.region.inside(found.x.numpy()[None]).all()
        assert found.value >= float(bumps(torch.from_numpy(grid)).max()) - 1e-4
        assert found.value == pytest.approx(float(bumps(found.x[None])), abs=1e-12)


def test_levels_and_steps_that_are_bound_together() -> None:
    """All designs of a mixed space by enumeration."""
    design = {"n": Integer(0, 6), "m": Integer(0, 6), "s": Real(0, 1, step=0.1), "k": ["u", "v"]}
    space = Space(design, constraints=["n + m == 6", "s <= n / 6"])
    rows = [
        {"n": n, "m": 6 - n, "s": round(0.1 * s, 1), "k": k}
        for n, s, k in product(range(7), range(11), "uv")
        if 0.1 * s <= n / 6 + 1e-9
    ]
    every = torch.from_numpy(space.encode_designs(rows))
    for seed in range(2):
        bumps = Bumps(space.d_x, seed)
        found = maximize([bumps], space, seed=seed)
        assert space.decode_designs(found.x.numpy())[0] in rows
        assert found.value == pytest.approx(float(bumps(every).max()), abs=1e-9)


def mixture() -> Space:
    return Space({"a": (0, 1), "b": (0, 1), "c": (0, 1)}, {"load": (0, 1)}, constraints=["a + b + c == 1", "a <= 0.5"])


def profit(design: Any, load: float) -> float:
    return -((design["a"] - 0.8) ** 2) - (design["b"] - 0.3 - 0.2 * load) ** 2 - (design["c"] - 0.1) ** 2


def is_inside(design: Any) -> bool:
    return abs(design["a"] + design["b"] + design["c"] - 1) < 1e-8 and design["a"] <= 0.5


@pytest.fixture(scope="module")
def reported() -> Optimizer:
    optimizer = Optimizer(mixture(), initial=4, seed=1)
    for load in np.random.default_rng(0).random(9):
        suggestion = optimizer.ask()
        assert is_inside(suggestion)
        optimizer.tell(suggestion, {"load": load}, profit(suggestion, load))
    return optimizer


def test_everything_that_is_suggested_is_inside(reported: Optimizer) -> None:
    again = Optimizer.from_json(reported.to_json())
    assert again.space == reported.space
    batch = again.ask(3)
    assert all(map(is_inside, batch))
    found = again.recommend()
    assert is_inside(found.design)
    assert found.design == reported.recommend().design
    assert found.design["a"] == pytest.approx(0.5, abs=0.01)  # the mean load is 1/2: a is held back, the others are met
    assert found.design["b"] == pytest.approx(0.4, abs=0.06)
    again.tell(batch[0], failed=True)
    assert is_inside(again.recommend().design)
    assert all(map(is_inside, again.tradeoff().designs))


def test_what_was_run_outside_is_kept_with_a_warning(reported: Optimizer) -> None:
    optimizer = Optimizer.from_json(reported.to_json())
    outside = {"a": 0.7, "b": 0.2, "c": 0.1}
    with pytest.warns(ConstraintWarning, match="'a <= 0.5'"):
        optimizer.tell(outside, {"load": 0.5}, 0.5)
    suggestion = optimizer.ask()
    assert is_inside(suggestion)
    with pytest.warns(ConstraintWarning):
        optimizer.tell(suggestion, {"load": 0.5}, -1.0, design=outside)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.tell({"a": 0.5, "b": 0.2, "c": 0.3}, {"load": 0.5}, -0.1)
    assert is_inside(optimizer.recommend().design)  # though the best outcome lies outside


def test_a_batch_of_first_designs_fills_the_region() -> None:
    space = Space({"a": (0, 1), "b": (0, 1)}, constraints=["a + b <= 0.3"])
    batch = Optimizer(space, initial=8, seed=2).ask(8)
    designs = np.array([[s["a"], s["b"]] for s in batch])
    assert (designs.sum(axis=1) <= 0.3).all()
    assert len(np.unique(designs, axis=0)) == 8
    assert (designs.sum(axis=1) < 0.29).sum() >= 4  # not all at the edge
    one_by_one = Optimizer(space, initial=8, seed=2)
    assert [one_by_one.ask().design for _ in range(8)] == [s.design for s in batch]


def test_a_study_keeps_its_constraints(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "s.db", mixture())
    assert is_inside(study.ask())
    assert Study.open(tmp_path / "s.db").space.constraints == mixture().constraints
    other = Space(study.space.design, study.space.context, ["a + b + c == 1"])
    with pytest.raises(StudyError, match=r"'a <= 0\.5'"):
        Study.open(tmp_path / "s.db", other)
    study.amend({"space": other.to_dict()})
    assert [constraint.text for constraint in study.space.constraints] == ["a + b + c == 1"]
    file = tmp_path / "s.toml"
    write_toml(file, "s.db", "s", study.settings)
    assert 'constraints = ["a + b + c == 1"]' in file.read_text()
    assert read_toml(file).settings == study.settings
    with pytest.raises(NotStorableError):
        Study.open(tmp_path / "t.db", Space({"a": (0, 1)}, constraints=[lambda design: True]))


def test_a_climb_ends_where_it_gains_no_more_than_its_tolerance() -> None:
    """A long valley: its floor is reached at once, its end only by many small gains."""
    space = Space({"a": (0, 1), "b": (0, 1)}, constraints=["a + b <= 1.8"])
    assert space.region is not None
    calls = [0]

    def valley(points: Any, rows: Any = None) -> Any:
        calls[0] += 1
        a, b = points.T
        off = b - a**2
        slope = np.stack([-800 * a * off + 2 * (a - 0.9), 400 * off], axis=1)
        return 200 * off**2 + (a - 0.9) ** 2, slope

    start, free = np.array([[0.05, 0.9]]), np.array([True, True])
    found = []
    for tolerance in (1e-8, 1e-2):
        calls[0] = 0
        end = climb_inside(valley, start, free, space.region, 100, tolerance)
        assert space.region.inside(end).all()
        found.append((calls[0], float(valley(end)[0][0])))
    (many, best), (few, good) = found
    assert best == pytest.approx(0.0, abs=1e-6)
    assert few < many
    assert good < valley(start)[0][0] / 100
