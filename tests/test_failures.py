"""Failed evaluations say where designs fail, and nothing about their outcomes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from edrbo import Categorical, Optimizer, Space
from edrbo.acquisition.objective import Objective
from edrbo.optimizer.candidates import CandidateSet
from edrbo.optimizer.outcome_posterior import OutcomePosterior
from edrbo.optimizer.recommendation import best_feasible, reachable
from edrbo.text import AnswerText, answer_text

SPACE = Space(design={"x": (0, 1)}, context={"c": (0, 1)})


def reported(n: int = 12, seed: int = 0, **settings: object) -> Optimizer:
    """Runs at designs of one's own; E_c f is best at x = 0.6, and x + c matter together."""
    optimizer, rng = Optimizer(SPACE, seed=seed, **settings), np.random.default_rng(seed)  # type: ignore[arg-type]
    for x in (np.arange(n) + 0.5) / n:
        c = float(rng.uniform())
        optimizer.tell({"x": x}, {"c": c}, -((x - 0.4 - 0.4 * c) ** 2))
    return optimizer


def test_a_failure_does_not_move_what_is_believed_of_outcomes() -> None:
    optimizer = reported()
    before = optimizer.predict([{"x": v} for v in (0.1, 0.6, 0.9)])
    optimizer.tell({"x": 0.6}, failed=True)
    after = optimizer.predict([{"x": v} for v in (0.1, 0.6, 0.9)])
    assert before.expected.tolist() == after.expected.tolist()
    assert before.lower.tolist() == after.lower.tolist()


def test_one_failure_beside_the_optimum_is_bad_luck() -> None:
    optimizer = reported(16)
    before = optimizer.recommend()
    optimizer.tell({"x": before.design["x"] + 0.01}, failed=True)
    after = optimizer.recommend()
    assert before.success is None
    assert after.success is not None
    assert after.success > 0.85
    assert after.design["x"] == pytest.approx(before.design["x"], abs=0.03)
    assert optimizer.ask()["x"] == pytest.approx(reported(16).ask()["x"], abs=0.05)


def test_failures_again_and_again_drive_the_search_away() -> None:
    optimizer = reported(8)
    asked = []
    for _ in range(8):
        suggestion = optimizer.ask()
        asked.append(suggestion["x"])
        if 0.4 < suggestion["x"] < 0.8:
            optimizer.tell(suggestion, failed=True)
        else:
            optimizer.tell(suggestion, {"c": 0.5}, -((suggestion["x"] - 0.6) ** 2))
    assert 0.4 < asked[0] < 0.8
    assert not all(0.4 < x < 0.8 for x in asked)


def walled(seed: int = 0, **settings: object) -> Optimizer:
    """The best designs by their outcomes, x > 0.7, all fail."""
    optimizer, rng = Optimizer(SPACE, seed=seed, **settings), np.random.default_rng(seed)  # type: ignore[arg-type]
    for x in np.linspace(0, 1, 21):
        c = float(rng.uniform())
        if x > 0.7:
            optimizer.tell({"x": x}, failed=True)
        else:
            optimizer.tell({"x": x}, {"c": c}, x + 0.1 * c)
    return optimizer


def test_behind_a_wall_nothing_is_recommended() -> None:
    answer = walled().recommend()
    assert 0.6 < answer.design["x"] <= 0.72
    assert answer.success is not None
    assert answer.success >= 0.79


def test_how_sure_a_design_must_be_is_a_setting() -> None:
    bold, careful = (walled(least_success=level) for level in (0.5, 0.97))
    some, most = bold.recommend(), careful.recommend()
    assert some.success is not None
    assert most.success is not None
    assert 0.499 <= some.success < 0.8
    assert most.success > 0.9
    assert most.design["x"] < some.design["x"] - 0.02
    assert (success(answer_text(some, bold.settings)), some.success) == (f"{100 * some.success:.0f} %", some.success)
    most.success = 0.9
    short = answer_text(most, careful.settings)
    assert success(short) == "90 %"
    assert "nothing that was tried succeeds with the 97 % asked for" in short.doubts[-1]
    assert success(answer_text(reported().recommend(), bold.settings)) is None


