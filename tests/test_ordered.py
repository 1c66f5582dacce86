"""Choices that have an order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edrbo.errors import InvalidSpaceError
from edrbo.lab.config import read_toml, write_toml
from edrbo.lab.entry import read_specification, specification
from edrbo.optimizer.optimizer import Optimizer
from edrbo.records.settings import Settings
from edrbo.space import Categorical, Space

SIZES = Categorical(("small", "medium", "large"), ordered=True)
SPACE = Space({"x": (0, 1), "size": SIZES, "kind": ["u", "v"]})


def test_coding() -> None:
    assert SPACE.d_x == 4
    assert [(column.kind, column.size) for column in SPACE.columns] == [("real", 0), ("integer", 3), ("categorical", 2)]
    rows = [{"x": 0.5, "size": size, "kind": "u"} for size in SIZES.choices]
    coded = SPACE.encode_designs(rows)
    np.testing.assert_allclose(coded[:, 1], [1 / 6, 1 / 2, 5 / 6])
    assert SPACE.decode_designs(coded) == rows
    np.testing.assert_array_equal(SPACE.snap(coded), coded)
    np.testing.assert_allclose(
        SPACE.snap([[0.2, y, 0, 1] for y in (0, 0.32, 0.34, 1)])[:, 1], np.array([1, 1, 3, 5]) / 6
    )
    np.testing.assert_array_equal(SPACE.levels("size"), coded[:, 1:2])
    assert SIZES.describe() == "small < medium < large"
    with pytest.raises(InvalidSpaceError, match="ordered"):
        Categorical(("a", "b"), ordered=1)  # type: ignore[arg-type]


def test_it_is_kept_everywhere(tmp_path: Path) -> None:
    assert Space.from_dict(SPACE.to_dict()) == SPACE
    assert "ordered" not in Categorical(("a", "b")).to_dict()
    assert Space({"x": (0, 1), "size": list(SIZES.choices), "kind": ["u", "v"]}) != SPACE
    assert read_specification("small < medium<large") == SIZES
    assert read_specification(specification(SIZES)) == SIZES
    write_toml(tmp_path / "s.toml", "s.db", "s", Settings(SPACE))
    assert read_toml(tmp_path / "s.toml").settings.space == SPACE


def test_a_neighbor_tells_of_a_neighbor() -> None:
    """The best of nine levels is found though few were tried; the order of the choices is that of the outcome."""
    levels = [f"level {k}" for k in range(9)]
    optimizer = Optimizer(Space({"level": Categorical(tuple(levels), ordered=True)}), initial=3, seed=1)
    tried = set()
    for _ in range(6):
        suggestion = optimizer.ask()
        tried.add(suggestion["level"])
        optimizer.tell(suggestion, value=-((levels.index(suggestion["level"]) - 6) ** 2))
    assert optimizer.recommend().design["level"] == "level 6"
    assert len(tried) < 9


def test_under_constraints_and_held() -> None:
    space = Space({"x": (0, 1), "size": SIZES}, constraints=[lambda d: d["x"] <= 0.2 or d["size"] == "large"])
    optimizer = Optimizer(space, initial=4)
    for suggestion in optimizer.ask(4):
        assert suggestion["x"] <= 0.2 or suggestion["size"] == "large"
    held = optimizer.ask(fixed={"size": "medium"})
    assert held["size"] == "medium"
    assert held["x"] <= 0.2
