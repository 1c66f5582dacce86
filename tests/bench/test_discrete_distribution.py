"""Context distributions with mass at single values."""

from __future__ import annotations

import numpy as np
import pytest

from edrbo.bench.problems.oracle.distributions import Affine, Clipped, Discrete, Mixture, Normal, Product
from edrbo.bench.problems.oracle.goals import cells_of
from edrbo.bench.problems.oracle.shift import shift_distribution
from edrbo.errors import InvalidValueError

pytestmark = pytest.mark.numpy_numeric

VALUES, MASSES = (0.0, 0.2, 0.5, 1.0), (0.1, 0.4, 0.3, 0.2)
CONTEXT_DISTRIBUTIONS = {
    "inside": Clipped(Discrete((0.1, 0.3, 0.9), (0.5, 0.25, 0.25))),
    "at the ends": Clipped(Discrete(VALUES, MASSES)),
    "outside": Clipped(Discrete((-0.5, 0.4, 1.3), (0.2, 0.5, 0.3))),
    "moved": Clipped(Affine(Discrete(VALUES, MASSES), 0.1, 1.5)),
    "mixed with a normal one": Clipped(Mixture((Discrete((0.25, 0.75), (0.5, 0.5)), Normal(0.5, 0.2)), (0.7, 0.3))),
}
each_distribution = pytest.mark.parametrize(
    "context_distribution", CONTEXT_DISTRIBUTIONS.values(), ids=CONTEXT_DISTRIBUTIONS
)


@each_distribution
def test_masses_sum_to_one_and_draws_follow_them(context_distribution: Clipped) -> None:
    n = 200_000
    draws = context_distribution.sample(n, np.random.default_rng(0))
    nodes, weights = context_distribution.quadrature()
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert draws.mean() == pytest.approx(nodes @ weights, abs=4 * draws.std() / np.sqrt(n))
    assert (draws**2).mean() == pytest.approx(nodes**2 @ weights, abs=4 * (draws**2).std() / np.sqrt(n))
    for location, mass in zip(*context_distribution.atoms(), strict=True):
        assert (draws == location).mean() == pytest.approx(mass, abs=4 * np.sqrt(mass * (1 - mass) / n))
    line = np.linspace(-0.1, 1.1, 1201)
    assert np.abs(
        context_distribution.cdf(line) - np.searchsorted(np.sort(draws), line, side="right") / n
    ).max() < 1.95 / np.sqrt(n)


@each_distribution
def test_the_quantile_is_the_inverse_of_the_distribution_function(context_distribution: Clipped) -> None:
    p = (np.arange(400) + 0.5) / 400
    found = context_distribution.quantile(p)
    assert (context_distribution.cdf(found + 1e-9) >= p - 1e-12).all()
    assert (context_distribution.cdf(found - 1e-6) <= p + 1e-5).all()


@each_distribution
def test_cells_carry_all_mass_once(context_distribution: Clipped) -> None:
    cells = cells_of(Product((context_distribution,)), ())
    nodes, weights = context_distribution.quadrature()
    assert cells.masses.sum() == pytest.approx(1.0)
    assert cells.centers[0] @ cells.masses == pytest.approx(nodes @ weights, abs=1e-9)
    assert cells.centers[0] ** 2 @ cells.masses == pytest.approx(nodes**2 @ weights, abs=1e-4)


@each_distribution
def test_the_least_of_two_is_the_sum_over_values(context_distribution: Clipped) -> None:
    x = np.array([0.05, 0.2, 0.55, 1.0])
    nodes, weights = context_distribution.quadrature(tuple(x.tolist()))
    assert context_distribution.expected_minimum(x) == pytest.approx(np.minimum(x[:, None], nodes) @ weights, abs=1e-12)


def test_a_pure_one_has_no_other_nodes() -> None:
    nodes, weights = CONTEXT_DISTRIBUTIONS["at the ends"].quadrature()
    np.testing.assert_allclose(nodes, VALUES)
    np.testing.assert_allclose(weights, MASSES)
    assert CONTEXT_DISTRIBUTIONS["at the ends"].describe() == "4 values"
    assert CONTEXT_DISTRIBUTIONS["outside"].describe() == "3 values clipped"


def test_it_can_be_shifted_and_mixed() -> None:
    context_distribution = Product((CONTEXT_DISTRIBUTIONS["inside"],))
    moved = shift_distribution(context_distribution, mean_shift=0.2, unseen_mode=Normal(0.5, 0.1), unseen_weight=0.25)
    draws = moved.sample(100_000, np.random.default_rng(2))
    nodes, weights = moved.quadrature()
    assert draws.mean() == pytest.approx(float(nodes[:, 0] @ weights), abs=0.005)


@pytest.mark.parametrize(
    ("values", "masses"), [((), ()), ((0.5, 0.2), (0.5, 0.5)), ((0.2, 0.5), (0.5, 0.4)), ((0.2,), (0.5, 0.5))]
)
def test_what_is_no_distribution_is_refused(values: tuple[float, ...], masses: tuple[float, ...]) -> None:
    with pytest.raises(InvalidValueError):
        Discrete(values, masses)
