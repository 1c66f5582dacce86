"""Optimizers stored by version 0.1 open and know the same. Its code wrote the files; never write them anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edrbo.optimizer.optimizer import Optimizer
from edrbo.records.state import same_state

FOLDER = Path(__file__).with_name("written-by-0.1.0")


@pytest.mark.parametrize("name", ["contexts", "minimize", "alone"])
def test_the_same_state(name: str) -> None:
    optimizer = Optimizer.from_json((FOLDER / f"{name}.json").read_text())
    expected: dict[str, Any] = json.loads((FOLDER / f"{name}.expected.json").read_text())
    found = optimizer.observations
    nan = float("nan")
    assert found.x.tolist() == expected["x"]
    assert found.y.tolist() == expected["y"]
    np.testing.assert_array_equal(found.c.ravel(), [nan if value is None else value for value in expected["c"]])
    np.testing.assert_array_equal(found.noise, [nan if value is None else value for value in expected["noise"]])
    rows, weights = optimizer.context_log.weighted(optimizer.space.d_c, None)
    assert rows.ravel().tolist() == expected["contexts"]
    assert weights.tolist() == expected["weights"]
    assert [suggestion.design for suggestion in optimizer.pending] == expected["pending"]
    assert len(optimizer.state.failed) == expected["failed"]
    assert optimizer.state.next_id >= expected["next_id"]
    assert same_state(Optimizer.from_json(optimizer.to_json()).state, optimizer.state)
