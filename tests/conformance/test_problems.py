"""What every registered problem has to satisfy, with the optima of the design table."""

from __future__ import annotations

import csv
import gzip
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from problem_cases import MONTE_CARLO_DRAWS, PAPER_CASES, PUBLISHED_RUNS, designs_of, outcomes_of
from scipy.optimize import differential_evolution
from scipy.stats import qmc

from edrbo.bench import problems
from edrbo.bench.problems.oracle.distributions import clipped_normal, iid
from edrbo.bench.problems.portfolio.problem import SHIPPED_FIT
from edrbo.bench.problems.problem import Problem
from edrbo.errors import InvalidContextError, InvalidDesignError, UnknownNameError

pytestmark = pytest.mark.numpy_numeric

TABLE: dict[str, tuple[tuple[float, ...], float]] = {
    "three-hump-camel": ((0.5,), -0.15640960),
    "six-hump-camel": ((0.4938474,), 0.38912912),
    "ackley": ((0.5, 0.5), -12.53143676),
    "hartmann": ((0.198322, 0.151670, 0.485013, 0.273286, 0.312928), 2.31691680),
    "complicated-hartmann": ((0.200106, 0.154716, 0.486763, 0.274205, 0.312244), 1.94515025),
    "modified-branin": ((0.1852407, 0.2011884), -16.06425780),
    "newsvendor": ((0.18778957,), 0.46394307),
    "portfolio-uniform@original": ((0, 1, 0.556356), 18.08314182),
    "portfolio-normal@original": ((0, 1, 0.096135), 19.74901387),
    # The further problems, from formulas written anew, adaptive quadrature and a simplex search; wing in closed form.
    "two-seasons": ((0.3672415,), 1.01412261),
    "dose-response": ((0.5763988,), 0.58467460),
    "cliff": ((0.6290516, 0.6090193), 2.06840456),
    "ripples": ((0.4121760, 0.7099603), -1.91075109),
    "noisy-kiln": ((0.5736136, 0.2069555, 0.4147227), 2.89800779),
    "beacons": ((0.7363004, 0.2359990, 0.6076147), 2.50527760),
    "coating": ((0.7815674, 0.7214619, 0.4943813, 0.4578138), 2.43104481),
    "wing": ((0.4191420, 0.5370296, 0.5353136, 0.3253136, 0.6408580, 0.5914852), 4.63192597),
    "branin-williams": ((0.20263389, 0.25445274), -323.01173850),
    "michalewicz": ((0.7001702, 0.4987030, 0.4076471, 0.3531513, 0.3159112), 3.46302213),
}


def test_optimum_is_the_one_of_the_table(case: tuple[str, Problem]) -> None:
    name, problem = case
    if name in TABLE:
        x_star, optimum = TABLE[name]
    else:
        stored = json.loads(SHIPPED_FIT.read_text(encoding="utf-8"))
        x_star, optimum = stored["x_star"][name], stored["optimum"][name]
    np.testing.assert_allclose(problem.x_star, x_star, atol=1.5e-6)
    assert problem.optimum == pytest.approx(optimum, abs=1e-6)
    assert float(problem.expected(np.array(x_star))) == pytest.approx(optimum, abs=1e-6)


def test_no_quasi_random_design_beats_the_optimum(problem: Problem) -> None:
    designs = qmc.Sobol(problem.d_x, rng=np.random.default_rng(99)).random_base2(13)
    assert problem.expected(designs).max() <= problem.optimum + 1e-9


def test_gradient_free_optimization_finds_the_same_optimum(problem: Problem) -> None:
    """Differential evolution knows neither x* nor gradients nor the quasi-random starts."""
    found = differential_evolution(
        lambda x: -problem.expected(x.T),
        [(0.0, 1.0)] * problem.d_x,
        rng=np.random.default_rng(5),
        popsize=20,
        maxiter=400,
        tol=1e-10,
        polish=False,
        vectorized=True,
        updating="deferred",
    )
    assert -found.fun == pytest.approx(problem.optimum, abs=1e-6)


