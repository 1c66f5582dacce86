"""The problems with a limit: their shares and their best designs, each found in another way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from limited_problems import LimitedProblem, get_limited, limited_names

from edrbo.bench.problems.oracle.goals import goal_value
from edrbo.errors import UnknownNameError

GRID = {1: 20001, 2: 301, 3: 17}  # points a side
NEAR, DRAWS = 3_000, 200_000


@pytest.fixture(params=limited_names())
def problem(request: pytest.FixtureRequest) -> LimitedProblem:
    return get_limited(request.param)


def test_shares_are_those_of_the_goal_oracle_and_of_draws(problem: LimitedProblem) -> None:
    rng = np.random.default_rng(0)
    x = np.vstack([rng.random((20, problem.d_x)), problem.best[0]])
    limited = replace(problem.problem, objective=problem.limited, expectation=None)
    oracle = goal_value(limited, problem.limit.goal, x, problem.limit.direction)
    assert problem.share(x) == pytest.approx(oracle, abs=1e-3)
    contexts = problem.problem.sample_contexts(DRAWS, rng)
    for design, share in zip(x[-3:], problem.share(x[-3:]), strict=True):
        g = problem.limited(design, contexts)
        lower, upper = problem.limit.lower, problem.limit.upper
        drawn = np.mean((g <= np.inf if upper is None else g <= upper) & (True if lower is None else g >= lower))
        assert share == pytest.approx(drawn, abs=5 * np.sqrt(0.25 / DRAWS))


def test_no_design_of_a_fine_grid_is_better(problem: LimitedProblem) -> None:
    x, value = problem.best
    assert problem.share(x) == pytest.approx(problem.limit.probability, abs=1e-5)  # the limit binds
    assert problem.problem.optimum > value + 0.1 * problem.value_range  # and matters
    sides = [np.linspace(0, 1, GRID[problem.d_x])] * problem.d_x
    grid = np.stack(np.meshgrid(*sides, indexing="ij"), -1).reshape(-1, problem.d_x)
    rng = np.random.default_rng(1)
    near = np.clip(x + rng.normal(size=(NEAR, problem.d_x)) * 10.0 ** rng.uniform(-5, -1, (NEAR, 1)), 0, 1)
    designs = np.vstack([grid, near])
    kept = designs[problem.keeps(designs)]
    assert problem.problem.expected(kept).max() <= value + 1e-4 * problem.value_range


def test_expectations_are_those_of_draws(problem: LimitedProblem) -> None:
    rng = np.random.default_rng(2)
    x, contexts = rng.random(problem.d_x), problem.problem.sample_contexts(DRAWS, rng)
    f = problem.problem.objective(x, contexts)
    assert float(problem.problem.expected(x)) == pytest.approx(f.mean(), abs=5 * f.std() / np.sqrt(DRAWS))


def test_what_a_learner_sees() -> None:
    problem = get_limited("gauge")
    f, g = problem.observe(np.array([0.5, 0.5]), np.array([0.4]), np.random.default_rng(0))
    assert f != float(problem.problem.objective(np.array([0.5, 0.5]), np.array([0.4])))
    assert g == pytest.approx(float(problem.limited(np.array([0.5, 0.5]), np.array([0.4]))), abs=0.05)
    with pytest.raises(UnknownNameError):
        get_limited("nothing")
