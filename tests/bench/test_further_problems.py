"""What the further problems are there for; that their oracles are right is checked by the conformance suite."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import maximum_filter

from edrbo.bench import problems
from edrbo.bench.problems.beacons import CENTERS, HEIGHTS
from edrbo.bench.problems.kiln import NOISE_SHARE
from edrbo.bench.problems.oracle.shift import shifted
from edrbo.bench.problems.wing import MOVE, SHAPE

pytestmark = pytest.mark.numpy_numeric


def inner_maxima(values: np.ndarray) -> int:
    """Local maxima of a table that are not at its edge."""
    peaks = values == maximum_filter(values, size=3)
    return int(peaks[(slice(1, -1),) * values.ndim].sum())


def test_the_benchmark_stays_the_nine_of_the_paper() -> None:
    assert len(problems.names()) == 9
    assert len(problems.further_names()) >= 6
    assert not set(problems.names()) & set(problems.further_names())
    for name in [*problems.names(), *problems.further_names()]:
        assert problems.get(name).name == name


def test_distributions_are_not_those_of_the_nine() -> None:
    known = {problems.get(name).context_distribution for name in problems.names()}
    assert not known & {problems.get(name).context_distribution for name in problems.further_names()}


def test_noise_is_a_twentieth_of_the_range_and_only_in_what_is_seen() -> None:
    problem = problems.get("noisy-kiln")
    assert problem.noise_sd == pytest.approx(0.05 * problem.value_range, rel=1e-12)
    assert NOISE_SHARE == 0.05
    x, c = np.full((20_000, 3), 0.4), np.full((20_000, 1), 0.6)
    errors = problem.observe(x, c, np.random.default_rng(0)) - problem.evaluate(x, c)
    assert errors.std() == pytest.approx(problem.noise_sd, rel=0.03)
    assert [name for name in problems.further_names() if problems.get(name).noise_sd] == ["noisy-kiln"]


def test_cliff_is_lost_by_a_small_shift() -> None:
    """The best design for P loses a quarter of the range when it gets warmer, and little when it gets colder."""
    problem = problems.get("cliff")
    warmer, colder = (shifted(problem, mean_shift=shift) for shift in (0.15, -0.15))
    assert float(warmer.regret(problem.x_star)) > 0.25 * problem.value_range
    assert float(colder.regret(problem.x_star)) < 0.15 * problem.value_range


def test_highest_beacon_is_not_the_best_on_average() -> None:
    problem = problems.get("beacons")
    distances = np.linalg.norm(problem.x_star - CENTERS, axis=1)
    assert distances.argmin() != HEIGHTS.argmax()


def test_wing_is_best_at_the_weighted_mean_of_the_best_shapes() -> None:
    """x* = Σ w(c) x*(c) / Σ w(c), a quadratic's answer; the speed is uniform, so a midpoint sum will do."""
    speeds = 0.1 + 0.85 * (np.arange(100_000) + 0.5) / 100_000
    weights = 0.4 + 1.8 * speeds**2
    mean_speed = weights @ speeds / weights.sum()
    np.testing.assert_allclose(problems.get("wing").x_star, SHAPE + MOVE * (mean_speed - 0.5), atol=1e-8)


def test_number_of_local_maxima() -> None:
    line = np.linspace(0, 1, 401)
    assert inner_maxima(problems.get("two-seasons").expected(line[:, None])) == 3
    grid = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1)
    assert inner_maxima(problems.get("ripples").expected(grid)) == 30