def test_expected_is_the_mean_over_a_million_contexts(problem: Problem) -> None:
    contexts = problem.sample_contexts(MONTE_CARLO_DRAWS, np.random.default_rng(11))
    designs = np.vstack([problem.x_star, designs_of(problem, 1, seed=12)])
    for values, expected in zip(outcomes_of(problem, designs, contexts), problem.expected(designs), strict=True):
        assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(MONTE_CARLO_DRAWS)


def test_expected_is_the_quadrature_of_the_observed_function(problem: Problem) -> None:
    """Product rules and closed forms against the plain tensor rule over ``evaluate``."""
    # The tensor rule is as fine as memory allows: the surrogate is smooth, Branin's root is not quite.
    rule = {} if problem.d_c == 1 else {"panels": 8, "order": 10} if problem.data else {"panels": 24}
    for x in designs_of(problem, 3, seed=13):
        kinks = tuple(x.tolist()) if problem.d_x == 1 else ()
        nodes, weights = problem.context_distribution.quadrature(breaks=(*problem.breaks, *kinks), **rule)
        by_rule = float(problem.evaluate(x[None, None], nodes)[0] @ weights)
        assert float(problem.expected(x)) == pytest.approx(by_rule, abs=1e-8)


def test_contexts_follow_the_distribution(problem: Problem) -> None:
    n = 100_000
    contexts = problem.sample_contexts(n, np.random.default_rng(14))
    assert contexts.shape == (n, problem.d_c)
    assert ((contexts >= 0) & (contexts <= 1)).all()
    line = np.linspace(0, 1, 4001)
    for k, context_distribution in enumerate(problem.context_distribution.components):
        empirical = np.searchsorted(np.sort(contexts[:, k]), line, side="right") / n
        # 1.95/√n is the 0.1 % point of the Kolmogorov–Smirnov distance; atoms make it only smaller.
        assert np.abs(empirical - context_distribution.cdf(line)).max() < 1.95 / np.sqrt(n)
        masses = dict(zip(*(part.tolist() for part in context_distribution.atoms()), strict=True))
        for end in (0.0, 1.0):
            mass = masses.get(end, 0.0)
            assert abs((contexts[:, k] == end).mean() - mass) <= 4 * np.sqrt(mass * (1 - mass) / n) + 1 / n


