"""The goals as values: their numbers against definitions, their words, text and JSON."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import cvxpy
import numpy as np
import pytest
import torch
from scipy import integrate, stats

import edrbo
from edrbo.errors import InvalidValueError, NotStorableError, UnknownNameError
from edrbo.records.goals import (
    CVaR,
    Expected,
    Goal,
    MeanSd,
    ProbabilityBetterThan,
    ProbabilityWithin,
    Quantile,
    Robust,
    TargetLoss,
    Utility,
    WorstCase,
    as_goal,
    goal_from_dict,
    goal_names,
    parse_goal,
)

ROWS_ONLY = [
    Expected(),
    CVaR(0.3),
    Quantile(0.3),
    WorstCase(),
    MeanSd(0.8),
    ProbabilityBetterThan(0.2),
    ProbabilityWithin(-0.5, 0.4),
    TargetLoss(0.3),
]
TEXTS = {
    "expected": Expected(),
    "cvar:0.1": CVaR(0.1),
    "quantile:0.05": Quantile(0.05),
    "worst-case": WorstCase(),
    "worst-case:seen": WorstCase("seen"),
    "robust:0.1": Robust(0.1),
    "robust:0.1:kl": Robust(0.1, "kl"),
    "mean-sd:1": MeanSd(1),
    "reach:-5": ProbabilityBetterThan(-5),
    "within:3,5": ProbabilityWithin(3, 5),
    "hit:1e-07": TargetLoss(1e-7),
}


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(40, 12))


def repeated(row: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """A sample in which every outcome stands as often as its weight says."""
    return np.sort(np.repeat(row, counts))


def by_definition(goal: Goal, sample: np.ndarray, direction: str) -> float:
    """From a sorted sample of 100 equally likely outcomes."""
    ordered = sample if direction == "maximize" else sample[::-1]
    match goal:
        case Expected():
            return sample.mean()
        case CVaR(level):
            return ordered[: round(100 * level)].mean()
        case Quantile(level):
            return ordered[round(100 * level) - 1]
        case WorstCase():
            return ordered[0]
        case MeanSd(k):
            return sample.mean() + (-k if direction == "maximize" else k) * sample.std()
        case ProbabilityBetterThan(spec):
            return ((sample >= spec) if direction == "maximize" else (sample <= spec)).mean()
        case ProbabilityWithin(low, high):
            return ((low <= sample) & (sample <= high)).mean()
        case TargetLoss(target):
            return np.square(sample - target).mean()
    raise AssertionError(goal)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("goal", ROWS_ONLY, ids=str)
def test_value_is_the_definition_on_an_equally_weighted_sample(goal, direction, rows) -> None:
    counts = np.random.default_rng(1).multinomial(88, np.full(12, 1 / 12)) + 1
    expected = [by_definition(goal, repeated(row, counts), direction) for row in rows]
    values = goal.value(rows, counts / 100, direction)
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-14)
    as_tensor = goal.value(torch.from_numpy(rows), torch.from_numpy(counts / 100), direction)
    np.testing.assert_allclose(as_tensor.numpy(), values, rtol=1e-13, atol=1e-15)
    each = np.broadcast_to(counts / 100, rows.shape)
    np.testing.assert_allclose(goal.value(rows, each, direction), values, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("goal", [Expected(), CVaR(0.3), Quantile(0.3), WorstCase(), MeanSd(0.8)], ids=str)
def test_minimizing_f_is_maximizing_minus_f(goal, rows) -> None:
    weights = np.full(12, 1 / 12)
    np.testing.assert_allclose(
        goal.value(rows, weights, "minimize"), -goal.value(-rows, weights, "maximize"), rtol=1e-13
    )
    assert goal.sense("maximize") == 1.0
    assert goal.sense("minimize") == -1.0


def test_specifications_say_which_way_is_better() -> None:
    for direction in ("maximize", "minimize"):
        assert (
            ProbabilityBetterThan(0).sense(direction),
            ProbabilityWithin(0, 1).sense(direction),
            TargetLoss(0).sense(direction),
        ) == (1.0, 1.0, -1.0)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("goal", [ProbabilityBetterThan(0.2), ProbabilityWithin(-0.5, 0.4), TargetLoss(0.3)], ids=str)
def test_expected_is_the_integral_over_the_belief(goal, direction) -> None:
    mean, sd, weights = np.array([-0.4, 0.1, 0.9]), np.array([0.2, 0.6, 0.3]), np.array([0.5, 0.3, 0.2])

    def integral(m: float, s: float) -> float:
        breaks = [b for b in (0.2, -0.5, 0.4) if abs(b - m) < 8 * s]
        density = stats.norm(m, s).pdf
        return integrate.quad(
            lambda f: float(goal.utility(np.float64(f), direction)) * density(f), m - 9 * s, m + 9 * s, points=breaks
        )[0]

    expected = sum(w * integral(m, s) for w, m, s in zip(weights, mean, sd, strict=True))
    assert goal.expected(mean, sd, weights, direction) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("goal", [Expected(), CVaR(0.3), Quantile(0.3), WorstCase(), MeanSd(0.8)], ids=str)
def test_optimism_is_above_every_f_within_reach(goal, direction) -> None:
    draw = np.random.default_rng(2)
    weights = draw.dirichlet(np.ones(8))
    mean, gain = draw.normal(size=8), 0.5 * draw.random(8)
    best = goal.optimistic(mean, gain, gain, weights, direction)
    inside = mean + gain * draw.uniform(-1, 1, size=(2000, 8))
    sense = goal.sense(direction)
    assert (sense * goal.value(inside, weights, direction)).max() <= sense * best + 1e-12
    assert goal.optimistic(mean, gain, 0 * gain, weights, direction) == pytest.approx(
        goal.value(mean, weights, direction), rel=1e-12
    )
    assert sense * goal.optimistic(mean, gain, -gain, weights, direction) < sense * goal.value(mean, weights, direction)


@pytest.mark.parametrize("width", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("k", [0.3, 1.5, 4.0])
@pytest.mark.parametrize("seed", range(3))
def test_optimism_of_mean_minus_deviation_is_the_maximum_over_the_intervals(seed, k, width) -> None:
    """A concave problem: the mean less the norm of √w (f − mean)."""
    draw = np.random.default_rng(seed)
    weights = draw.dirichlet(np.ones(6))
    mean, gain = draw.normal(size=6), width * draw.random(6)
    f = cvxpy.Variable(6)
    value = weights @ f - k * cvxpy.norm(cvxpy.multiply(np.sqrt(weights), f - weights @ f))
    best = cvxpy.Problem(cvxpy.Maximize(value), [f >= mean - gain, f <= mean + gain]).solve(solver="CLARABEL")
    assert MeanSd(k).optimistic(mean, gain, gain, weights, "maximize") == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("goal", [*ROWS_ONLY, ProbabilityBetterThan(-0.3)], ids=str)
def test_optimism_becomes_the_value_as_the_belief_narrows(goal, direction, rows) -> None:
    weights = np.full(12, 1 / 12)
    sd = np.full_like(rows, 1e-9)
    np.testing.assert_allclose(
        goal.optimistic(rows, sd, 1.5 * sd, weights, direction), goal.value(rows, weights, direction), atol=1e-7
    )


@pytest.mark.parametrize("k", [0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("count", [2, 4])
def test_mean_sd_finds_the_best_level_also_where_one_fits_all_intervals(k: float, count: int) -> None:
    rng = np.random.default_rng(7)
    mean, gain, weights = rng.standard_normal((400, count)), 10.0 * rng.random((400, count)), rng.random(count)
    low, high, weights = mean - gain, mean + gain, weights / weights.sum()
    levels = np.concatenate([np.linspace(low.min(-1), high.max(-1), 301).T, low, high], axis=1)[:, :, None]
    tried = MeanSd(k).value(np.clip(levels, low[:, None], high[:, None]), weights, "maximize").max(1)
    found = MeanSd(k).optimistic(mean, gain, gain, weights, "maximize")
    assert (found >= tried - 1e-6).all()


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize(
    "goal",
    [ProbabilityBetterThan(0.2), ProbabilityWithin(-0.5, 0.4), TargetLoss(0.3), MeanSd(0.8), MeanSd(5), CVaR(0.3)],
    ids=str,
)
@pytest.mark.parametrize("width", [-0.4, 0.5, 5.0])
def test_optimism_has_the_gradient_of_its_differences(goal, direction, width) -> None:
    draw = np.random.default_rng(3)
    weights = torch.from_numpy(draw.dirichlet(np.ones(6)))
    mean, sd = torch.from_numpy(draw.normal(size=6)), torch.from_numpy(0.1 + draw.random(6))
    gain = 1.5 * sd + width

    def value(m: torch.Tensor, s: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        return goal.optimistic(m, s, g, weights, direction)

    inputs = tuple(t.clone().requires_grad_() for t in (mean, sd, gain))
    assert torch.autograd.gradcheck(value, inputs, eps=1e-6, atol=1e-6)


def test_hit_prefers_the_target_in_the_middle_of_an_interval() -> None:
    mean, sd = np.array([0.0, 0.5, 1.0, 3.0]), np.ones(4)
    distance = TargetLoss(0).optimistic_utility(mean, sd, 1.5 * sd, "maximize")
    assert (np.diff(distance) > 0).all()
    assert distance[0] < 0.01
    far = TargetLoss(0).optimistic_utility(np.array([30.0]), np.ones(1), np.array([1.5]), "maximize")
    assert far[0] == pytest.approx(28.5**2, rel=1e-3)


@dataclass(frozen=True)
class Comfort(Utility):
    """A goal of one's own: satisfaction that fades smoothly away from the best outcome."""

    best: float
    name: ClassVar[str] = "comfort"

    def utility(self, outcomes, direction):
        return 1.0 / (1.0 + (outcomes - self.best) ** 2)


