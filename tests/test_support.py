"""An answer beyond everything tried says so and names the nearest runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edrbo import Optimizer, Space
from edrbo.text import answer_text

SPACE = Space(design={"x": (0, 1), "y": (0, 1)}, context={"c": (0, 1)})
SETTINGS = Optimizer(SPACE).settings


def hill(x: float, y: float, c: float) -> float:
    return 3.0 - 4.0 * (x - 0.5) ** 2 - 4.0 * (y - 0.5) ** 2 + 0.1 * c


def around(radius: float, count: int) -> np.ndarray:
    angle = np.linspace(0, 2 * np.pi, count, endpoint=False)
    return 0.5 + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


RINGS = np.concatenate([around(0.5, 8), around(0.35, 8)])


def optimizer_with(designs: np.ndarray) -> Optimizer:
    optimizer = Optimizer(SPACE, seed=1)
    for x, y in designs:
        optimizer.tell({"x": float(x), "y": float(y)}, {"c": 0.5}, hill(float(x), float(y), 0.5))
    return optimizer


def test_a_hilltop_between_the_runs_is_untested() -> None:
    # three rings: of two, with their hyper-parameters in doubt, the hill may as well be flat on top
    answer = optimizer_with(np.concatenate([RINGS, around(0.24, 8)])).recommend()
    assert answer.expected > max(run.value for run in answer.nearest)
    assert answer.beats_observations
    text = answer_text(answer, SETTINGS)
    assert any("No run has come out as well" in doubt for doubt in text.doubts)
    assert f"gave {answer.nearest[0].value:.6g}" in text.nearest


def test_distance_is_measured_in_lengthscales() -> None:
    far = optimizer_with(RINGS).recommend()
    near = optimizer_with(np.concatenate([RINGS, around(0.02, 5)])).recommend()
    assert near.nearest[0].distance < far.nearest[0].distance
    assert not near.is_extrapolation
    assert [run.distance for run in near.nearest] == sorted(run.distance for run in near.nearest)
    assert near.nearest[0].design["x"] == pytest.approx(0.5, abs=0.03)
    assert near.nearest[0].context == {"c": 0.5}


def test_a_design_that_was_tried_needs_no_warning() -> None:
    designs = np.concatenate([around(0.5, 10), around(0.3, 6), np.full((3, 2), 0.5)])
    # in any order: where designs come ring by ring, the process may as well have changed between the rings
    optimizer = optimizer_with(np.random.default_rng(0).permutation(designs))
    optimizer.tell({"x": 0.5, "y": 0.5}, {"c": 1.0}, hill(0.5, 0.5, 1.0))  # better than can be expected on average
    assert answer_text(optimizer.recommend(), SETTINGS).doubts == ()


def test_runs_are_named_by_their_suggestions() -> None:
    optimizer = Optimizer(SPACE, seed=2)
    for _ in range(3):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, {"c": 0.5}, hill(suggestion["x"], suggestion["y"], 0.5))
    optimizer.tell({"x": 0.1, "y": 0.1}, None, 0.0)
    names = {run.run: run for run in optimizer.recommend().nearest}
    assert set(names) <= {0, 1, 2, 3}
    assert all((run.context is None) == (key == 3) for key, run in names.items())


def test_after_one_result_nothing_is_sure() -> None:
    alone = optimizer_with(around(0.4, 1)).recommend()
    assert math.isinf(alone.interval[1])
    text = answer_text(alone, SETTINGS)
    facts = {fact.label: fact for fact in text.facts}
    assert facts["expected on average"].explanation == "too early to say how sure this is"
    assert facts["the next single run"].value == "not known yet"
    assert not {"ten more runs would bring", "left to gain"} & {fact.label for fact in (*text.facts, *text.sources)}
