"""The bbob family: what it is, and its oracles against draws, other rules and other searches.

A sample of it, or all of it where the environment variable EDRBO_ALL_PROBLEMS is set (about half an hour).
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.optimize import differential_evolution
from scipy.stats import qmc

from edrbo.bench import problems
from edrbo.bench.problems import bbob
from edrbo.bench.problems.bbob import CHOOSE, CONFIRM, ROUGH, Member, members, references
from edrbo.bench.problems.oracle.shift import shifted
from edrbo.bench.problems.problem import Problem
from edrbo.bench.run.execute import all_replicates
from edrbo.bench.run.replicate import ReplicateSettings, robust_regrets
from edrbo.errors import InvalidContextError, InvalidDesignError, MissingExtraError

cocoex = pytest.importorskip("cocoex")
pytestmark = pytest.mark.numpy_numeric

# Every kind of contexts, every size; smooth, with steps, with kinks, with waves, with many peaks.
SAMPLE = [
    Member(1, 4, 2, 1),
    Member(3, 2, 1, 1),
    Member(7, 3, 1, 1),
    Member(8, 3, 1, 1),
    Member(12, 2, 1, 1),
    Member(20, 4, 2, 1),
    Member(21, 2, 1, 1),
    Member(23, 2, 1, 1),
]
TESTED = members() if os.environ.get("EDRBO_ALL_PROBLEMS") else SAMPLE
ACCURACY = 1e-4  # of E f, as a share of its range: docs/problems.md
KINKED = (4, 15, 21, 22, 24)
DRAWS = 200_000


@pytest.fixture(params=TESTED, ids=lambda member: member.name)
def member(request: pytest.FixtureRequest) -> Member:
    found: Member = request.param
    return found


@pytest.fixture
def problem(member: Member) -> Problem:
    return problems.get(member.name)


def some_designs(problem: Problem, n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((n, problem.d_x))


def test_expected_is_the_mean_over_many_contexts(problem: Problem) -> None:
    contexts = problem.sample_contexts(DRAWS, np.random.default_rng(11))
    for x in [problem.x_star, *some_designs(problem, 2, seed=12)]:
        values = problem.evaluate(x, contexts)
        assert abs(values.mean() - float(problem.expected(x))) < 4.5 * values.std() / np.sqrt(DRAWS)


def test_expected_is_the_mean_over_even_quantiles(problem: Problem) -> None:
    """A rule that has nothing in common with Gauss's: equal weights at quantiles, whole numbers of cells."""
    if problem.d_c == 1:
        even = ((np.arange(200_000) + 0.5) / 200_000)[:, None]
    else:
        even = qmc.Sobol(problem.d_c, rng=np.random.default_rng(3)).random_base2(18)
    contexts = np.stack(
        [
            context_distribution.quantile(even[:, k])
            for k, context_distribution in enumerate(problem.context_distribution.components)
        ],
        axis=1,
    )
    for x in [problem.x_star, *some_designs(problem, 2, seed=13)]:
        error = problem.evaluate(x, contexts).mean() - float(problem.expected(x))
        assert abs(error) < ACCURACY * problem.value_range


def test_the_optimum_is_the_one_of_the_table(member: Member, problem: Problem) -> None:
    found = references()[member.name]
    assert problem.optimum == pytest.approx(found.optimum, rel=1e-9, abs=1e-9 * problem.value_range)
    assert float(problem.regret(problem.x_star)) == 0
    assert found.accuracy <= ACCURACY
    values = problem.expected(problem.quasi_random(10))
    assert values.min() == pytest.approx(found.lowest, rel=1e-9, abs=1e-9 * problem.value_range)
    assert np.median(values) == pytest.approx(found.median, rel=1e-9, abs=1e-9 * problem.value_range)
    assert found.lowest < found.median < found.optimum


