"""Every goal on every problem: its exact value against many contexts, its optimum against many designs.

``research/goal_oracles.py`` checks all optima, and the values against a million contexts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from problem_cases import designs_of, outcomes_of

from edrbo.bench import problems
from edrbo.bench.problems.oracle.distributions import iid, tensor_rule, uniform
from edrbo.bench.problems.oracle.goals import goal_optimum, goal_range, goal_regret, goal_value, rough_value
from edrbo.bench.problems.problem import Problem
from edrbo.errors import InvalidValueError
from edrbo.records.goals import (
    CVaR,
    Direction,
    Expected,
    Goal,
    MeanSd,
    ProbabilityBetterThan,
    ProbabilityWithin,
    Quantile,
    Robust,
    TargetLoss,
    WorstCase,
    parse_goal,
    sign_of,
)

pytestmark = pytest.mark.numpy_numeric
DIRECTIONS: tuple[Direction, Direction] = ("maximize", "minimize")
# Of the range of f over contexts, or of one for a probability, with one and with two context variables.
ACCURACY = 1e-4
DRAWS = 40_000


each_problem = pytest.mark.parametrize("case", [*problems.names(), *problems.further_names()], indirect=True)


def goals_between(values: np.ndarray) -> list[Goal]:
    """Goals that look at a part of the values: none of them trivial."""
    low, middle, high = np.quantile(values, [0.2, 0.45, 0.8])
    spread = high - low or 1e-3
    # Not on the values themselves, where a plateau of f would make a share hang on rounding.
    ends = float(low - 0.01 * spread), float(high + 0.01 * spread)
    tails: list[Goal] = [CVaR(0.1), CVaR(0.5), Quantile(0.1), Quantile(0.7), WorstCase()]
    return [
        Expected(),
        MeanSd(1.0),
        *tails,
        ProbabilityBetterThan(float(middle + 0.01 * spread)),
        ProbabilityWithin(*ends),
        TargetLoss(float(high)),
    ]


def error_of_draws(goal: Goal, values: np.ndarray, weights: np.ndarray) -> float:
    """Four standard errors of what so many draws give, from the values of f on a quadrature rule.

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
        case TargetLoss(target=target):
            influence = (values - target) ** 2
        case _:  # a share of one half has the largest error
            return 4 * 0.5 / np.sqrt(DRAWS)
    off = influence - weights @ influence
    return 4 * float(np.sqrt(weights @ off**2)) / np.sqrt(DRAWS)


def check_quantile(level: float, found: float, values: np.ndarray, slack: float) -> None:
    """The share of draws below what was found, and at or below it, lie on either side of the level."""
    error = 4 * np.sqrt(level * (1 - level) / len(values))
    assert (values < found - slack).mean() <= level + error
    assert (values <= found + slack).mean() >= level - error


