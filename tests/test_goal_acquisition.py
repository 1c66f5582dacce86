"""Goals on beliefs: against explicit loops, finite differences and joint samples, in both directions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

from edrbo.acquisition import acquisition as module
from edrbo.acquisition.acquisition import GoalAcquisition, ModelGoal, RobustAcquisition
from edrbo.acquisition.risk import KL, MMD, ChiSquare, TotalVariation, Wasserstein
from edrbo.acquisition.scores import UCB, BarycenterUCB, MeanUCB
from edrbo.acquisition.search.maximizer import maximize
from edrbo.contexts.distributions import ContextPoints, box_points
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
)
from edrbo.records.outcomes import Units
from edrbo.space import Space
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate, single_gp

pytestmark = [pytest.mark.torch_numeric, pytest.mark.numpy_numeric]

UP, DOWN = Units(1.0, 2.0), Units(-1.0, 0.5)  # y = ±scale · model
WEIGHTS = torch.tensor([0.1, 0.3, 0.05, 0.25, 0.2, 0.1], dtype=torch.float64)


@dataclass(frozen=True)
class Comfort(Utility):
    best: float

    def utility(self, outcomes, direction):
        return 1.0 / (1.0 + (outcomes - self.best) ** 2)


@dataclass(frozen=True)
class Typical(Goal):
    """Monotone, of one's own: the mean of a saturating function."""

    def value(self, outcomes, weights, direction):
        return (weights * outcomes.tanh()).sum(-1)


POINTWISE = [ProbabilityBetterThan(0.3), ProbabilityWithin(-0.2, 0.6), TargetLoss(0.4), MeanSd(0.7), Comfort(0.2)]
FUNCTIONAL = [CVaR(0.25), Quantile(0.4), WorstCase(), Robust(0.1), Typical()]