def test_a_utility_of_ones_own_has_expectation_and_optimism() -> None:
    goal, draw = Comfort(1.0), np.random.default_rng(4)
    mean, sd, weights = np.array([0.2, 1.5]), np.array([0.3, 0.5]), np.array([0.4, 0.6])
    sample = mean + sd * draw.normal(size=(400_000, 2))
    assert goal.expected(mean, sd, weights, "maximize") == pytest.approx(
        goal.value(sample, weights, "maximize").mean(), abs=3e-3
    )
    near, far = goal.optimistic_utility(mean, sd, 2 * sd, "maximize")
    assert near == pytest.approx(1 / (1 + 0.2**2))  # [−0.4, 0.8] ends before the best
    assert far == pytest.approx(1.0)  # [0.5, 2.5] holds it
    assert goal.optimistic_utility(mean, sd, -2 * sd, "maximize")[1] == pytest.approx(1 / (1 + 1.5**2))


def test_a_goal_of_ones_own_is_stored_once_it_is_registered(monkeypatch) -> None:
    monkeypatch.setattr("edrbo.records.goals._REGISTERED", {n: type(g) for n, g in _by_name().items()})
    with pytest.raises(NotStorableError):
        Comfort(1.0).to_dict()
    with pytest.raises(UnknownNameError, match="comfort"):
        parse_goal("comfort:1")
    edrbo.register(Comfort)
    edrbo.register(Comfort)  # a module may be loaded again
    assert parse_goal(Comfort(1.5).to_text()) == goal_from_dict(Comfort(1.5).to_dict()) == Comfort(1.5)


