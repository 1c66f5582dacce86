"""The classic problems of robust design, beside formulas and searches that share nothing with theirs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import differential_evolution
from scipy.stats import norm

from edrbo.bench import problems
from edrbo.bench.problems.synthetic import BARREL

pytestmark = pytest.mark.numpy_numeric


def branin(u: float, v: float) -> float:
    """As BoTorch and the literature write it."""
    b, c, t = 5.1 / (4 * np.pi**2), 5 / np.pi, 1 / (8 * np.pi)
    return (v - b * u * u + c * u - 6) ** 2 + 10 * (1 - t) * np.cos(u) + 10


def test_branin_williams_is_the_sum_of_the_paper() -> None:
    """Its table of joint probabilities, second variable down and third across."""
    table = {
        0.25: (0.0375, 0.0875, 0.0875, 0.0375),
        0.5: (0.0750, 0.1750, 0.1750, 0.0750),
        0.75: (0.0375, 0.0875, 0.0875, 0.0375),
    }
    problem = problems.get("branin-williams")
    for x in np.random.default_rng(0).random((20, 2)):
        total = sum(
            mass * branin(15 * x[0] - 5, 15 * second) * branin(15 * third - 5, 15 * x[1])
            for second, masses in table.items()
            for third, mass in zip((0.2, 0.4, 0.6, 0.8), masses, strict=True)
        )
        assert float(problem.expected(x)) == pytest.approx(-total, rel=1e-12)


def test_michalewicz_without_a_context_has_its_known_maximum() -> None:
    problem = problems.get("michalewicz")
    known = np.array([2.202906, 1.570796, 1.284992, 1.923058, 1.720470]) / np.pi
    assert float(problem.evaluate(known, np.array([0.5]))) == pytest.approx(4.687658, abs=1e-6)


def test_michalewicz_is_averaged_by_adaptive_quadrature() -> None:
    problem = problems.get("michalewicz")
    for x in (problem.x_star, *np.random.default_rng(1).random((2, 5))):

        def weighted(c: float, x: np.ndarray = x) -> float:
            return float(problem.evaluate(x, np.array([c]))) * float(norm.pdf(c, 0.5, 0.25))

        inside = quad(weighted, 0, 1, limit=400, epsabs=1e-11)[0]
        ends = [float(problem.evaluate(x, np.array([end]))) * float(norm.cdf(0, 0.5, 0.25)) for end in (0.0, 1.0)]
        assert float(problem.expected(x)) == pytest.approx(inside + sum(ends), abs=1e-9)


def test_the_crossed_barrel_is_best_over_all_numbers_of_struts() -> None:
    problem = problems.get("crossed-barrel")
    found = []
    for level in BARREL.levels("struts"):

        def loss(points: np.ndarray, level: np.ndarray = level) -> np.ndarray:
            struts = np.broadcast_to(level, (points.shape[1], 1))
            return -problem.expected(np.hstack([struts, points.T]))

        end = differential_evolution(
            loss, [(0.0, 1.0)] * 3, rng=np.random.default_rng(5), maxiter=150, tol=1e-10, polish=False,
            vectorized=True, updating="deferred",
        )  # fmt: skip
        found.append(-end.fun)
    assert len(found) == 7
    assert max(found) == pytest.approx(problem.optimum, abs=1e-6)
    assert sorted(found)[-2] < problem.optimum - 1e-3  # the number of struts matters
    np.testing.assert_array_equal(problem.snap(problem.x_star), problem.x_star)


def test_the_crossed_barrel_is_averaged_over_draws() -> None:
    problem, draws = problems.get("crossed-barrel"), 200_000
    contexts = problem.sample_contexts(draws, np.random.default_rng(11))
    for x in (problem.x_star, *problem.snap(np.random.default_rng(12).random((2, problem.d_x)))):
        values = problem.evaluate(x, contexts)
        assert abs(values.mean() - float(problem.expected(x))) < 4 * values.std() / np.sqrt(draws)


def test_contexts_matter_in_all_of_them() -> None:
    """The design that is best in the middle of the contexts loses more than a hundredth of what the best design has
    more than the median one."""
    for name in problems.classic_names():
        problem = problems.get(name)
        designs = problem.quasi_random(12)
        in_the_middle = designs[problem.evaluate(designs, np.full(problem.d_c, 0.5)).argmax()]
        assert float(problem.regret(in_the_middle)) > 0.01 * (problem.optimum - np.median(problem.expected(designs))), (
            name
        )