def uniform(*size: int, seed: int) -> Tensor:
    return torch.rand(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def model(surrogate: Surrogate | None = None, n: int = 12) -> ExpertEnsemble:
    inputs = uniform(n, 3, seed=1)
    outcomes = torch.sin(4.0 * inputs[:, 0]) * inputs[:, 2] - (inputs[:, 1] - 0.5).square() + 0.3 * inputs[:, 2]
    return (surrogate or Surrogate()).fit(inputs, outcomes)


def points(support: int = 0) -> ContextPoints:
    zero = torch.zeros(1, dtype=torch.float64)
    return ContextPoints(uniform(6, 1, seed=2), WEIGHTS, box_points(zero, zero + 1.0, support))


DESIGNS = uniform(5, 2, seed=3)


@pytest.mark.parametrize("units", [UP, DOWN], ids=["maximize", "minimize"])
@pytest.mark.parametrize("goal", POINTWISE, ids=str)
def test_a_pointwise_goal_is_optimistic_at_every_context(goal: Goal, units: Units) -> None:
    """μ̄, σ̄ and gain one (x, c) at a time; then the goal in the user's units."""
    posteriors, score, context_distribution = model(), BarycenterUCB(), points()
    direction = "maximize" if units.sign > 0 else "minimize"
    expected = []
    for x in DESIGNS:
        rows = []
        for c in context_distribution.atoms:
            mean, sd = posteriors.moments(torch.cat([x, c])[None])
            rows.append([float(mean.mean()), float(sd.mean()), float(score(mean, sd)) - float(mean.mean())])
        center, spread, gain = np.array(rows).T
        value = goal.optimistic(
            units.sign * units.scale * center, units.scale * spread, units.scale * gain, WEIGHTS.numpy(), direction
        )
        expected.append(goal.sense(direction) * float(value))
    found = ModelGoal(goal, units).acquisition(posteriors, score, context_distribution).evaluate(DESIGNS)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("units", [UP, DOWN], ids=["maximize", "minimize"])
@pytest.mark.parametrize("goal", [*POINTWISE, *FUNCTIONAL], ids=str)
@pytest.mark.parametrize("kind", ["ask", "recommend"])
def test_gradients_are_those_of_differences_and_of_autograd(goal: Goal, units: Units, kind: str) -> None:
    model_goal, context_distribution = ModelGoal(goal, units), points(8 if goal.over_box else 0)
    make = {
        "ask": lambda: model_goal.acquisition(model(), BarycenterUCB(), context_distribution),
        "recommend": lambda: model_goal.posterior(model(), context_distribution),
    }
    acquisition = make[kind]()
    value, gradient = acquisition.value_and_gradient(DESIGNS)
    x = DESIGNS.clone().requires_grad_()
    again = acquisition.evaluate(x)
    (by_autograd,) = torch.autograd.grad(again.sum(), x)
    torch.testing.assert_close(value, again.detach(), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(gradient, by_autograd, rtol=1e-8, atol=1e-10)
    step = 1e-5
    for k in range(2):
        move = torch.zeros(2, dtype=torch.float64)
        move[k] = step
        with torch.no_grad():
            slope = (acquisition.evaluate(DESIGNS + move) - acquisition.evaluate(DESIGNS - move)) / (2 * step)
        torch.testing.assert_close(gradient[:, k], slope, rtol=2e-4, atol=2e-6)


def test_weights_of_the_experts_count() -> None:
    posteriors = model(Surrogate(weighting="evidence"))
    acquisition = ModelGoal(TargetLoss(0.4), UP).acquisition(posteriors, BarycenterUCB(), points())
    _, gradient = acquisition.value_and_gradient(DESIGNS)
    x = DESIGNS.clone().requires_grad_()
    (by_autograd,) = torch.autograd.grad(acquisition.evaluate(x).sum(), x)
    torch.testing.assert_close(gradient, by_autograd, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("units", [UP, DOWN], ids=["maximize", "minimize"])
@pytest.mark.parametrize("goal", [ProbabilityBetterThan(0.1), ProbabilityWithin(-0.2, 0.6), TargetLoss(0.4)], ids=str)
def test_the_posterior_expectation_is_the_mean_over_joint_samples(goal: Goal, units: Units) -> None:
    """With few data, so that the value of the mean surface is far off."""
    posteriors, context_distribution = model(single_gp(), n=5), points()
    model_goal = ModelGoal(goal, units)
    found = model_goal.sense * model_goal.posterior(posteriors, context_distribution).evaluate(DESIGNS).detach()
    draw = np.random.default_rng(0)
    biased = 0
    for x, value in zip(DESIGNS, found.tolist(), strict=True):
        joint = torch.cat([x.expand(6, -1), context_distribution.atoms], dim=-1)
        mean, covariance = posteriors.gp.posterior(joint)
        mean, covariance = posteriors.scaling.moments(mean, torch.ones_like(mean))[0][0], covariance[0]
        unit = float(posteriors.scaling.moments(torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.float64))[1])
        sample = draw.multivariate_normal(mean.numpy(), unit**2 * covariance.numpy(), 20_000, method="eigh")
        values = model_goal.value(torch.from_numpy(sample), context_distribution).numpy()
        error = values.std() / np.sqrt(len(values))
        assert abs(values.mean() - value) < 4.5 * error + 1e-9
        biased += abs(float(model_goal.value(mean, context_distribution)) - value) > 10 * error
    assert biased >= 2  # of the mean surface it is something else


@pytest.mark.parametrize("goal", [CVaR(0.25), Quantile(0.4), WorstCase(), Robust(0.1), MeanSd(0.7)], ids=str)
def test_value_is_mirrored_with_the_direction(goal: Goal) -> None:
    rows, context_distribution = uniform(7, 14, seed=5), points(8)
    up, down = ModelGoal(goal, Units(1.0, 1.0)), ModelGoal(goal, Units(-1.0, 1.0))
    torch.testing.assert_close(
        up.value(rows, context_distribution), -down.value(rows, context_distribution), rtol=1e-12, atol=1e-12
    )
    torch.testing.assert_close(
        ModelGoal(goal, UP).value(rows, context_distribution),
        2.0 * up.value(rows, context_distribution),
        rtol=1e-12,
        atol=1e-12,
    )


@pytest.mark.parametrize(
    ("distance", "functional"),
    [("wasserstein", Wasserstein), ("total-variation", TotalVariation), ("kl", KL), ("chi-square", ChiSquare),
     ("mmd", MMD)],
)  # fmt: skip
def test_balls_by_name(distance: str, functional: type) -> None:
    found = ModelGoal(Robust(0.2, distance), UP).functional(soft=True)
    assert isinstance(found, functional)
    assert found.radius == 0.2
    assert (found.support_size > 0) == Robust(0.2, distance).over_box


def test_a_known_context_leaves_nothing_to_be_robust_against() -> None:
    for goal in (Expected(), CVaR(0.1), Robust(0.1), WorstCase()):
        assert ModelGoal(goal, UP).given_context().goal == Expected()
    for goal in (ProbabilityBetterThan(1.0), TargetLoss(2.0), Typical()):
        assert ModelGoal(goal, UP).given_context().goal is goal


@pytest.mark.parametrize(
    "goal",
    [
        ProbabilityBetterThan(0.0),
        TargetLoss(0.3),
        MeanSd(1.0),
        Quantile(0.4),
        CVaR(0.25),
        WorstCase(),
        Robust(0.1),
        Robust(0.2, "kl"),
    ],
    ids=str,
)
def test_under_other_goals_a_score_of_the_mean_is_one_of_each_context(goal: Goal) -> None:
    of_mean = ModelGoal(goal, UP).acquisition(model(), MeanUCB(1.5, beta_each=0.7), points())
    of_each = ModelGoal(goal, UP).acquisition(model(), UCB(0.7), points())
    assert torch.equal(of_mean(DESIGNS), of_each(DESIGNS))
    same = ModelGoal(goal, UP).acquisition(model(), UCB(1.2, integrated=True), points())
    assert torch.equal(same(DESIGNS), ModelGoal(goal, UP).acquisition(model(), UCB(1.2), points())(DESIGNS))


def test_under_the_mean_the_score_is_of_the_mean() -> None:
    found = ModelGoal(Expected(), UP).acquisition(model(), MeanUCB(), points())
    assert isinstance(found, RobustAcquisition)
    assert found.score.integrated


def test_in_parts_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = (
        ModelGoal(ProbabilityWithin(-0.2, 0.6), UP)
        .acquisition(model(), BarycenterUCB(), points())
        .value_and_gradient(DESIGNS)
    )
    monkeypatch.setattr("edrbo.acquisition.acquisition.CHUNK", 1)
    parts = (
        ModelGoal(ProbabilityWithin(-0.2, 0.6), UP)
        .acquisition(model(), BarycenterUCB(), points())
        .value_and_gradient(DESIGNS)
    )
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("goal", [*POINTWISE, CVaR(0.25), Quantile(0.4)], ids=str)
def test_the_maximizer_finds_what_a_dense_set_finds(goal: Goal) -> None:
    space = Space(design={"a": (0, 1), "b": (0, 1)}, context={"c": (0, 1)})
    acquisition = ModelGoal(goal, DOWN).acquisition(model(n=20), BarycenterUCB(), points())
    found = maximize(acquisition.approximations(), space, seed=0, kinks=acquisition.has_kinks)
    with torch.no_grad():
        dense = acquisition.evaluate(uniform(4000, 2, seed=8))
    assert found.value >= float(dense.max()) - 1e-4 * float(dense.max() - dense.min())
    again = maximize(acquisition.approximations(), space, seed=0, kinks=acquisition.has_kinks)
    assert torch.equal(found.x, again.x)


def test_kinks_are_those_of_the_functional() -> None:
    assert not GoalAcquisition(model(), UCB(), points(), ModelGoal(TargetLoss(0.4), UP)).has_kinks
    assert GoalAcquisition(model(), UCB(), points(), ModelGoal(Comfort(0.4), UP)).has_kinks
    assert module.ModelGoal(WorstCase(), UP).posterior(model(), points(8)).has_kinks
