"""Every goal on every problem: its exact value against a million contexts, its optimum against many designs."""

from __future__ import annotations

import numpy as np
import pytest
from problem_cases import MONTE_CARLO_DRAWS, designs_of, outcomes_of
from scipy.stats import qmc

from edrbo.bench import problems
from edrbo.bench.problems.oracle.goals import goal_optimum, goal_range, goal_regret, goal_value, rough_value
from edrbo.bench.problems.oracle.laws import tensor_rule
from edrbo.bench.problems.problem import Problem
from edrbo.errors import InvalidValueError
from edrbo.records.goals import (
    CVaR,
    Direction,
    Expected,
    Goal,
    Hit,
    MeanSd,
    Quantile,
    Reach,
    Robust,
    Within,
    WorstCase,
    sign_of,
)

pytestmark = pytest.mark.numpy_numeric
DIRECTIONS: tuple[Direction, Direction] = ("maximize", "minimize")
# Of the range of f over contexts, or of one for a probability, with one and with two context variables.
ACCURACY = 1e-4


def goals_between(values: np.ndarray) -> list[Goal]:
    """Goals that look at a part of the values: none of them trivial."""
    low, middle, high = np.quantile(values, [0.2, 0.45, 0.8])
    spread = high - low or 1e-3
    # Not on the values themselves, where a plateau of f would make a share hang on rounding.
    ends = float(low - 0.01 * spread), float(high + 0.01 * spread)
    tails: list[Goal] = [CVaR(0.1), CVaR(0.5), Quantile(0.1), Quantile(0.7), WorstCase()]
    return [Expected(), MeanSd(1.0), *tails, Reach(float(middle + 0.01 * spread)), Within(*ends), Hit(float(high))]


def error_of_draws(goal: Goal, values: np.ndarray, weights: np.ndarray) -> float:
    """Four standard errors of what a million draws give, from the values of f on a quadrature rule.

    From the rule and not from the draws, which need not have met a rare drop of f at all.
    """
    mean = weights @ values
    sd = max(float(np.sqrt(weights @ (values - mean) ** 2)), 1e-300)
    match goal:
        case CVaR(level=level):
            order = np.argsort(values)
            quantile = values[order][min(np.searchsorted(weights[order].cumsum(), level), len(values) - 1)]
            influence = np.minimum(values - quantile, 0) / level
        case MeanSd(k=k):
            influence = values - k * ((values - mean) ** 2 - sd**2) / (2 * sd)
        case Expected():
            influence = values
        case Hit(target=target):
            influence = (values - target) ** 2
        case _:  # a share of one half has the largest error
            return 4 * 0.5 / np.sqrt(MONTE_CARLO_DRAWS)
    off = influence - weights @ influence
    return 4 * float(np.sqrt(weights @ off**2)) / np.sqrt(MONTE_CARLO_DRAWS)


def check_quantile(level: float, found: float, values: np.ndarray, slack: float) -> None:
    """The share of draws below what was found, and at or below it, lie on either side of the level."""
    error = 4 * np.sqrt(level * (1 - level) / len(values))
    assert (values < found - slack).mean() <= level + error
    assert (values <= found + slack).mean() >= level - error


