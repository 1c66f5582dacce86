"""Problems of many designs: exact means, and optima against all levels there are."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import differential_evolution
from scipy.stats import qmc

from edrbo.bench import problems
from edrbo.bench.problems import building, paint_shop, recipe
from edrbo.bench.problems.oracle.distributions import tensor_rule
from edrbo.bench.problems.oracle.goals import goal_optimum, goal_regret, goal_value
from edrbo.bench.problems.oracle.shift import shifted
from edrbo.bench.problems.plant import Loss, Plant
from edrbo.bench.problems.problem import Problem
from edrbo.bench.run.replicate import robust_regrets
from edrbo.errors import InvalidValueError
from edrbo.records.goals import CVaR, Expected, Quantile, Robust, WorstCase
from edrbo.space import Space
from edrbo.surrogate.quasi_newton import minimize_lbfgs

pytestmark = pytest.mark.numpy_numeric

HIGH = problems.high_names()
PLANTS = {"building": building.PLANT, "paint-shop": paint_shop.PLANT, "recipe": recipe.PLANT}
# From all levels (paint-shop, recipe) and from differential evolution (building), by the tests below.
OPTIMA = {"building": -0.93525177, "paint-shop": -2.49600790, "recipe": -1.63603889}


@pytest.fixture(params=HIGH)
def problem(request: pytest.FixtureRequest) -> Problem:
    return problems.get(str(request.param))


def designs_of(problem: Problem, n: int, seed: int = 0) -> np.ndarray:
    return problem.snap(np.random.default_rng(seed).random((n, problem.d_x)))


def test_sizes_are_those_of_the_documentation() -> None:
    sizes = {name: (problems.get(name).d_x, problems.get(name).d_c) for name in HIGH}
    assert sizes == {"building": (10, 4), "paint-shop": (17, 3), "recipe": (25, 5)}
    kinds = {
        name: [type(variable).__name__ for variable in space.design.values()]
        for name, space in (("paint-shop", paint_shop.SPACE), ("recipe", recipe.SPACE))
    }
    counted = {name: [of.count(kind) for kind in ("Real", "Integer", "Categorical")] for name, of in kinds.items()}
    assert counted == {"paint-shop": [8, 2, 2], "recipe": [10, 4, 4]}


def test_expected_is_the_mean_over_many_contexts(problem: Problem) -> None:
    draws = 100_000
    contexts = problem.sample_contexts(draws, np.random.default_rng(11))
    for x in [problem.x_star, *designs_of(problem, 2, seed=12)]:
        values = problem.evaluate(x, contexts)
        assert abs(values.mean() - float(problem.expected(x))) < 4 * values.std() / np.sqrt(draws)


def test_expected_is_the_quadrature_of_the_observed_function(problem: Problem) -> None:
    """Two contexts at a time: the others stand still, in the distribution too, so that a tensor rule is small
    enough."""
    rng, distributions = np.random.default_rng(13), problem.context_distribution.components
    for pair in ((0, 1), (problem.d_c - 1, 0)):
        x, c = designs_of(problem, 1, seed=14)[0], rng.random(problem.d_c)
        nodes, weights = tensor_rule([distributions[k].quadrature(panels=8, order=8) for k in pair])
        contexts = np.tile(c, (len(nodes), 1))
        contexts[:, pair] = nodes
        plant = PLANTS[problem.name]
        still = [k for k in range(problem.d_c) if k not in pair]
        offsets = plant.offsets - plant.contexts[:, still] @ c[still]
        held = replace(plant, contexts=plant.contexts[:, pair], offsets=offsets)
        context_distribution = replace(problem.context_distribution, components=tuple(distributions[k] for k in pair))
        by_rule = float(problem.evaluate(x, contexts) @ weights)
        assert float(held.expected(x[None], context_distribution)[0]) == pytest.approx(by_rule, abs=1e-9)


def test_optimum_is_reached_and_no_quasi_random_design_beats_it(problem: Problem) -> None:
    assert problem.optimum == pytest.approx(OPTIMA[problem.name], abs=1e-6)
    assert float(problem.regret(problem.x_star)) == 0
    np.testing.assert_array_equal(problem.snap(problem.x_star), problem.x_star)
    designs = problem.snap(qmc.Sobol(problem.d_x, rng=np.random.default_rng(99)).random_base2(15))
    assert problem.expected(designs).max() <= problem.optimum + 1e-9
    steps = 0.02 * np.random.default_rng(1).normal(size=(4096, problem.d_x))
    near = problem.snap(np.clip(problem.x_star + steps, 0, 1))
    assert problem.expected(near).max() <= problem.optimum + 1e-9


def test_gradient_matches_finite_differences_in_real_variables(problem: Problem) -> None:
    x = designs_of(problem, 3, seed=18)
    real = np.ones(problem.d_x, dtype=bool)
    for column in () if problem.design is None else problem.design.columns:
        real[column.start : column.stop] = column.kind == "real"
    x[:, real] = 0.05 + 0.9 * x[:, real]
    values, gradient = problem.expected_and_gradient(x)
    np.testing.assert_allclose(values, problem.expected(x), rtol=1e-12)
    assert (gradient[:, ~real] == 0).all()
    for j in np.flatnonzero(real):
        step = 1e-5 * np.eye(problem.d_x)[j]
        slope = (problem.expected(x + step) - problem.expected(x - step)) / 2e-5
        np.testing.assert_allclose(gradient[:, j], slope, rtol=1e-6, atol=1e-6)


def every_level(space: Space, idle: tuple[str, ...] = ()) -> np.ndarray:
    """All combinations of levels, reals at one half and idle variables at their first level: n × d_x."""
    rows = np.full((1, space.d_x), 0.5)
    for column in space.columns:
        if column.kind == "real":
            continue
        levels = space.levels(column.name)[: 1 if column.name in idle else None]
        rows = np.repeat(rows, len(levels), axis=0)
        rows[:, column.start : column.stop] = np.tile(levels, (len(rows) // len(levels), 1))
    return rows


@pytest.mark.parametrize("name", ["paint-shop", "recipe"])
def test_optimum_is_the_best_of_all_levels(name: str) -> None:
    """E f is concave between levels, so that one climb from each combination of them sees everything."""
    problem, plant = problems.get(name), PLANTS[name]
    space, idle = (recipe.SPACE, recipe.IDLE) if name == "recipe" else (paint_shop.SPACE, ())
    assert set(plant.shapes) == {"square", "exp"}
    assert (plant.weights > 0).all()
    starts = every_level(space, idle)
    assert len(starts) == {"paint-shop": 4 * 7 * 4 * 3, "recipe": 5 * 4 * 6 * 4 * 3 * 3}[name]
    free = [c.start for c in space.columns if c.kind == "real" and c.name not in idle]

    def loss(points: np.ndarray, rows: list[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
        """−E f and its slopes in the free columns."""
        coded = starts[slice(None) if rows is None else rows].copy()
        coded[:, free] = points
        steps = 1e-30j * np.eye(problem.d_x)[free]
        slopes = np.stack([plant.expected(coded + step, problem.context_distribution).imag for step in steps])
        return -problem.expected(coded), -slopes.T / 1e-30

    _, found = minimize_lbfgs(
        loss, starts[:, free], np.zeros(len(free)), np.ones(len(free)), max_iterations=60, ftol=1e-9, gtol=1e-6
    )
    assert -found.min() == pytest.approx(problem.optimum, abs=1e-4)
    assert -found.min() <= problem.optimum + 1e-9


def test_gradient_free_optimization_finds_the_optimum_of_the_building() -> None:
    problem = problems.get("building")
    found = differential_evolution(
        lambda x: -problem.expected(x.T),
        [(0.0, 1.0)] * problem.d_x,
        rng=np.random.default_rng(5),
        popsize=10,
        maxiter=600,
        tol=1e-9,
        polish=False,
        vectorized=True,
        updating="deferred",
    )
    assert -found.fun == pytest.approx(problem.optimum, abs=1e-4)


def test_settings_of_the_building_act_on_each_other() -> None:
    """From no quasi-random design does a move of a single setting come near the best one."""
    problem = problems.get("building")
    assert "wave" in building.PLANT.shapes
    line = np.linspace(0, 1, 101)
    starts = problem.quasi_random(6)
    for x in starts:
        moves = np.repeat(x[None], 101 * problem.d_x, axis=0).reshape(problem.d_x, 101, -1)
        for j in range(problem.d_x):
            moves[j, :, j] = line
        assert problem.regret(moves).min() > 0.01 * problem.value_range


def test_idle_variables_of_the_recipe_do_nothing() -> None:
    problem = problems.get("recipe")
    x, c = designs_of(problem, 50, seed=3), problem.sample_contexts(50, np.random.default_rng(4))
    other, season = x.copy(), c.copy()
    fresh = designs_of(problem, 50, seed=5)
    for column in recipe.SPACE.columns:
        if column.name in recipe.IDLE:
            other[:, column.start : column.stop] = fresh[:, column.start : column.stop]
    season[:, 3:] = 1 - season[:, 3:]
    assert not np.array_equal(x, other)
    np.testing.assert_allclose(problem.evaluate(other, season), problem.evaluate(x, c), rtol=1e-13)


def test_a_point_between_levels_stands_for_the_nearest_design() -> None:
    problem = problems.get("paint-shop")
    x = np.random.default_rng(0).random((20, problem.d_x))
    np.testing.assert_array_equal(problem.expected(x), problem.expected(problem.snap(x)))
    c = problem.sample_contexts(20, np.random.default_rng(1))
    np.testing.assert_array_equal(problem.evaluate(x, c), problem.evaluate(problem.snap(x), c))


def test_problem_is_a_value(problem: Problem) -> None:
    copy = pickle.loads(pickle.dumps(problem))
    np.testing.assert_array_equal(copy.expected(designs_of(problem, 2)), problem.expected(designs_of(problem, 2)))
    assert copy.design == problem.design


def test_the_space_must_be_that_of_the_designs() -> None:
    with pytest.raises(InvalidValueError, match="17"):
        replace(problems.get("paint-shop"), d_x=12)
    with pytest.raises(InvalidValueError, match="context"):
        Plant.of(Space({"a": (0, 1)}), ("c",), 0.0, {"c": 1.0}, (Loss("exp", 1.0, {"a": 1.0}),))


def test_optimum_under_a_shifted_distribution_is_no_worse_than_the_old_one() -> None:
    problem = problems.get("building")
    regrets = robust_regrets(problem, problem.x_star)
    assert set(regrets) == {"shift-down", "shift-up", "spread"}
    assert min(regrets.values()) > 0
    mixed = problems.get("paint-shop")
    assert float(shifted(mixed, mean_shift=0.1).regret(mixed.x_star)) > 0


def test_goals_that_are_not_exact_are_refused(problem: Problem) -> None:
    x = problem.x_star
    assert float(goal_regret(problem, Expected(), x)) == pytest.approx(0, abs=1e-12)
    assert goal_optimum(problem, Expected())[1] == pytest.approx(problem.optimum)
    for goal in (CVaR(0.1), Robust(0.1), WorstCase(), Quantile(0.1)):
        with pytest.raises(InvalidValueError) as refused:
            goal_regret(problem, goal, x)
        assert refused.value.hint
        if problem.d_c > 3:
            with pytest.raises(InvalidValueError):
                goal_value(problem, goal, x)
    with pytest.raises(InvalidValueError):
        problem.robust_optimum(0.1)


def test_goal_values_of_three_contexts_are_exact() -> None:
    problem = problems.get("paint-shop")
    values = problem.evaluate(problem.x_star, problem.sample_contexts(100_000, np.random.default_rng(2)))
    worst = np.sort(values)[:10_000].mean()
    assert float(goal_value(problem, CVaR(0.1), problem.x_star)) == pytest.approx(worst, abs=0.02 * np.ptp(values))
