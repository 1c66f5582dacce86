"""When the process is another: evidences by brute force, false alarms, and where a change began."""

from __future__ import annotations

import math

import numpy as np
import pytest

import edrbo
from edrbo.records.change_point import ALIKE, HAZARD, MOVED, WANDERS, WEARS, _Models, change_odds, process_change


def process(seed: int, n: int, change: int | None = None, size: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    z = draw.random((n, 2))
    w, phase, a = draw.normal(size=(200, 2)) / 0.5, draw.uniform(0, 2 * np.pi, 200), draw.normal(size=200) / 10
    y = np.cos(z @ w.T + phase) @ a + 0.2 * draw.standard_normal(n)
    if change is not None:
        y[change:] += size
    return z, y


def evidence(covariances: list[np.ndarray], y: np.ndarray) -> float:
    logs = []
    for covariance in covariances:
        whole = covariance + 1.0
        quadratic = y @ np.linalg.solve(whole, y)
        logs.append(-0.5 * quadratic - 0.5 * np.linalg.slogdet(whole)[1])
    return float(np.logaddexp.reduce(logs)) - math.log(len(logs))


def test_the_odds_are_those_of_the_models_by_brute_force() -> None:
    z, y = process(1, 16, 9, 1.5)
    time = np.arange(16.0)
    models = _Models(z, (y - y.mean()) / y.std(), time, (math.inf,))
    y1 = models.y

    def kernels(change: np.ndarray, moved: np.ndarray | float) -> list[np.ndarray]:
        return [k * change + moved + noise * np.eye(16) for k in models.signal for noise in models.noise]

    none = evidence(kernels(np.ones((16, 16)), 0.0), y1)
    total, seen, best = 0.0, 0.0, (-math.inf, 0.0)
    for t in range(5, 13):  # five runs before, four since
        after = time >= t
        same = after[:, None] == after
        parts = [evidence(kernels(np.where(same, 1.0, alike), 0.0), y1) for alike in ALIKE]
        parts.append(evidence(kernels(np.ones((16, 16)), MOVED * np.outer(after, after)), y1))
        since = np.maximum(time - t, 0)
        parts.append(evidence(kernels(0.5 ** (np.abs(since[:, None] - since) / WEARS), 0.0), y1))
        parts.append(evidence(kernels(np.ones((16, 16)), MOVED * np.minimum(since[:, None], since) / WANDERS), y1))
        gain = float(np.logaddexp.reduce(parts)) - math.log(5) - none
        prior = HAZARD * (1 - HAZARD) ** t
        total, seen = total + prior * math.exp(gain), seen + prior
        best = max(best, (math.log(prior) + gain, float(t)))
    where, odds = change_odds(z, y, time)
    assert odds == pytest.approx(total + 1 - seen, rel=1e-6)
    assert where == best[1]


def test_an_outcome_far_off_is_drawn_near_and_the_others_stay() -> None:
    z, y = process(2, 40)
    off = y.copy()
    off[20] += 30.0
    models = _Models(z, (off - off.mean()) / off.std(), np.arange(40.0), (math.inf,))
    moved = np.abs(models.y - (off - off.mean()) / off.std())
    assert moved.argmax() == 20
    assert moved[20] > 1.0
    assert np.delete(moved, 20).max() < 0.5
    assert change_odds(z, off, np.arange(40.0))[1] < 50


def test_no_alarm_where_nothing_changes_however_often_one_looks() -> None:
    """Fifteen studies; docs/guides/wear.md has more of them. The bound is 2 % of studies."""
    alarms = 0
    for seed in range(15):
        z, y = process(seed, 60)
        odds = [change_odds(z[:n], y[:n], np.arange(float(n)))[1] for n in (15, 30, 60)]
        alarms += max(odds) >= 50
    assert alarms <= 1


@pytest.mark.parametrize("seed", range(3))
def test_a_change_is_seen_where_it_began(seed: int) -> None:
    z, y = process(seed, 60, 40, 1.0)
    where, odds = change_odds(z, y, np.arange(60.0))
    assert odds > 50
    assert abs(where - 40) <= 2


def test_what_drifts_is_no_change() -> None:
    draw = np.random.default_rng(0)
    z, level = draw.random((80, 1)), np.cumsum(draw.normal(size=80)) * 0.15
    y = np.sin(4 * z[:, 0]) + level + 0.1 * draw.standard_normal(80)
    constant, drifting = (change_odds(z, y, np.arange(80.0), lives)[1] for lives in ((math.inf,), (20.0,)))
    assert constant > 50
    assert drifting < 0.01 * constant


def study(n: int = 40, change: int = 26, **settings: object) -> edrbo.Optimizer:
    optimizer = edrbo.Optimizer(edrbo.Space({"x": (0, 1)}, {"c": (0, 1)}), **settings)  # type: ignore[arg-type]
    draw = np.random.default_rng(0)
    for k in range(n):
        x, c = draw.random(2).tolist()
        value = math.sin(4 * x) + c + 0.1 * float(draw.standard_normal()) + (k >= change)
        optimizer.tell({"x": x}, {"c": c}, value)
    return optimizer


def test_the_run_is_named_and_leaving_out_what_was_before_ends_it() -> None:
    optimizer = study()
    found = optimizer.process_change()
    assert found is not None
    assert abs(found.run - 26) <= 1
    assert found.outcome == "value"
    answer = optimizer.recommend()
    assert answer.process_change == found
    assert f"since about run {found.run}" in str(answer)
    assert answer.to_dict()["process_change"]["run"] == found.run
    for run in range(found.run):
        optimizer.drop(run)
    assert optimizer.process_change() is None
    assert optimizer.recommend().process_change is None


def test_few_runs_equal_outcomes_and_runs_without_context_say_nothing() -> None:
    assert study(11, 6).process_change() is None
    optimizer = edrbo.Optimizer(edrbo.Space({"x": (0, 1)}, {"c": (0, 1)}))
    assert optimizer.process_change() is None
    for _ in range(20):
        optimizer.tell({"x": 0.5}, {"c": 0.1}, 1.0)
    assert optimizer.process_change() is None
    for _ in range(20):
        optimizer.tell({"x": 0.5}, None, 3.0)
    assert optimizer.process_change() is None


def test_of_several_outcomes_the_one_that_changed_is_named() -> None:
    outcomes = {"gain": edrbo.Maximize(), "heat": edrbo.Limit(upper=9.0)}
    optimizer, draw = edrbo.Optimizer(edrbo.Space({"x": (0, 1)}), outcomes=outcomes), np.random.default_rng(0)
    for k in range(40):
        x = float(draw.random())
        heat = 3 * x + 2 * (k >= 22) + 0.1 * float(draw.standard_normal())
        optimizer.tell({"x": x}, None, {"gain": x + 0.1 * float(draw.standard_normal()), "heat": heat})
    found = process_change(optimizer.state)
    assert found is not None
    assert found.outcome == "heat"
    assert abs(found.run - 22) <= 2