def test_no_other_search_finds_a_better_design(problem: Problem) -> None:
    hair = 1e-6 * problem.value_range
    rng = np.random.default_rng(99)
    size = 12 if problem.d_c == 1 else 9
    designs = qmc.Sobol(problem.d_x, rng=rng).random_base2(size)
    assert problem.expected(designs).max() <= problem.optimum + hair
    for scale in (0.05, 0.005, 0.0005):
        near = np.clip(problem.x_star + scale * rng.standard_normal((2**size // 4, problem.d_x)), 0, 1)
        assert problem.expected(near).max() <= problem.optimum + hair


@pytest.mark.parametrize("seed", [5, 6])
def test_differential_evolution_finds_no_better_design(problem: Problem, seed: int) -> None:
    """It knows neither x*, nor gradients, nor the designs of the search that found it."""
    evolved = differential_evolution(
        lambda x: -problem.expected(x.T),
        [(0.0, 1.0)] * problem.d_x,
        rng=np.random.default_rng(seed),
        popsize=15,
        maxiter=60 if problem.d_c == 1 else 15,
        polish=False,
        vectorized=True,
        updating="deferred",
    )
    assert -evolved.fun <= problem.optimum + 1e-6 * problem.value_range


def test_f_is_what_is_lost_to_the_best_input(member: Member, problem: Problem) -> None:
    best = member.function.best_input()
    assert float(problem.evaluate(best[: member.d_x], best[member.d_x :])) == pytest.approx(0.0, abs=1e-9)
    inputs = np.random.default_rng(2).random((1000, member.d_x + member.d_c))
    assert (problem.evaluate(inputs[:, : member.d_x], inputs[:, member.d_x :]) <= 0).all()
    assert problem.optimum < 0


def test_batched_is_looped(problem: Problem) -> None:
    x, c = some_designs(problem, 6, seed=16), problem.sample_contexts(6, np.random.default_rng(17))
    rounding = {"rtol": 0, "atol": 1e-12 * problem.value_range}
    np.testing.assert_allclose(problem.expected(x.reshape(2, 3, -1)).ravel(), problem.expected(x), **rounding)
    table = np.array([[float(problem.evaluate(a, b)) for b in c] for a in x])
    np.testing.assert_allclose(problem.evaluate(x[:, None, :], c), table, **rounding)
    np.testing.assert_allclose(problem.evaluate(x, c), np.diag(table), **rounding)
    assert problem.expected(np.zeros((0, problem.d_x))).shape == (0,)


def test_gradient_is_that_of_the_expectation(member: Member, problem: Problem) -> None:
    """Everywhere the quotient over the family's own step; over a much shorter one too, unless f has steps, waves of
    any fineness, or kinks between the nodes of the rule."""
    x = 0.05 + 0.9 * some_designs(problem, 3, seed=18)
    values, gradient = problem.expected_and_gradient(x)
    np.testing.assert_allclose(values, problem.expected(x), rtol=1e-12)
    scale = problem.value_range
    for j in range(problem.d_x):
        step = bbob.STEP * np.eye(problem.d_x)[j]
        near, far = (problem.expected(x + k * step) - problem.expected(x - k * step) for k in (1, 2))
        slope = (8 * near - far) / (12 * bbob.STEP)
        np.testing.assert_allclose(gradient[:, j], slope, rtol=1e-6, atol=1e-8 * scale)
        if member.number not in (*ROUGH, *KINKED):
            step = 1e-5 * np.eye(problem.d_x)[j]
            slope = (problem.expected(x + step) - problem.expected(x - step)) / 2e-5
            np.testing.assert_allclose(gradient[:, j], slope, rtol=1e-4, atol=1e-4 * scale)


def test_the_problem_is_a_value(member: Member, problem: Problem) -> None:
    copy = pickle.loads(pickle.dumps(problem))
    x = some_designs(problem, 2, seed=1)
    np.testing.assert_array_equal(copy.expected(x), problem.expected(x))
    assert (problem.d_x, problem.d_c, problem.context_distribution) == (
        member.d_x,
        member.d_c,
        member.context_distribution,
    )
    with pytest.raises(InvalidDesignError):
        problem.expected(np.zeros(problem.d_x + 1))
    with pytest.raises(InvalidContextError):
        problem.evaluate(np.zeros(problem.d_x), np.zeros(problem.d_c + 1))


def suite() -> Iterator[tuple[int, object]]:
    """The functions of three inputs as the suite itself gives them."""
    for one in cocoex.Suite("bbob", "instances: 1-2", "dimensions: 3"):
        yield one.id_function, one


def test_the_functions_are_those_of_the_suite() -> None:
    rng = np.random.default_rng(4)
    seen = 0
    for number, one in suite():
        inputs = rng.random((5, 3))
        function = Member(number, 2, 1, one.id_instance).function
        best = function.best_input()
        values = [one(10 * z - 5) for z in (*inputs, best)]
        ours = function(inputs[:, :2], inputs[:, 2:])
        np.testing.assert_allclose(ours, values[-1] - np.array(values[:-1]), rtol=1e-12, atol=1e-9)
        seen += 1
    assert seen == 48


def test_a_changed_world_has_an_optimum_of_its_own() -> None:
    """What is known beforehand holds for one distribution and one direction alone."""
    problem = problems.get("bbob-f08-2+1-1")
    moved = shifted(problem, mean_shift=0.1)
    assert moved.optimum >= float(moved.expected(problem.x_star)) + 1e-6 * problem.value_range
    worst = problem.mirrored()
    assert worst.optimum >= -float(problem.expected(problem.quasi_random()).min())


def test_the_halves_are_what_they_are_said_to_be() -> None:
    assert sorted((*CHOOSE, *CONFIRM)) == list(range(1, 25))
    groups = (range(1, 6), range(6, 10), range(10, 15), range(15, 20), range(20, 25))
    for half in (CHOOSE, CONFIRM):
        assert all(set(half) & set(group) for group in groups)
    for versions in ({2, 10}, {3, 4, 15}, {8, 9, 19}, {17, 18}, {21, 22}):
        assert versions <= set(CHOOSE) or versions <= set(CONFIRM)
    assert set(bbob.TITLES) == set(range(1, 25))


def test_sizes_of_the_family() -> None:
    everything, noisy = problems.bbob_names(), problems.bbob_names(noisy=True)
    assert len(set(everything)) == 24 * 3
    assert len(set(noisy)) == 24 * 3
    assert {*problems.bbob_names("choose"), *problems.bbob_names("confirm")} == set(everything)
    assert list(references()) == everything
    distributions = {member.context_distribution for member in members()}
    assert {
        component for context_distribution in distributions for component in context_distribution.components
    } == set(bbob.CONTEXTS)


def test_noise_is_measured_by_what_there_is_to_gain() -> None:
    plain, noisy = (problems.get(f"bbob-f06-2+1-1{end}") for end in ("", "-noisy"))
    assert plain.noise_sd == 0
    assert noisy.noise_sd == pytest.approx(0.05 * (plain.optimum - np.median(plain.expected(plain.quasi_random(10)))))
    assert noisy.optimum == plain.optimum
    x, c = np.full(2, 0.3), np.full((20_000, 1), 0.6)
    drawn = noisy.observe(np.broadcast_to(x, (20_000, 2)), c, np.random.default_rng(1))
    assert drawn.std() == pytest.approx(noisy.noise_sd, rel=0.03)


@pytest.mark.parametrize(("group", "count"), [("bbob", 72), ("bbob-choose", 36), ("bbob-noisy", 72), ("classic", 3)])
def test_a_group_stands_for_its_problems(group: str, count: int) -> None:
    assert len(all_replicates(group, "random", "0", ReplicateSettings(8))) == count


def test_without_the_package_one_is_reported_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cocoex", None)
    with pytest.raises(MissingExtraError):
        Member(1, 2, 1, 77).function.best_input()


def test_recommendations_are_not_judged_in_changed_worlds() -> None:
    """Every one of these would need a search like that for x*."""
    problem = problems.get("bbob-f24-4+2-1")
    assert robust_regrets(problem, problem.x_star) == {}
