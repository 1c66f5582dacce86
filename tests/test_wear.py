"""Drift and noise that varies, as optimizers and studies have them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import edrbo
from edrbo.errors import InvalidValueError
from edrbo.lab.entry import read_setting
from edrbo.text import answer_text

SPACE = edrbo.Space({"x": (0, 1)}, {"c": (0, 1)})


def moving(n: int, **settings: object) -> edrbo.Optimizer:
    optimizer, draw = edrbo.Optimizer(SPACE, seed=0, **settings), np.random.default_rng(0)  # type: ignore[arg-type]
    for run in range(n):
        x, c = draw.random(2).tolist()
        optimizer.tell({"x": x}, {"c": c}, -4 * (x - 0.2 - 0.012 * run) ** 2 + 0.05 * float(draw.standard_normal()))
    return optimizer


def scattered(n: int = 60, **settings: object) -> edrbo.Optimizer:
    """Two hills: the higher one is noisy."""
    optimizer, draw = edrbo.Optimizer(SPACE, seed=0, **settings), np.random.default_rng(3)  # type: ignore[arg-type]
    for _ in range(n):
        x, c = draw.random(2).tolist()
        mean = math.exp(-(((x - 0.25) / 0.15) ** 2)) + 1.1 * math.exp(-(((x - 0.8) / 0.15) ** 2))
        optimizer.tell({"x": x}, {"c": c}, mean + (0.05 if x < 0.5 else 0.5) * float(draw.standard_normal()))
    return optimizer


def test_the_answer_is_for_now() -> None:
    """The optimum is at 0.2 + 0.012 n: at 0.8 in the end, at 0.5 on average."""
    still, drifting = (moving(50, drift=drift).recommend() for drift in (None, 15.0))
    assert abs(drifting.design["x"] - 0.8) < 0.5 * abs(still.design["x"] - 0.8)
    assert drifting.drift_half_life == 15.0
    assert still.drift_half_life is None
    assert any(fact.label == "wear" for fact in answer_text(drifting, moving(1).settings).sources)


@pytest.mark.parametrize("settings", [{"drift": 15.0}, {"drift": "learned"}])
def test_resumed_or_not_the_numbers_are_the_same(settings: dict[str, object]) -> None:
    through = moving(24, **settings)
    stopped = edrbo.Optimizer.from_json(through.to_json())
    for number in range(3):
        suggestions = [optimizer.ask() for optimizer in (through, stopped)]
        assert suggestions[0].design == suggestions[1].design
        for optimizer, suggestion in zip((through, stopped), suggestions, strict=True):
            optimizer.tell(suggestion, {"c": 0.3 * number}, 0.1 * number)
        stopped = edrbo.Optimizer.from_json(stopped.to_json())
    assert through.recommend() == stopped.recommend()


def test_noise_resumed_or_not_is_the_same() -> None:
    through = scattered(40)
    through.recommend()
    stopped = edrbo.Optimizer.from_json(through.to_json())
    assert stopped.model is not None
    assert stopped.model.gp.hyper.noise_profile is not None
    assert stopped.recommend() == through.recommend()
    assert stopped.ask().design == through.ask().design


def test_what_came_before_the_drift_was_set_and_runs_left_out_keep_their_times() -> None:
    optimizer = moving(30, drift=10.0)
    before = optimizer.predict({"x": 0.5}).expected[0]
    optimizer.drop(0)  # so old that it says next to nothing; the others stay as old as they were
    assert optimizer.predict({"x": 0.5}).expected[0] == pytest.approx(before, abs=0.02)
    optimizer.amend({"drift": None})
    assert optimizer.recommend().drift_half_life is None


def test_a_run_without_a_context_makes_the_others_older() -> None:
    optimizer = moving(20, drift=5.0)
    model = optimizer.model
    assert model is not None
    before = optimizer.predict({"x": 0.9}).upper[0] - optimizer.predict({"x": 0.9}).lower[0]
    for _ in range(15):
        optimizer.tell({"x": 0.1}, None, -2.0)
    after = optimizer.predict({"x": 0.9}).upper[0] - optimizer.predict({"x": 0.9}).lower[0]
    assert after > before
    assert optimizer.model.gp.now == 35.0  # type: ignore[union-attr]


@pytest.mark.parametrize("goal", ["mean-sd:1", "within:0.8,1.4"])
def test_goals_of_single_outcomes_count_noise_that_varies(goal: str) -> None:
    """On average the noisy hill is higher; fewer outcomes there are good enough."""
    counted, constant = scattered(goal=goal), scattered(goal=goal, noise_model="constant")
    assert abs(counted.recommend().design["x"] - 0.25) < 0.1
    assert constant.recommend().design["x"] > 0.6


def test_the_value_is_that_of_draws_of_outcomes() -> None:
    """P(outcome ≥ 0.8) at one design by the true mean and noise."""
    optimizer = scattered(60, goal="reach:0.8")
    for x, sd in ((0.25, 0.05), (0.8, 0.5)):
        mean = math.exp(-(((x - 0.25) / 0.15) ** 2)) + 1.1 * math.exp(-(((x - 0.8) / 0.15) ** 2))
        true = 0.5 * math.erfc((0.8 - mean) / sd / math.sqrt(2))
        found = optimizer.predict({"x": x})
        assert found.value_lower[0] - 0.02 <= true <= found.value_upper[0] + 0.02
        low, high = found.outcome_lower[0], found.outcome_upper[0]
        assert 2.5 * sd < high - low < 8.0 * sd


def test_what_is_told_of_noise() -> None:
    answer = scattered().recommend()
    assert answer.noise_sd is not None
    assert answer.noise_sd.least < 0.1 < 0.3 < answer.noise_sd.most
    assert any(fact.label == "single runs scatter" for fact in answer_text(answer, scattered(1).settings).sources)
    assert answer.to_dict()["noise_sd"]["most"] == answer.noise_sd.most
    assert scattered(noise_model="constant").recommend().noise_sd is None


@pytest.mark.parametrize("settings", [{"drift": 10.0}, {"goal": "mean-sd:1"}])
def test_beside_everything_else(settings: dict[str, object]) -> None:
    """Tolerances, pending runs, contexts known in part, failures."""
    space = edrbo.Space({"x": edrbo.Real(0, 1, tolerance=0.02)}, {"c": (0, 1), "d": (0, 1)})
    optimizer, draw = edrbo.Optimizer(space, seed=0, **settings), np.random.default_rng(1)  # type: ignore[arg-type]
    for run in range(21):
        x, c, d = draw.random(3).tolist()
        value = math.sin(4 * x) + c + (0.02 if x < 0.5 else 0.4) * float(draw.standard_normal())
        optimizer.tell({"x": x}, {"c": c} if run % 9 == 8 else {"c": c, "d": d}, value)
    optimizer.tell({"x": 0.99}, failed=True)
    assert len(optimizer.ask(2)) == 2
    assert np.isfinite(optimizer.recommend().value_interval).all()


def test_several_outcomes_drift_together() -> None:
    outcomes = {"gain": edrbo.Maximize(goal="mean-sd:1"), "heat": edrbo.Limit(upper=2.0)}
    optimizer, draw = edrbo.Optimizer(SPACE, outcomes=outcomes, drift=10.0), np.random.default_rng(2)
    for run in range(14):
        x, c = draw.random(2).tolist()
        optimizer.tell({"x": x}, {"c": c}, {"gain": x + c, "heat": None if run % 3 == 0 else 2 * x})
    optimizer.ask()
    assert optimizer.recommend().drift_half_life == 10.0


def test_contradictions() -> None:
    optimizer = edrbo.Optimizer(SPACE, "edrbo-warped", drift=10.0)
    optimizer.tell({"x": 0.5}, {"c": 0.5}, 1.0)
    with pytest.raises(InvalidValueError, match="knows no time"):
        optimizer.recommend()
    with pytest.raises(InvalidValueError, match="half-life"):
        edrbo.Optimizer(SPACE, drift="fast")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "expected"),
    [("learned", "learned"), (" Learned ", "learned"), ("12,5", 12.5), ("30", 30.0), ("none", None)],
)
def test_as_people_type_it(given: str, expected: object) -> None:
    assert read_setting("drift", given) == expected


def test_a_study_keeps_both(tmp_path: Path) -> None:
    edrbo.Study.open(tmp_path / "a.db", SPACE, drift="learned", noise_model="constant")
    settings = edrbo.Study.open(tmp_path / "a.db").settings
    assert (settings.drift, settings.noise_model) == ("learned", "constant")
