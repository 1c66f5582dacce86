"""The log of contexts: order, weights, forgetting and summaries."""

from __future__ import annotations

import json

import numpy as np
import pytest

from edrbo import Space
from edrbo.errors import InvalidValueError
from edrbo.records.context_log import KEPT_ROWS, ContextLog

SPACE = Space(design={"x": (0, 1)}, context={"c": (0, 10)})


def test_forgetting_halves_per_half_life_across_batches() -> None:
    log = ContextLog()
    for batch in ([[1.0], [2.0]], [[3.0]], [[4.0], [5.0]]):
        log = log.add(SPACE, np.array(batch))
    rows, weights = log.weighted(1, half_life=2.0)
    assert rows[:, 0].tolist() == [1, 2, 3, 4, 5]
    assert weights == pytest.approx(2.0 ** (-np.array([4, 3, 2, 1, 0]) / 2))
    assert np.array_equal(log.weighted(1, None)[1], np.ones(5))


@pytest.mark.parametrize("half_life", [None, 400.0])
def test_a_summary_keeps_the_law(half_life: float | None) -> None:
    rng = np.random.default_rng(0)
    drift = np.linspace(2, 6, KEPT_ROWS + 1)[:, None] + rng.normal(size=(KEPT_ROWS + 1, 1))
    exact_weights = np.ones(len(drift)) if half_life is None else 2.0 ** (-np.arange(len(drift))[::-1] / half_life)
    log = ContextLog().add(SPACE, drift, half_life=half_life)
    log = log.add(SPACE, np.array([[9.0]]))
    rows, weights = log.weighted(1, half_life)
    assert len(rows) < len(drift)
    assert len(log) == len(drift) + 1
    older = 1.0 if half_life is None else 2.0 ** (-1 / half_life)
    assert weights[:-1].sum() == pytest.approx(older * exact_weights.sum())
    mean = np.average(drift[:, 0], weights=exact_weights)
    assert np.average(rows[:-1, 0], weights=weights[:-1]) == pytest.approx(mean, abs=1e-6)
    spread = np.average((drift[:, 0] - mean) ** 2, weights=exact_weights)
    assert np.average((rows[:-1, 0] - mean) ** 2, weights=weights[:-1]) == pytest.approx(spread, rel=1e-4)


def test_json_round_trip_is_exact() -> None:
    log = ContextLog().add(SPACE, np.array([[0.1], [1 / 3]]), weights=[0.5, 2.0])
    again = ContextLog.from_list(json.loads(json.dumps(log.to_list())), 1)
    assert np.array_equal(again.weighted(1, 3.0)[0], log.weighted(1, 3.0)[0])
    assert np.array_equal(again.weighted(1, 3.0)[1], log.weighted(1, 3.0)[1])


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [np.nan, 1.0], ["a", "b"], [0.0, 0.0], [np.inf, 1.0]])
def test_bad_weights(weights: list[object]) -> None:
    with pytest.raises(InvalidValueError):
        ContextLog().add(SPACE, np.array([[1.0], [2.0]]), weights)


def test_nothing_added_is_the_same_log() -> None:
    log = ContextLog()
    assert log.add(SPACE, np.empty((0, 1))) is log
    assert log.weighted(1, None)[0].shape == (0, 1)
