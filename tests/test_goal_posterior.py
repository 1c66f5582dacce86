"""What is believed of a goal's value: over all contexts that were seen, and with expectations that are exact."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import norm

from edrbo import Optimizer, Space
from edrbo.acquisition.acquisition import ModelGoal
from edrbo.contexts.distributions import ContextPoints
from edrbo.contexts.uncertainty import DistributionUncertainty
from edrbo.optimizer.calibration import TAIL_MARGIN, Trust, earned_trust
from edrbo.optimizer.goal_posterior import goal_values
from edrbo.records.goals import (
    CVaR,
    Goal,
    MeanSd,
    ProbabilityBetterThan,
    ProbabilityWithin,
    Quantile,
    TargetLoss,
    WorstCase,
)
from edrbo.records.outcomes import Units
from edrbo.surrogate.ensemble import Surrogate

Array = np.ndarray

SPACE = Space(design={"x": (0, 1)}, context={"c": (0, 1)})


def known_function(direction: str = "maximize") -> tuple[Optimizer, Array]:
    """y = √c (1 + x/2), as good as known, and 1,000 contexts of which few are near the bad end."""
    rng = np.random.default_rng(2)
    optimizer = Optimizer(SPACE, direction=direction)
    sign = 1.0 if direction == "maximize" else -1.0
    for x in np.linspace(0.0, 1.0, 4):
        for c in np.linspace(0.0, 1.0, 14) ** 2:
            optimizer.tell({"x": x}, {"c": c}, sign * math.sqrt(c + 0.01) * (1 + x / 2))
    contexts = rng.beta(3.0, 2.0, 1000)
    contexts[0] = 0.0
    optimizer.observe_context(contexts[:, None])
    return optimizer, contexts


def outcomes_at(x: float, contexts: Array) -> Array:
    seen = np.concatenate([np.tile(np.linspace(0.0, 1.0, 14) ** 2, 4), contexts])
    return np.sqrt(seen + 0.01) * (1 + x / 2)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_tails_are_those_of_all_contexts(direction: str) -> None:
    """With 64 clusters for all contexts the worst of them was off by 0.38 of the range."""
    optimizer, contexts = known_function(direction)
    sign = 1.0 if direction == "maximize" else -1.0
    y = np.sort(outcomes_at(0.5, contexts))
    n = len(y)
    tail = 0.01 * n
    whole = int(tail)
    cvar = (y[:whole].sum() + (tail - whole) * y[whole]) / tail
    share = np.mean(y >= 0.4)
    for goal, truth in (
        ("worst-case:seen", sign * y[0]),
        ("cvar:0.01", sign * cvar),
        (f"reach:{sign * 0.4}", share),
        ("quantile:0.01", sign * y[math.ceil(tail) - 1]),
    ):
        found = optimizer.predict({"x": 0.5}, goal=goal)
        assert found.value[0] == pytest.approx(truth, abs=0.012), goal
        assert found.value_lower[0] - 1e-9 <= found.value[0] <= found.value_upper[0] + 1e-9, goal


def test_a_log_that_is_too_long_keeps_its_extremes() -> None:
    rng = np.random.default_rng(0)
    contexts = torch.from_numpy(rng.random((5000, 2)))
    context_distribution = DistributionUncertainty(contexts, torch.full((5000,), 1 / 5000, dtype=torch.float64), 5000.0)
    few = context_distribution.thinned_to_extremes(200)
    assert len(few.contexts) <= 200
    assert float(few.weights.sum()) == pytest.approx(1.0)
    assert torch.equal(few.contexts.amin(0), contexts.amin(0))
    assert torch.equal(few.contexts.amax(0), contexts.amax(0))
    assert (few.weights @ few.contexts - contexts.mean(0)).abs().max() < 1e-9
    assert context_distribution.thinned_to_extremes(5000) is context_distribution


def good_so_far() -> Optimizer:
    """y = −c, as good as known, and twenty contexts below 0.5."""
    optimizer = Optimizer(SPACE)
    for k, c in enumerate(np.linspace(0.01, 0.5, 20)):
        optimizer.tell({"x": (k * 7 % 20) / 19}, {"c": c}, -c)
    return optimizer


def test_of_twenty_contexts_one_more_may_be_bad() -> None:
    """Every context seen keeps the specification: the share was said to be 1.000, for certain, whatever comes next.

    The next one is new with a probability of 1/21, and then from anywhere in the box, of which nearly half is bad.
    """
    optimizer = good_so_far()
    found = optimizer.predict({"x": 0.4}, goal="reach:-0.55")
    assert 1.0 - 0.45 / 21 - 0.002 < found.value[0] < 1.0 - 0.25 / 21
    assert found.value_lower[0] < 0.96
    known = optimizer.predict({"x": 0.4}, goal="reach:-0.55", forecast=np.linspace(0.01, 0.5, 20)[:, None])
    assert known.value[0] == pytest.approx(1.0, abs=1e-6)  # a forecast is exact
    mean = optimizer.predict({"x": 0.4})
    assert mean.value[0] == pytest.approx(-0.255, abs=0.002)


def test_one_context_more_is_a_dirichlet_process() -> None:
    """Of two variables the first is known exactly, as −1 or 1, and so is that of one context more."""
    rng = np.random.default_rng(1)
    box = torch.cat([torch.zeros(4, 1), torch.linspace(0.0, 1.0, 4)[:, None]], dim=1).double()
    seen = torch.from_numpy(np.stack([[-1.0, 1.0] * 3, rng.random(3).repeat(2)], axis=1))
    weights = torch.full((6,), 1 / 6, dtype=torch.float64)
    groups = torch.tensor([0, 0, 1, 1, 2, 2])
    before = DistributionUncertainty(seen, weights, 3.0, groups=groups)
    found = before.with_one_more(box)
    assert found.effective == 4.0
    assert found.weights.tolist() == pytest.approx([0.125] * 6 + [0.03125] * 8)
    new_contexts = found.contexts[6:]
    assert sorted(map(tuple, new_contexts.tolist())) == sorted((a, float(b)) for a in (-1.0, 1.0) for b in box[:, 1])
    mean_of_exact = (found.draw(500, 3) @ found.contexts[:, 0]).abs()
    assert float(mean_of_exact.max()) < 1e-12  # whatever is drawn of the rest, the first is as it is known
    ungrouped = replace(before, groups=None).with_one_more(box)
    assert ungrouped.weights.tolist() == pytest.approx([0.125] * 6 + [0.0625] * 4)
    drawn = found.draw(20_000, 1)
    assert drawn.sum(1).numpy() == pytest.approx(1.0)
    new = drawn[:, 6:].sum(1)  # Beta(1, 3), as that of one more context beside three
    assert float(new.mean()) == pytest.approx(0.25, abs=0.005)
    assert float(new.var()) == pytest.approx(3.0 / (16.0 * 5.0), rel=0.05)
    assert torch.equal(drawn[:, 0], drawn[:, 1])
    assert before.with_one_more(box[:0]) is before
    exact = replace(before, effective=math.inf)
    assert exact.with_one_more(box) is exact


def uncertain_model(n: int = 9) -> tuple[torch.Tensor, ...]:
    rng = np.random.default_rng(4)
    inputs = torch.from_numpy(rng.random((n, 2)))
    y = torch.from_numpy(np.sin(5 * inputs[:, 0].numpy()) + inputs[:, 1].numpy() ** 2 + 0.1 * rng.standard_normal(n))
    return inputs, y, torch.from_numpy(rng.random((20, 1)))


EXACT = {
    ProbabilityBetterThan(0.6): lambda mean, sd: norm.sf((0.6 - mean) / sd),
    ProbabilityWithin(0.2, 0.7): lambda mean, sd: norm.cdf((0.7 - mean) / sd) - norm.cdf((0.2 - mean) / sd),
    TargetLoss(0.5): lambda mean, sd: (mean - 0.5) ** 2 + sd**2,
}


@pytest.mark.parametrize("goal", list(EXACT), ids=str)
def test_expectations_of_what_takes_outcomes_one_by_one_are_exact(goal: Goal) -> None:
    """Against the mixture of normals by SciPy; the mean over 32 drawn distributions was off by up to 0.04."""
    inputs, y, contexts = uncertain_model()
    model = Surrogate().fit(inputs, y)
    weights = torch.full((20,), 0.05, dtype=torch.float64)
    points = ContextPoints(contexts, weights, contexts[:0])
    x = torch.tensor([[0.1], [0.45], [0.9]], dtype=torch.float64)
    found = goal_values(ModelGoal(goal, Units()), model, points, 20.0, x, earned_trust(model), 3).expected
    for k, design in enumerate(x):
        mean, sd = model.moments(torch.cat([design.expand(20, 1), contexts], dim=1))
        assert found[k] == pytest.approx(float(np.mean(EXACT[goal](mean.numpy(), sd.numpy()))), abs=1e-9)


@pytest.mark.parametrize("goal", [CVaR(0.2), Quantile(0.1), MeanSd(1.0), WorstCase("seen")], ids=str)
def test_expectations_of_tails_are_those_under_the_mean_distribution(goal: Goal) -> None:
    """Against plain draws of f in all contexts; distributions that are drawn have fewer contexts and so worse tails."""
    inputs, y, contexts = uncertain_model()
    model = Surrogate(experts=("matern52",)).fit(inputs, y)
    weights = torch.full((20,), 0.05, dtype=torch.float64)
    points = ContextPoints(contexts, weights, contexts[:0])
    design = torch.tensor([[0.3]], dtype=torch.float64)
    found = goal_values(ModelGoal(goal, Units()), model, points, 20.0, design, earned_trust(model), 3).expected
    mean, covariance = model.gp.posterior(torch.cat([design.expand(20, 1), contexts], dim=1))
    rng = np.random.default_rng(8)
    drawn = rng.multivariate_normal(mean[0].numpy(), covariance[0].numpy(), 200_000, method="svd")
    values = goal.value(model.scaling.value(torch.from_numpy(drawn)).numpy(), weights.numpy(), "maximize")
    assert found[0] == pytest.approx(values.mean(), abs=4 * values.std() / np.sqrt(512))


def test_draws_in_many_contexts_have_the_covariances_of_the_model() -> None:
    """300 contexts of which 128 are drawn jointly: the mean over all has the variance that the model says."""
    inputs, y, _ = uncertain_model(14)
    model = Surrogate(experts=("matern32",)).fit(inputs, y)
    contexts = torch.from_numpy(np.random.default_rng(5).random((300, 1)))
    weights = torch.full((300,), 1 / 300, dtype=torch.float64)
    points = ContextPoints(contexts, weights, contexts[:0])
    design = torch.tensor([[0.3]], dtype=torch.float64)
    goal = ModelGoal(MeanSd(0.0), Units())
    # no wider than the model says
    certain = Trust(10**9, 1.0 / TAIL_MARGIN, model.gp.noise_variance.mean(-1))
    found = goal_values(goal, model, points, math.inf, design, certain, 3)
    mean, sd = model.paired_with(contexts).integrated(design, weights)
    assert found.expected[0] == pytest.approx(float(mean), abs=1e-9)  # of pairs of opposite sign it is exact
    assert found.draws.std() == pytest.approx(float(sd), rel=0.1)


@pytest.mark.filterwarnings("ignore::edrbo.errors.NarrowContextsWarning")
def test_the_worst_case_over_all_contexts_is_over_their_bounds() -> None:
    """Where a sliver of the bounds was seen it was silently over that sliver: −0.6 where −5 is true."""
    space = Space(design={"x": (0, 1)}, context={"c": (0, 100)})
    optimizer = Optimizer(space)
    for k, c in enumerate(np.random.default_rng(3).uniform(40, 46, 24)):
        x = (k % 6) / 5
        optimizer.tell({"x": x}, {"c": c}, x - 0.01 * (c - 43) * (1 + x))
    anywhere = [optimizer.predict({"x": 0.5}, context={"c": c}).expected[0] for c in np.linspace(0.0, 100.0, 21)]
    # of a model that is a little rougher in the contexts than that of the mean
    assert optimizer.predict({"x": 0.5}, goal="worst-case").value[0] <= min(anywhere) + 0.03
    assert min(anywhere) < 0.3
    seen = optimizer.predict({"x": 0.5}, goal="worst-case:seen")
    assert seen.value[0] == pytest.approx(0.5 - 0.01 * 3 * 1.5, abs=0.03)