def success(text: AnswerText) -> str | None:
    """What is said of the probability that a run succeeds."""
    return next((fact.value for fact in text.facts if fact.label == "succeeds with"), None)


def test_a_search_stays_in_front_of_a_wall() -> None:
    optimizer = walled()
    assert all(optimizer.ask()["x"] < 0.8 for _ in range(3))


def test_the_bar_is_kept_whatever_the_gain() -> None:
    """Worth falls a thousandfold towards where designs are sure; the recommendation goes there all the same."""
    optimizer = walled()
    training_data = optimizer._main.data()
    posterior = _posterior(optimizer)

    class Steep(Objective):
        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return 1e3 * x[:, 0]

        def value_and_gradient(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return self(x), torch.full_like(x, 1e3)

    for level in (0.6, 0.9):
        x = best_feasible([Steep()], posterior, CandidateSet(SPACE), training_data.starts(), 0, level)
        assert posterior.feasibility is not None
        assert float(posterior.feasibility.probability(x[None])) >= level - 2e-3


def test_where_nothing_reaches_the_bar_it_is_lowered() -> None:
    optimizer, rng = Optimizer(SPACE, seed=0), np.random.default_rng(5)
    for x in rng.random(40):
        if rng.random() < 0.5:
            optimizer.tell({"x": x}, failed=True)
        else:
            optimizer.tell({"x": x}, {"c": 0.5}, -((x - 0.3) ** 2))
    posterior = _posterior(optimizer)
    assert posterior.feasibility is not None
    starts = optimizer._main.data().starts()
    level = reachable(posterior.feasibility, starts, 0.95)
    assert level < 0.95
    answer = optimizer.recommend()
    assert answer.success is not None
    assert answer.success >= min(0.8, level) - 2e-3


def test_failed_initial_designs_are_replaced_but_not_for_ever() -> None:
    optimizer = Optimizer(SPACE, seed=1, initial=4)
    optimizer.tell(optimizer.ask(), {"c": 0.5}, 1.0)
    model_free = Optimizer(SPACE, seed=1, initial=100)
    model_free.ask()
    expected = [model_free.ask()["x"] for _ in range(7)]
    asked = []
    for _ in range(7):
        suggestion = optimizer.ask()
        asked.append(suggestion["x"])
        optimizer.tell(suggestion, failed=True)
    assert asked[:6] == expected[:6]  # 3 that were wanted, and as many as 4 for those that failed, less the last
    assert optimizer.ask()["x"] != model_free.ask()["x"]


@pytest.mark.parametrize("method", ["edrbo", "edrbo-integrated", "edrbo-warped", "wdrbo", "stableopt", "ucb"])
def test_methods_of_every_kind_bear_failures(method: str) -> None:
    optimizer = reported(8, method=method)
    for x in (0.9, 0.95, 1.0):
        optimizer.tell({"x": x}, {"c": 0.5}, failed=True)
    batch = optimizer.ask(2)
    assert all(0 <= suggestion["x"] <= 1 for suggestion in batch)
    success = optimizer.recommend().success
    assert success is not None
    assert 0.7 < success <= 1.0


def test_a_category_that_fails_is_left_alone() -> None:
    space = Space(design={"x": (0, 1), "kind": Categorical(("good", "bad"))}, context={"c": (0, 1)})
    optimizer, rng = Optimizer(space, seed=0), np.random.default_rng(0)
    for i in range(24):
        x, c = float(rng.random()), float(rng.random())
        if i % 2:
            optimizer.tell({"x": x, "kind": "bad"}, failed=True)
        else:
            optimizer.tell({"x": x, "kind": "good"}, {"c": c}, x + c)
    assert optimizer.ask()["kind"] == "good"
    assert optimizer.recommend().design["kind"] == "good"


def _posterior(optimizer: Optimizer) -> OutcomePosterior:
    training_data = optimizer._main.data()
    return optimizer._main.posterior(training_data, (None, None), pending=[], asking=False)
