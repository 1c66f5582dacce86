"""Noise, shifted distributions and drift."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edrbo.bench import problems
from edrbo.bench.problems.oracle.distributions import Normal, clipped_normal, iid
from edrbo.bench.problems.oracle.shift import Drift, DriftingProblem, shift_distribution, shifted, with_noise
from edrbo.errors import InvalidValueError

pytestmark = pytest.mark.numpy_numeric

SHIFTS = [
    {"mean_shift": 0.15},
    {"mean_shift": -0.3},
    {"spread": 2.0},
    {"mean_shift": 0.1, "spread": 0.5},
    {"unseen_mode": Normal(0.9, 0.05), "unseen_weight": 0.3},
]
FORMULAS = ["three-hump-camel", "ackley", "complicated-hartmann", "modified-branin", "newsvendor"]


def test_noise_changes_what_is_seen_and_not_the_oracles() -> None:
    problem = problems.get("six-hump-camel")
    noisy = with_noise(problem, 0.3)
    x, c = np.full((50_000, 1), 0.3), np.full((50_000, 1), 0.6)
    errors = noisy.observe(x, c, np.random.default_rng(0)) - problem.evaluate(x, c)
    assert abs(errors.mean()) < 4 * 0.3 / np.sqrt(len(errors))
    assert errors.std() == pytest.approx(0.3, rel=0.02)
    assert noisy.optimum == problem.optimum
    np.testing.assert_array_equal(noisy.evaluate(x, c), problem.evaluate(x, c))


def test_without_noise_observing_draws_no_random_numbers() -> None:
    problem = problems.get("six-hump-camel")
    rng = np.random.default_rng(0)
    problem.observe(np.array([0.3]), np.array([0.6]), rng)
    assert rng.random() == np.random.default_rng(0).random()


@pytest.mark.parametrize("sd", [-1.0, float("nan")])
def test_impossible_noise_is_refused(sd: float) -> None:
    with pytest.raises(InvalidValueError):
        with_noise(problems.get("ackley"), sd)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("change", SHIFTS, ids=lambda change: "-".join(change))
def test_expectation_under_the_shifted_distribution_matches_monte_carlo(name: str, change: dict[str, float]) -> None:
    problem = shifted(problems.get(name), **change)
    x = np.random.default_rng(1).random((2, problem.d_x))
    contexts = problem.sample_contexts(100_000, np.random.default_rng(2))
    for design, expected in zip(x, problem.expected(x), strict=True):
        values = problem.evaluate(design, contexts)
        assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(len(values))


def test_judging_a_design_under_another_distribution_is_the_shifted_problem() -> None:
    problem = problems.get("newsvendor")
    other = shifted(problem, mean_shift=0.2)
    x = np.linspace(0, 1, 9)[:, None]
    np.testing.assert_array_equal(
        problem.expected(x, context_distribution=other.context_distribution), other.expected(x)
    )
    assert other.x_star[0] == pytest.approx(problem.x_star[0] + 0.2, abs=1e-6)
    assert other.optimum >= other.expected(problem.x_star)


def test_shifted_normal_distribution_is_the_normal_distribution_with_the_new_moments() -> None:
    moved = shift_distribution(iid(clipped_normal(0.5, 0.2)), mean_shift=0.1, spread=1.5)
    c = np.linspace(0, 1, 11)
    np.testing.assert_allclose(moved.components[0].cdf(c), clipped_normal(0.6, 0.3).cdf(c), atol=1e-14)


def test_shifted_distribution_shares_its_random_numbers() -> None:
    context_distribution = iid(clipped_normal(0.5, 0.05))
    moved = shift_distribution(context_distribution, mean_shift=0.1)
    before, after = (one.sample(100, np.random.default_rng(4)) for one in (context_distribution, moved))
    np.testing.assert_allclose(after - before, 0.1, atol=1e-12)


@pytest.mark.parametrize(
    "change",
    [{"unseen_weight": 0.2}, {"unseen_mode": Normal(0, 1)}, {"unseen_weight": 1.2}, {"spread": 0.0}],
    ids=str,
)
def test_half_given_shifts_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(InvalidValueError):
        shift_distribution(iid(clipped_normal(0.5, 0.2)), **change)


@given(step=st.integers(0, 500), amplitude=st.floats(-0.5, 0.5), period=st.integers(1, 200))
def test_drift_stays_within_its_amplitude(step: int, amplitude: float, period: int) -> None:
    for kind in ("linear", "sine"):
        drift = Drift(amplitude, period, kind)
        assert abs(drift.mean_shift(step)) <= abs(amplitude) + 1e-12
    assert Drift(amplitude, period).mean_shift(period + step) == amplitude


@settings(max_examples=20)
@given(step=st.integers(0, 99))
def test_sine_drift_comes_back_after_a_period(step: int) -> None:
    drift = Drift(0.2, 100, "sine")
    assert drift.mean_shift(step) == pytest.approx(drift.mean_shift(step + 100), abs=1e-12)


def test_drifting_contexts_follow_the_distribution_of_their_step() -> None:
    problem = problems.get("three-hump-camel")
    drifting = DriftingProblem(problem, Drift(0.2, 10))
    still = problem.sample_contexts(20, np.random.default_rng(7))
    moving = drifting.sample_contexts(20, np.random.default_rng(7))
    inside = (moving > 0) & (moving < 1) & (still > 0) & (still < 1)
    steps = 0.2 * np.minimum(np.arange(20) / 10, 1)[:, None]
    np.testing.assert_allclose((moving - still)[inside], steps[inside], atol=1e-12)
    later = drifting.sample_contexts(5, np.random.default_rng(7), start=10)
    np.testing.assert_allclose(later, np.clip(still[:5] + 0.2, 0, 1), atol=1e-12)
    assert drifting.at(0) is problem
    assert drifting.at(10).expected(np.array([0.4])) != problem.expected(np.array([0.4]))


def test_impossible_drift_is_refused() -> None:
    with pytest.raises(InvalidValueError):
        Drift(0.1, 0)
    with pytest.raises(InvalidValueError):
        Drift(float("inf"), 10)