def test_same_seed_gives_the_same_contexts(problem: Problem) -> None:
    first, again = (problem.sample_contexts(9, np.random.default_rng(15)) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_batched_is_looped(problem: Problem) -> None:
    x = designs_of(problem, 6, seed=16)
    c = problem.sample_contexts(6, np.random.default_rng(17))
    # Sums are taken in another order, so values agree to rounding on the scale of the problem.
    rounding = {"rtol": 0, "atol": 1e-12 * max(1.0, problem.value_range)}
    looped = [float(problem.expected(one)) for one in x]
    np.testing.assert_allclose(problem.expected(x), looped, **rounding)
    np.testing.assert_allclose(problem.expected(x.reshape(2, 3, -1)).ravel(), looped, **rounding)
    table = np.array([[float(problem.evaluate(a, b)) for b in c] for a in x])
    np.testing.assert_allclose(problem.evaluate(x, c), np.diag(table), **rounding)
    np.testing.assert_allclose(problem.evaluate(x[:, None, :], c), table, **rounding)
    assert problem.expected(np.zeros((0, problem.d_x))).shape == (0,)


def test_gradient_matches_finite_differences(problem: Problem) -> None:
    x = 0.05 + 0.9 * designs_of(problem, 4, seed=18)
    values, gradient = problem.expected_and_gradient(x)
    np.testing.assert_allclose(values, problem.expected(x), rtol=1e-12, atol=1e-12)
    h = 2e-5
    for j in range(problem.d_x):
        step = h * np.eye(problem.d_x)[j]
        near = problem.expected(x + step) - problem.expected(x - step)
        far = problem.expected(x + 2 * step) - problem.expected(x - 2 * step)
        np.testing.assert_allclose(gradient[:, j], (8 * near - far) / (12 * h), rtol=1e-6, atol=1e-7)


def test_gradient_vanishes_at_an_inner_optimum(problem: Problem) -> None:
    _, gradient = problem.expected_and_gradient(problem.x_star)
    inner = (problem.x_star > 0) & (problem.x_star < 1)
    assert np.abs(gradient[inner]).max() < 1e-4 * max(1.0, problem.value_range)
    assert (gradient[problem.x_star == 0] <= 0).all()
    assert (gradient[problem.x_star == 1] >= 0).all()


def test_worst_case_falls_from_the_expectation_to_the_minimum(problem: Problem) -> None:
    x = designs_of(problem, 2, seed=19)
    worst = np.stack([problem.worst_case(x, radius) for radius in (0.0, 0.02, 0.1, 0.5, 2.0)])
    np.testing.assert_allclose(worst[0], problem.expected(x), rtol=1e-12, atol=1e-12)
    assert (np.diff(worst, axis=0) <= 1e-7).all()
    contexts = qmc.Sobol(problem.d_c, rng=np.random.default_rng(1)).random_base2(10)
    lowest = problem.evaluate(x[:, None, :], contexts).min(axis=1)
    assert (worst[-1] <= lowest + 0.02 * np.ptp(problem.evaluate(x[:, None, :], contexts), axis=1)).all()


def test_another_distribution_gives_another_expectation_with_the_same_function(problem: Problem) -> None:
    other = iid(clipped_normal(0.8, 0.1), problem.d_c)
    x = designs_of(problem, 3, seed=20)
    np.testing.assert_array_equal(
        problem.expected(x, context_distribution=other), replace(problem, context_distribution=other).expected(x)
    )
    assert (problem.expected(x, context_distribution=other) != problem.expected(x)).all()


def test_problem_is_a_value(problem: Problem) -> None:
    copy = pickle.loads(pickle.dumps(problem))
    x = designs_of(problem, 2)
    np.testing.assert_array_equal(copy.expected(x), problem.expected(x))
    assert problem.bounds.tolist() == [[0] * problem.d_x, [1] * problem.d_x]
    assert problem.regret(problem.x_star) == 0
    with pytest.raises(AttributeError):
        problem.name = "other"


def test_wrong_shapes_are_refused(problem: Problem) -> None:
    with pytest.raises(InvalidDesignError):
        problem.expected(np.zeros(problem.d_x + 1))
    with pytest.raises(InvalidContextError):
        problem.evaluate(np.zeros(problem.d_x), np.zeros(problem.d_c + 1))
    with pytest.raises(InvalidContextError):
        problem.expected(np.zeros(problem.d_x), context_distribution=iid(clipped_normal(0.5, 0.2), problem.d_c + 1))


@pytest.mark.parametrize("case", PAPER_CASES, indirect=True, scope="module")
def test_published_regrets_lie_in_the_range_of_the_oracle(case: tuple[str, Problem]) -> None:
    name, problem = case
    if name not in TABLE:
        assert problem.data is not None
        assert "not comparable with published numbers" in problem.data
        return
    if not PUBLISHED_RUNS:
        pytest.skip("EDRBO_PUBLISHED_RUNS names no file of the published regrets")
    with gzip.open(PUBLISHED_RUNS, "rt") as stream:
        rows = [row for row in csv.reader(stream) if row[0] == problem.name]
    regrets = np.array([[float(value) for value in row[4:]] for row in rows])
    assert regrets.shape == (90, 200)
    assert regrets.min() > -1e-6
    assert regrets.max() <= problem.value_range * 1.05
    # Some published run came close to x*, so its regret does too: the optimum is on the scale of the file.
    assert regrets.min() < 0.02 * problem.value_range


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="newsvendor"):
        problems.get("news-vendor")