def test_values_are_those_of_a_million_contexts(problem: Problem) -> None:
    contexts = problem.sample_contexts(MONTE_CARLO_DRAWS, np.random.default_rng(21))
    designs = (problem.x_star + designs_of(problem, 1, seed=22)) / 2
    equal = np.full(MONTE_CARLO_DRAWS, 1 / MONTE_CARLO_DRAWS)
    rules = [law.quadrature(problem.breaks, 64 // problem.d_c**2, 8) for law in problem.law.components]
    lines, weights = [line for line, _ in rules], tensor_rule(rules)[1]
    for x, values in zip(designs, outcomes_of(problem, designs, contexts), strict=True):
        on_rule = problem.over_grid(x[None], lines)[0]
        scale = float(np.ptp(values))
        for goal in goals_between(values):
            for direction in DIRECTIONS:
                found, sign = float(goal_value(problem, goal, x, direction)), sign_of(direction)
                unit = {"outcome": scale, "probability": 1.0, "squared outcome": scale**2}[goal.kind]
                if isinstance(goal, Quantile):
                    check_quantile(goal.level, sign * found, sign * values, ACCURACY * scale)
                elif isinstance(goal, WorstCase):
                    assert sign * found <= (sign * values).min() + ACCURACY * scale
                else:
                    drawn = float(goal.value(values, equal, direction))
                    error = error_of_draws(goal, sign * on_rule, weights)
                    assert abs(found - drawn) < error + ACCURACY * unit, (goal, direction)


def test_the_worst_case_is_the_least_of_many_contexts(problem: Problem) -> None:
    """No context beats it, and one comes close: the box by a lattice that shares no point with the oracle's."""
    x = np.vstack([problem.x_star, designs_of(problem, 1, seed=23)])
    size = 9_000 if problem.d_c == 1 else 250
    line = (np.arange(size) + 0.5) / size
    with_ends = np.concatenate([[0.0], line, [1.0]])
    for one, values in zip(x, problem.over_grid(x, [with_ends] * problem.d_c), strict=True):
        scale = float(np.ptp(values))
        for direction in DIRECTIONS:
            sign = sign_of(direction)
            found = sign * float(goal_value(problem, WorstCase(), one, direction))
            assert found <= (sign * values).min() + 1e-7 * scale
            assert found >= (sign * values).min() - 2e-3 * scale


def test_robust_lies_between_the_mean_and_the_worst(problem: Problem) -> None:
    x = designs_of(problem, 1, seed=24)
    for direction in DIRECTIONS:
        sign = sign_of(direction)
        mean, worst = (sign * goal_value(problem, goal, x, direction)[0] for goal in (Expected(), WorstCase()))
        found = [sign * goal_value(problem, Robust(radius), x, direction)[0] for radius in (0.0, 0.05, 0.2)]
        assert found[0] == pytest.approx(mean, abs=1e-9 * max(1, abs(mean)))
        assert worst - 1e-3 * (mean - worst) <= found[2] <= found[1] <= mean + 1e-9 * max(1, abs(mean))


@pytest.mark.parametrize("goal", [CVaR(0.2), Quantile(0.3), MeanSd(2.0), WorstCase(), Robust(0.1), Expected()])
def test_minimizing_mirrors_maximizing(goal: Goal) -> None:
    for name in ("six-hump-camel", "dose-response"):
        problem = problems.get(name)
        x = designs_of(problem, 2, seed=25)
        mirrored = -goal_value(problem.mirrored(), goal, x, "maximize")
        np.testing.assert_allclose(goal_value(problem, goal, x, "minimize"), mirrored, rtol=1e-12, atol=1e-12)


ALL_GOALS: tuple[Goal, ...] = (CVaR(0.1), Quantile(0.1), WorstCase(), MeanSd(1.0), Robust(0.1))


def goal_for(name: str) -> Goal:
    """Goals take turns over the problems, so that each is checked on several; all of them would take minutes."""
    problem = problems.get(name)
    best = problem.optimum
    turn: tuple[Goal, ...] = (*ALL_GOALS, Reach(best), Within(best - 0.2 * problem.value_range, best), Hit(best))
    order = [*problems.names(), *problems.further_names()]
    return turn[order.index(name) % len(turn)]


OPTIMA = [(name, None) for name in (*problems.names(), *problems.further_names())]
OPTIMA += [("newsvendor", goal) for goal in ALL_GOALS]


@pytest.mark.parametrize(("name", "goal"), OPTIMA, ids=str)
def test_no_design_beats_the_optimum(name: str, goal: Goal | None) -> None:
    problem, goal = problems.get(name), goal or goal_for(name)
    direction = DIRECTIONS[len(name) % 2]
    x, best = goal_optimum(problem, goal, direction)
    assert ((x >= 0) & (x <= 1)).all()
    assert best == pytest.approx(float(goal_value(problem, goal, x, direction)), abs=1e-12)
    sense, scale = goal.sense(direction), goal_range(problem, goal, direction)
    if problem.d_x <= 2 and not (isinstance(goal, Robust) and problem.d_c > 1):
        line = np.linspace(0, 1, 601 if problem.d_x == 1 else 61)
        designs = np.stack(np.meshgrid(*[line] * problem.d_x), axis=-1).reshape(-1, problem.d_x)
    else:
        designs = qmc.Sobol(problem.d_x, rng=np.random.default_rng(98)).random_base2(8 if problem.d_c > 1 else 11)
    rough = sense * rough_value(problem, goal, designs, direction)
    near = designs[np.argsort(-rough)[:20]]
    assert (sense * goal_value(problem, goal, near, direction)).max() <= sense * best + 1e-6 * scale
    assert (goal_regret(problem, goal, near, direction) >= 0).all()
    assert goal_regret(problem, goal, x, direction) == 0


def test_what_is_not_known_exactly_is_refused() -> None:
    problem = problems.get("newsvendor")
    with pytest.raises(InvalidValueError, match="kl"):
        goal_value(problem, Robust(0.1, "kl"), np.array([0.3]))
