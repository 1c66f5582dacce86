"""Distributions and clipped distributions against SciPy, adaptive quadrature, and themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from edrbo.bench.problems.oracle.distributions import (
    Affine,
    BurrXII,
    Cauchy,
    Clipped,
    Distribution,
    Mixture,
    Normal,
    Product,
    Uniform,
    clipped_normal,
    equal_mixture,
    iid,
    uniform,
)
from edrbo.errors import InvalidValueError

pytestmark = pytest.mark.numpy_numeric

WITH_REFERENCE = [
    (Normal(0.6, 0.2), stats.norm(0.6, 0.2)),
    (Cauchy(0.2, 0.02), stats.cauchy(0.2, 0.02)),
    (BurrXII(2, 20), stats.burr12(2, 20)),
    (Uniform(0.0, 1.0), stats.uniform(0, 1)),
    (Uniform(-0.3, 0.7), stats.uniform(-0.3, 1.0)),
    (Affine(Normal(0.5, 0.2), shift=0.1, spread=1.5, center=0.5), stats.norm(0.6, 0.3)),
    (Affine(Normal(0.7, 0.1), shift=0.0, spread=2.0, center=0.5), stats.norm(0.9, 0.2)),
]
MIXTURE = equal_mixture([Normal(0.1, 0.02), Normal(0.5, 0.1), Cauchy(0.8, 0.02)])
BASES: list[Distribution] = [
    *(base for base, _ in WITH_REFERENCE),
    MIXTURE,
    Mixture((BurrXII(2, 20), Normal(0.9, 0.1)), (0.7, 0.3)),
    Affine(BurrXII(2, 20), shift=0.15, spread=1.0, center=0.2),
    Affine(Uniform(), shift=-0.23),
]
base_distributions = pytest.mark.parametrize("base", BASES, ids=lambda base: base.describe())


@pytest.mark.parametrize(("base", "reference"), WITH_REFERENCE, ids=lambda value: type(value).__name__)
def test_distribution_matches_scipy(base: Distribution, reference: stats.rv_continuous) -> None:
    c = np.linspace(-0.5, 1.5, 101)
    p = np.linspace(0.001, 0.999, 101)
    np.testing.assert_allclose(base.pdf(c), reference.pdf(c), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(base.cdf(c), reference.cdf(c), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(base.quantile(p), reference.ppf(p), rtol=1e-10, atol=1e-12)


@base_distributions
def test_quantile_inverts_the_distribution_function(base: Distribution) -> None:
    p = np.linspace(0.01, 0.99, 99)
    np.testing.assert_allclose(base.cdf(base.quantile(p)), p, atol=1e-12)


@base_distributions
def test_complex_step_of_the_distribution_function_is_the_density(base: Distribution) -> None:
    c = np.linspace(0.0131, 0.9871, 57)
    derivative = np.asarray(base.cdf(c + 1e-30j)).imag / 1e-30
    np.testing.assert_allclose(derivative, base.pdf(c), rtol=1e-10, atol=1e-12)


@base_distributions
def test_draws_follow_the_distribution_function(base: Distribution) -> None:
    draws = base.from_uniform(np.random.default_rng(5).random(20_000))
    assert stats.kstest(draws, lambda c: base.cdf(np.asarray(c))).pvalue > 1e-3


@base_distributions
def test_quadrature_is_exact(base: Distribution) -> None:
    """Against adaptive quadrature of the density plus the atoms, for a smooth function."""
    context_distribution = Clipped(base)
    nodes, weights = context_distribution.quadrature()
    kinks = [kink for kink in (*base.kinks(), 0.1, 0.2, 0.8) if 0 < kink < 1]
    interior, _ = integrate.quad(
        lambda c: np.cos(7 * c) * float(base.pdf(np.array(c))), 0, 1, points=kinks, limit=400, epsabs=1e-13
    )
    ends = float(base.cdf(np.array(0.0))) + np.cos(7) * (1 - float(base.cdf(np.array(1.0))))
    assert weights @ np.cos(7 * nodes) == pytest.approx(interior + ends, abs=1e-10)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert (np.diff(nodes) > 0).all()


@base_distributions
def test_expected_minimum_is_exact(base: Distribution) -> None:
    context_distribution = Clipped(base)
    x = np.array([0.0, 0.03, 0.25, 0.5, 0.77, 1.0])
    for one, value in zip(x, context_distribution.expected_minimum(x), strict=True):
        nodes, weights = context_distribution.quadrature(breaks=(float(one),))
        assert value == pytest.approx(weights @ np.minimum(one, nodes), abs=1e-12)
    slope = np.asarray(context_distribution.expected_minimum(x[1:-1] + 1e-30j)).imag / 1e-30
    np.testing.assert_allclose(slope, 1 - context_distribution.cdf(x[1:-1]), atol=1e-12)


@base_distributions
def test_clipping_moves_outside_mass_to_the_ends(base: Distribution) -> None:
    context_distribution = Clipped(base)
    draws = context_distribution.sample(40_000, np.random.default_rng(1))
    assert draws.min() >= 0
    assert draws.max() <= 1
    masses = dict(zip(*(part.tolist() for part in context_distribution.atoms()), strict=True))
    for end in (0.0, 1.0):
        mass = masses.get(end, 0.0)
        assert abs((draws == end).mean() - mass) <= 4 * np.sqrt(mass * (1 - mass) / len(draws))


@given(p=st.floats(0, 1), mean=st.floats(-0.5, 1.5), sd=st.floats(0.01, 2))
def test_clipped_quantile_is_the_generalized_inverse(p: float, mean: float, sd: float) -> None:
    context_distribution = clipped_normal(mean, sd)
    c = float(context_distribution.quantile(np.array(p)))
    assert 0 <= c <= 1
    assert float(context_distribution.cdf(np.array(c))) >= p - 1e-12
    below = np.nextafter(c, -1) - 1e-9
    assert float(context_distribution.cdf(np.array(below))) <= p + 1e-9


def test_clipped_distribution_function_has_its_jumps() -> None:
    context_distribution = clipped_normal(0.5, 0.2)
    tail = stats.norm.cdf(-2.5)
    around_the_ends = context_distribution.cdf(np.array([-1e-12, 0.0, 1 - 1e-12, 1.0]))
    np.testing.assert_allclose(around_the_ends, [0, tail, 1 - tail, 1], atol=1e-11)


def test_product_joins_independent_distributions() -> None:
    context_distribution = Product((uniform(), clipped_normal(0.5, 0.2)))
    nodes, weights = context_distribution.quadrature(panels=4, order=8)
    assert nodes.shape == (len(weights), 2)
    assert weights.sum() == pytest.approx(1, abs=1e-8)
    assert weights @ (nodes[:, 0] ** 2 * nodes[:, 1]) == pytest.approx(0.5 / 3, abs=1e-8)
    draws = context_distribution.sample(10_000, np.random.default_rng(2))
    assert abs(np.corrcoef(draws.T)[0, 1]) < 0.04


def test_a_longer_sample_begins_with_the_shorter_one() -> None:
    context_distribution = iid(clipped_normal(0.5, 0.2), 2)
    short, long = (context_distribution.sample(n, np.random.default_rng(3)) for n in (5, 50))
    np.testing.assert_array_equal(short, long[:5])


def test_descriptions_name_the_distribution() -> None:
    assert iid(clipped_normal(0.5, 0.2), 2).describe() == "iid N(0.5, 0.2²) clipped"
    assert iid(uniform(), 1).describe() == "U(0, 1)"
    assert Clipped(equal_mixture([Normal(0.1, 0.2)] * 8)).describe() == "mixture of 8 (Normal) clipped"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Normal(0.5, 0),
        lambda: Cauchy(0.5, -1),
        lambda: BurrXII(0, 20),
        lambda: BurrXII(2, float("nan")),
        lambda: Uniform(1, 1),
        lambda: Affine(Uniform(), spread=0),
        lambda: Mixture((), ()),
        lambda: Mixture((Uniform(), Uniform()), (1.0,)),
        lambda: Mixture((Uniform(), Uniform()), (0.5, 0.6)),
        lambda: Product(()),
    ],
)
def test_impossible_distributions_are_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(InvalidValueError):
        make()