@each_problem
def test_values_are_those_of_many_contexts(problem: Problem) -> None:
    contexts = problem.sample_contexts(DRAWS, np.random.default_rng(21))
    designs = (problem.x_star + designs_of(problem, 1, seed=22)) / 2
    equal = np.full(DRAWS, 1 / DRAWS)
    rules = [
        context_distribution.quadrature(problem.breaks, 64 // problem.d_c**2, 8)
        for context_distribution in problem.context_distribution.components
    ]
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


@each_problem
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


@each_problem
def test_robust_lies_between_the_mean_and_the_worst(problem: Problem) -> None:
    x = designs_of(problem, 1, seed=24)
    direction = DIRECTIONS[len(problem.name) % 2]
    sign = sign_of(direction)
    goals = (Expected(), WorstCase(), Robust(0.0), Robust(0.1))
    mean, worst, none, some = (sign * float(goal_value(problem, goal, x, direction)[0]) for goal in goals)
    assert none == pytest.approx(mean, abs=1e-9 * max(1, abs(mean)))
    assert worst - 1e-3 * (mean - worst) <= some < mean


@pytest.mark.parametrize("goal", [CVaR(0.2), Quantile(0.3), MeanSd(2.0), WorstCase(), Robust(0.1), Expected()])
def test_minimizing_mirrors_maximizing(goal: Goal) -> None:
    for name in ("six-hump-camel", "dose-response"):
        problem = problems.get(name)
        x = designs_of(problem, 2, seed=25)
        mirrored = -goal_value(problem.mirrored(), goal, x, "maximize")
        np.testing.assert_allclose(goal_value(problem, goal, x, "minimize"), mirrored, rtol=1e-12, atol=1e-12)


NEWSVENDOR = ("cvar:0.1", "quantile:0.1", "worst-case", "mean-sd:1", "robust:0.1", "hit:1.2", "within:0.5,1.5")
OPTIMA = [("newsvendor", text) for text in NEWSVENDOR]
OPTIMA += [("six-hump-camel", "reach:0.39"), ("dose-response", "cvar:0.1"), ("dose-response", "reach:0.7")]


@pytest.mark.parametrize(("name", "text"), OPTIMA, ids=str)
def test_no_design_beats_the_optimum(name: str, text: str) -> None:
    problem, goal = problems.get(name), parse_goal(text)
    direction = DIRECTIONS[len(text) % 2]
    x, best = goal_optimum(problem, goal, direction)
    assert ((x >= 0) & (x <= 1)).all()
    assert best == pytest.approx(float(goal_value(problem, goal, x, direction)), abs=1e-12)
    sense, scale = goal.sense(direction), goal_range(problem, goal, direction)
    designs = np.linspace(0, 1, 601)[:, None]
    rough = sense * rough_value(problem, goal, designs, direction)
    near = designs[np.argsort(-rough)[:20]]
    assert (sense * goal_value(problem, goal, near, direction)).max() <= sense * best + 1e-6 * scale
    assert (goal_regret(problem, goal, near[:3], direction) >= 0).all()
    assert goal_regret(problem, goal, x, direction) == 0


def of_uniform_contexts(d_c: int, f: Callable[[np.ndarray], np.ndarray]) -> Problem:
    """A problem whose outcome does not depend on the design."""
    return Problem("context_distribution", "", 1, iid(uniform(), d_c), lambda x, c: f(c) + 0 * x[..., 0])


# f, quantile and tail mean at 0.1, P(f ≥ 0.3), and the accuracies that goals.py states.
KNOWN_DISTRIBUTIONS = [
    (1, lambda c: c[..., 0] ** 2, 0.1**2, 0.1**2 / 3, 1 - 0.3**0.5, 1e-5, 1e-4),
    (2, lambda c: c.sum(-1), 0.2**0.5, 0.2**1.5 / 0.3, 1 - 0.3**2 / 2, 2e-4, 5e-4),
    (2, lambda c: c.prod(-1), 0.02045107, 0.00917992, 1 - 0.3 * (1 - np.log(0.3)), 1e-4, 5e-4),
    (3, lambda c: c.sum(-1), 0.6 ** (1 / 3), 0.6 ** (4 / 3) / 0.8, 1 - 0.3**3 / 6, 9e-3, 1e-2),
]


@pytest.mark.parametrize(("d_c", "f", "quantile", "tail", "share", "accuracy", "of_shares"), KNOWN_DISTRIBUTIONS)
def test_distributions_that_are_known_in_closed_form(
    d_c: int,
    f: Callable[[np.ndarray], np.ndarray],
    quantile: float,
    tail: float,
    share: float,
    accuracy: float,
    of_shares: float,
) -> None:
    problem, x = of_uniform_contexts(d_c, f), np.array([0.5])
    assert goal_value(problem, Quantile(0.1), x) == pytest.approx(quantile, abs=accuracy)
    assert goal_value(problem, CVaR(0.1), x) == pytest.approx(tail, abs=accuracy)
    assert goal_value(problem, ProbabilityBetterThan(0.3), x) == pytest.approx(share, abs=of_shares)
    assert goal_value(problem, ProbabilityBetterThan(0.3), x, "minimize") == pytest.approx(1 - share, abs=of_shares)


def test_what_is_not_known_exactly_is_refused() -> None:
    problem = problems.get("newsvendor")
    with pytest.raises(InvalidValueError, match="kl"):
        goal_value(problem, Robust(0.1, "kl"), np.array([0.3]))
