"""The log of contexts: order, weights, forgetting and summaries."""

from __future__ import annotations

import numpy as np
import pytest
from notebook import Notebook

from edrbo import Space
from edrbo.errors import InvalidValueError
from edrbo.records.context_log import KEPT_ROWS, ContextBatch, ContextLog

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
def test_a_summary_keeps_the_distribution(half_life: float | None) -> None:
    rng = np.random.default_rng(0)
    drift = np.linspace(3, 6, KEPT_ROWS + 1)[:, None] + rng.normal(size=(KEPT_ROWS + 1, 1)).clip(-3, 3)
    exact_weights = np.ones(len(drift)) if half_life is None else 2.0 ** (-np.arange(len(drift))[::-1] / half_life)
    notebook = Notebook(SPACE, context_half_life=half_life)
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
    notebook = Notebook(SPACE, context_half_life=half_life)
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


def _met_in_runs(alike: float, runs: int, rows: int, seed: int) -> tuple[ContextLog, np.ndarray]:
    """Contexts N(0, 1) of runs with several rows, correlated within a run; and what they were."""
    rng = np.random.default_rng(seed)
    own, shared = rng.standard_normal((runs, rows)), rng.standard_normal((runs, 1))
    contexts = np.sqrt(alike) * shared + np.sqrt(1.0 - alike) * own
    return ContextLog(
        tuple(ContextBatch(met[:, None], np.ones(rows), rows, one_run=True) for met in contexts)
    ), contexts


@pytest.mark.parametrize(("alike", "low", "high"), [(0.0, 150, 240), (0.5, 15, 40), (1.0, 11.99, 12.01)])
def test_rows_of_one_run_are_not_as_many_independent_contexts(alike: float, low: float, high: float) -> None:
    """Kish's design effect by hand is 1, 10.5 and 20 for these 240 rows; it is estimated from twelve runs."""
    found = np.median([_met_in_runs(alike, 12, 20, seed)[0].effective(None) for seed in range(20)])
    assert low <= found <= high


def test_the_mean_over_contexts_met_in_runs_is_as_well_known_as_is_said() -> None:
    """Of 400 studies of 12 runs × 20 rows the true mean lies within Student's interval; as if all rows were
    independent it did in four of ten."""
    from scipy.stats import t

    inside = []
    for seed in range(400):
        log, contexts = _met_in_runs(0.7, 12, 20, seed)
        freedom = log.effective(None) - 1.0
        half = t.ppf(0.975, freedom) * contexts.std() / np.sqrt(freedom)
        inside.append(abs(contexts.mean()) <= half)
    assert 0.90 <= np.mean(inside) <= 0.99


def test_a_single_run_says_nothing_of_others() -> None:
    assert _met_in_runs(0.0, 1, 20, 0)[0].effective(None) == pytest.approx(1.0)


def test_runs_of_a_row_each_and_contexts_seen_alone_are_independent() -> None:
    notebook = Notebook(SPACE)
    for c in range(9):
        notebook.tell({"x": 0.5}, {"c": float(c)}, 1.0)
    notebook.observe_context(np.arange(7.0)[:, None])
    assert notebook.context_log.effective(None) == pytest.approx(16.0)


def test_a_series_that_was_reported_is_one_run() -> None:
    notebook = Notebook(SPACE)
    for c in range(3):
        notebook.tell({"x": 0.5}, contexts=[[float(c)]] * 5, values=[1.0] * 5)
    assert notebook.context_log.effective(None) == pytest.approx(3.0)