def _by_name() -> dict[str, Goal]:
    return {text.split(":")[0]: goal for text, goal in TEXTS.items()}


def test_a_name_is_taken_once(monkeypatch) -> None:
    monkeypatch.setattr(Comfort, "name", "cvar")
    with pytest.raises(InvalidValueError, match="CVaR"):
        edrbo.register(Comfort)
    monkeypatch.setattr(Comfort, "name", "Not A Name")
    with pytest.raises(InvalidValueError, match="name"):
        edrbo.register(Comfort)
    with pytest.raises(InvalidValueError, match="dataclass"):
        edrbo.register(int)


def test_a_goal_that_is_not_monotone_must_say_what_its_optimism_is() -> None:
    class Spread(Goal):
        monotone: ClassVar[bool] = False

        def value(self, outcomes, weights, direction):
            return outcomes.max(-1) - outcomes.min(-1)

    with pytest.raises(InvalidValueError, match="optimism"):
        Spread().optimistic(np.zeros(3), np.ones(3), np.ones(3), np.full(3, 1 / 3), "maximize")
    assert Spread().title() == "Spread"


@pytest.mark.parametrize(("text", "goal"), TEXTS.items())
def test_text_and_dictionary_are_read_back(text, goal) -> None:
    assert parse_goal(text) == goal == as_goal(goal) == as_goal(text)
    assert goal.to_text() == text
    assert goal_from_dict(goal.to_dict()) == goal == as_goal(goal.to_dict())


