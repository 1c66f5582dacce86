"""The log of contexts: order, weights, forgetting and summaries."""

from __future__ import annotations

import numpy as np
import pytest
from notebook import Notebook

from edrbo import Space
from edrbo.errors import InvalidValueError
from edrbo.records.context_log import KEPT_ROWS

SPACE = Space(design={"x": (0, 1)}, context={"c": (0, 10)})


def test_forgetting_halves_per_half_life_across_batches() -> None:
    notebook = Notebook(SPACE)
    for batch in ([[1.0], [2.0]], [[3.0]], [[4.0], [5.0]]):
        notebook.observe_context(batch)
    log = notebook.context_log
    rows, weights = log.weighted(1, half_life=2.0)
    assert rows[:, 0].tolist() == [1, 2, 3, 4, 5]
    assert weights == pytest.approx(2.0 ** (-np.array([4, 3, 2, 1, 0]) / 2))
    assert np.array_equal(log.weighted(1, None)[1], np.ones(5))


@pytest.mark.parametrize("half_life", [None, 400.0])
def test_a_summary_keeps_the_law(half_life: float | None) -> None:
    rng = np.random.default_rng(0)
    drift = np.linspace(3, 6, KEPT_ROWS + 1)[:, None] + rng.normal(size=(KEPT_ROWS + 1, 1)).clip(-3, 3)
    exact_weights = np.ones(len(drift)) if half_life is None else 2.0 ** (-np.arange(len(drift))[::-1] / half_life)
    notebook = Notebook(SPACE, forgetting=half_life)
    notebook.observe_context(drift)
    notebook.observe_context([[9.0]])
    log = notebook.context_log
    rows, weights = log.weighted(1, half_life)
    assert len(rows) < len(drift)
    assert len(log) == len(drift) + 1
    older = 1.0 if half_life is None else 2.0 ** (-1 / half_life)
    assert weights[:-1].sum() == pytest.approx(older * exact_weights.sum())
    mean = np.average(drift[:, 0], weights=exact_weights)
    assert np.average(rows[:-1, 0], weights=weights[:-1]) == pytest.approx(mean, abs=1e-6)
    spread = np.average((drift[:, 0] - mean) ** 2, weights=exact_weights)
    assert np.average((rows[:-1, 0] - mean) ** 2, weights=weights[:-1]) == pytest.approx(spread, rel=1e-4)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [np.nan, 1.0], ["a", "b"], [0.0, 0.0], [np.inf, 1.0]])
def test_bad_weights(weights: list[object]) -> None:
    with pytest.raises(InvalidValueError):
        Notebook(SPACE).observe_context([[1.0], [2.0]], weights)


def test_nothing_seen_is_no_event() -> None:
    notebook = Notebook(SPACE)
    notebook.observe_context(np.empty((0, 1)))
    assert notebook.state.history == ()
    assert notebook.context_log.weighted(1, None)[0].shape == (0, 1)


@pytest.mark.parametrize("half_life", [None, 400.0])
def test_the_effective_number_counts_what_a_summary_stands_for(half_life: float | None) -> None:
    """Kish's number from all weights one by one, against the log's, which has only a summary of most of them."""
    rng = np.random.default_rng(1)
    notebook = Notebook(SPACE, forgetting=half_life)
    for size in (7, KEPT_ROWS + 1, 7):
        notebook.observe_context(rng.uniform(0, 10, (size, 1)))
    count = KEPT_ROWS + 15
    weights = np.ones(count) if half_life is None else 2.0 ** (-np.arange(count)[::-1] / half_life)
    exact = weights.sum() ** 2 / np.square(weights).sum()
    assert notebook.context_log.effective(half_life) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_the_effective_number_does_not_depend_on_the_unit_of_the_weights(size: float) -> None:
    notebook = Notebook(SPACE)
    assert notebook.context_log.effective(None) == 0.0
    notebook.observe_context(np.arange(3.0)[:, None], [size, size, 0.5 * size])
    assert notebook.context_log.effective(None) == pytest.approx(2.5**2 / 2.25)