def test_every_goal_of_the_table_is_registered() -> None:
    assert set(goal_names()) >= set(_by_name())
    assert parse_goal(" within: 3 , 5 ") == ProbabilityWithin(3.0, 5.0)


@pytest.mark.parametrize(
    "text",
    ["cvar", "cvar:0", "cvar:1.5", "cvar:x", "cvar:0.1:2", "quantile:nan", "robust:-1", "robust:0.1:euclid", "hit:inf",
     "within:5,3", "within:3", "mean-sd:-1", "worst-case:here", "reach:", "expected:1"],
)  # fmt: skip
def test_nonsense_is_refused_with_a_hint(text) -> None:
    with pytest.raises(InvalidValueError) as error:
        parse_goal(text)
    assert error.value.hint


@pytest.mark.parametrize(
    "record", [{}, {"goal": 3}, 5, {"goal": "cvar", "alpha": 0.1}, {"goal": "cvar", "level": True}]
)
def test_a_record_that_is_no_goal_is_refused(record) -> None:
    with pytest.raises(InvalidValueError):
        as_goal(record)
    with pytest.raises(UnknownNameError, match="expected"):
        goal_from_dict({"goal": "median"})


def test_direction_is_one_of_two_words() -> None:
    with pytest.raises(InvalidValueError, match="direction"):
        CVaR(0.1).value(np.zeros(2), np.full(2, 0.5), "up")


def test_a_ball_of_distributions_cannot_do_without_contexts() -> None:
    with pytest.raises(InvalidValueError, match="contexts"):
        Robust(0.1).value(np.zeros(2), np.full(2, 0.5), "maximize")
    assert [Robust(0.1, d).over_box for d in ("wasserstein", "kl", "mmd")] == [True, False, True]
    assert (WorstCase().over_box, WorstCase("seen").over_box) == (True, False)


def test_words_for_people() -> None:
    assert CVaR(0.1).title() == "mean of the worst 10 % of conditions"
    assert Quantile(0.05).title("maximize") == "value reached in 95 % of conditions"
    assert Quantile(0.05).title("minimize") == "value not exceeded in 95 % of conditions"
    assert ProbabilityBetterThan(5).title("minimize", "roughness") == "share of conditions with roughness ≤ 5"
    assert MeanSd(2).title("minimize") == "mean plus 2 standard deviations"
    assert Robust(0.1).title() == "worst mean when conditions shift by 10 % of their range"
    assert CVaR(0.1).axis("maximize", "yield", "kg") == "yield, mean of the worst 10 % of conditions (kg)"
    assert (
        ProbabilityWithin(3, 5).axis("maximize", "thickness", "µm") == "share of conditions with thickness from 3 to 5"
    )
    assert TargetLoss(50).axis("maximize", "thickness", "µm") == "mean squared distance from 50 (µm²)"
    titles = {goal.title(direction) for goal in TEXTS.values() for direction in ("maximize", "minimize")}
    assert len(titles) == len(TEXTS) + 3  # Quantile, MeanSd and Reach speak of the direction


def test_goals_do_not_load_torch() -> None:
    program = (
        "import sys, numpy as np, edrbo; g = edrbo.CVaR(0.1); g.to_text(); g.title();"
        "g.value(np.zeros((2, 3)), np.full(3, 1/3), 'maximize'); "
        "edrbo.ProbabilityBetterThan(1).expected(np.zeros(3), np.ones(3),"
        "np.full(3, 1/3), 'minimize'); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
