"""What is left to gain and what more runs would bring: against closed forms for two designs, and in the answer."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import norm

from edrbo import Integer, Optimizer, Space
from edrbo.contexts.distributions import ContextPoints
from edrbo.contexts.uncertainty import known_distribution
from edrbo.errors import InvalidValueError
from edrbo.optimizer.calibration import Trust
from edrbo.optimizer.stopping import LENGTHSCALE_FACTOR, Measure, Rivals, _beside, _Expert, outlook, spread_out
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate
from edrbo.surrogate.exact_gp import ExactGP

SPACE = Space(design={"x": (0, 1)}, context={"c": (0, 1)})
TWO = Space(design={"level": Integer(0, 1)}, context={"c": (0, 1)})
HALF = torch.tensor([[0.5]], dtype=torch.float64)


def model_of() -> ExpertEnsemble:
    """Level 0 was tried, level 1 hardly."""
    points = torch.tensor([[0.0, 0.2], [0.0, 0.5], [0.0, 0.9], [1.0, 0.0]], dtype=torch.float64)
    values = torch.tensor([0.3, 0.5, 0.2, 0.45], dtype=torch.float64)
    return Surrogate(experts=("se",)).fit(points, values)


def sure(model: ExpertEnsemble) -> Trust:
    return Trust(10**8, 1.0, model.gp.hyper.noise_variance)  # Student is normal


def test_gains_of_two_designs_are_the_positive_part_of_a_normal() -> None:
    model = model_of()
    levels = torch.from_numpy(TWO.encode_designs([{"level": 0}, {"level": 1}]))
    found = outlook(model, known_distribution(HALF), Rivals(TWO, levels[0], levels, seed=1), sure(model))
    hyper = replace(model.gp.hyper, lengthscale=LENGTHSCALE_FACTOR * model.gp.hyper.lengthscale)
    rougher = ExactGP.condition(model.gp.kernels, hyper, model.gp.x, model.gp.y)
    both = torch.cat([levels, HALF.expand(2, 1)], dim=1)
    mean, covariance = (part[0].numpy() for part in rougher.posterior(both))
    scale = model.scaling.scale
    center = scale * (mean[1] - mean[0])
    spread = scale * math.sqrt(covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1])
    assert np.mean(found.gains == 0.0) == pytest.approx(norm.cdf(0.0, center, spread), abs=0.05)
    for level in (0.9, 0.95):
        exact = max(0.0, norm.ppf(level, center, spread))
        assert np.quantile(found.gains, level) == pytest.approx(exact, abs=0.2 * spread)


def test_the_use_of_one_run_is_the_knowledge_gradient() -> None:
    """Of two designs, one is run: E max(a + s z, b + t z) − max(a, b) has a closed form (Frazier et al., 2009)."""
    model = model_of()
    both = torch.tensor([[0.0, 0.5], [1.0, 0.5]], dtype=torch.float64)
    mean, covariance = (part[0] for part in model.gp.posterior(both))
    points = ContextPoints(HALF, torch.ones(1).double(), HALF[:0])
    draws = [
        _Expert(model.scaling, mean, covariance, sure(model), points, Measure(), seed).after(
            torch.tensor([1]), model.gp.hyper.noise_variance[0], 256
        )
        for seed in range(60)
    ]
    noise_variance = float(model.gp.hyper.noise_variance[0])
    change = float(covariance[1, 1] - covariance[0, 1]) / math.sqrt(float(covariance[1, 1]) + noise_variance)
    apart = abs(float(mean[0] - mean[1]))
    exact = change * norm.pdf(apart / change) - apart * norm.cdf(-apart / change)
    assert np.mean(draws) == pytest.approx(model.scaling.scale * exact, rel=0.05)


def bowl(x: float, c: float) -> float:
    return -((x - 0.4 - 0.4 * c) ** 2)


def reported(designs: list[float], seed: int = 0) -> Optimizer:
    optimizer = Optimizer(SPACE, seed=seed)
    rng = np.random.default_rng(seed)
    for x in designs:
        c = float(rng.uniform())
        optimizer.tell({"x": x}, {"c": c}, bowl(x, c))
    return optimizer


def test_less_is_still_to_gain_the_more_is_known() -> None:
    few = reported(list(np.linspace(0, 0.35, 5))).recommend()
    many = reported(list(np.random.default_rng(1).random(60))).recommend()
    assert many.optimality_gap < 0.2 * few.optimality_gap
    assert many.expected_improvement_10 < few.expected_improvement_10
    truth = np.mean([bowl(0.6, c) - bowl(few.design["x"], c) for c in np.linspace(0, 1, 101)])
    assert truth <= few.optimality_gap
    assert few.probability_best_within(0.0) <= few.probability_best_within(few.optimality_gap)
    assert few.probability_best_within(few.optimality_gap) == pytest.approx(0.95)
    assert few.probability_best_within(1e9) == 1.0
    with pytest.raises(InvalidValueError):
        few.probability_best_within(-1.0)


def test_one_outcome_leaves_everything_open() -> None:
    answer = reported([0.5]).recommend()
    assert math.isinf(answer.optimality_gap)
    assert answer.probability_best_within(1e6) == 0.0


def test_minimizing_leaves_as_much_to_gain() -> None:
    up, down = reported(list(np.linspace(0, 1, 9))), Optimizer(SPACE, seed=0, direction="minimize")
    for x, c, y in zip(up.observations.x, up.observations.c, up.observations.y, strict=True):
        down.tell({"x": float(x[0])}, {"c": float(c[0])}, -float(y))
    assert up.recommend().optimality_gap == pytest.approx(down.recommend().optimality_gap, rel=1e-9)


def known_bowl() -> Optimizer:
    """f is known as well as anything, the distribution from thirty contexts."""
    optimizer, rng = Optimizer(SPACE, seed=2), np.random.default_rng(5)
    for x, c in rng.random((30, 2)):
        optimizer.tell({"x": x}, {"c": c}, -((x - c) ** 2))
    return optimizer


def test_what_is_not_known_of_the_distribution_is_still_to_gain_under_a_worst_case_too() -> None:
    """In a ball that holds next to nothing it is as much as under the mean; with the mean distribution alone, nothing.

    Under each drawn distribution the best x is its mean, at a distance whose square is the gain.
    """
    optimizer = known_bowl()
    mean, robust = (optimizer.recommend(goal=goal).optimality_gap for goal in ("expected", "robust:0.001"))
    assert mean > 0.005
    assert robust == pytest.approx(mean, rel=0.25)


def test_f_in_other_contexts_follows_from_those_drawn() -> None:
    """Against the joint posterior of one design over all contexts: means, variances and covariances."""
    rng = np.random.default_rng(2)
    inputs = torch.from_numpy(rng.random((9, 2)))
    model = Surrogate(experts=("se", "matern52")).fit(inputs, torch.sin(5.0 * inputs.sum(1)))
    contexts, designs = torch.from_numpy(rng.random((12, 1))), torch.tensor([[0.2], [0.7]], dtype=torch.float64)
    rows = spread_out(contexts, 5)
    found = _beside(model, designs, contexts, rows)
    for k, design in enumerate(designs):
        mean, covariance = model.gp.posterior(torch.cat([design.expand(12, 1), contexts], dim=1))
        of_rows = covariance[:, rows][..., rows]
        gain, left = found.gain[:, k], found.left[:, k]
        assert torch.allclose(found.mean[:, k], mean)
        assert torch.allclose(gain @ of_rows, covariance[..., rows], atol=1e-6)
        explained = gain @ of_rows @ gain.mT
        assert torch.allclose(
            explained.diagonal(dim1=-2, dim2=-1) + left.square(), covariance.diagonal(dim1=-2, dim2=-1), atol=1e-6
        )
        assert (left[:, rows] == 0.0).all()
    drawn = found.mean[0][:, rows] + 1.0  # what is drawn in those contexts stays as it was drawn
    assert torch.allclose(found.of(0).extended(drawn.reshape(1, -1))[0][:, rows], drawn, atol=1e-6)
    assert (found.nearest[rows] == torch.arange(5)).all()


def test_a_share_that_is_the_same_in_every_context_seen_is_not_the_best() -> None:
    """Every design keeps the specification in all contexts seen: none was ever better than another."""
    optimizer, rng = Optimizer(SPACE, seed=3, goal="reach:0.5"), np.random.default_rng(4)
    for x, c in rng.random((40, 2)):
        optimizer.tell({"x": x}, {"c": 0.4 * c}, 1.0 - 0.5 * c + 0.2 * math.sin(5.0 * x + 2.0 * c))
    found = optimizer.recommend()
    assert found.probability_best_within(0.0) < 0.9
    assert found.optimality_gap > 0.0


def test_what_more_runs_bring_has_no_tails_of_few_data() -> None:
    """Student's tails of three degrees of freedom are for bounds: with them ten runs promised half as much again."""
    model = model_of()
    mean, covariance = (part[0] for part in model.gp.posterior(torch.tensor([[0.0, 0.5], [1.0, 0.5]]).double()))
    points = ContextPoints(HALF, torch.ones(1).double(), HALF[:0])
    said = [
        _Expert(model.scaling, mean, covariance, trust, points, Measure(), 5).after(
            torch.tensor([1]), model.gp.hyper.noise_variance[0], 4096
        )
        for trust in (sure(model), replace(sure(model), observations=8, inflation=1.5))
    ]
    assert said[0] == pytest.approx(said[1], rel=1e-12)


def test_designs_that_differ_by_less_than_a_context_differ() -> None:
    """Of 30 contexts a share has steps of 1/30: f is known, and the best design in a drawn distribution seemed to be
    no better than others that keep the specification in the same contexts."""
    optimizer, rng = Optimizer(SPACE, seed=3, goal="reach:0"), np.random.default_rng(6)
    for x, c in rng.random((30, 2)):
        optimizer.tell({"x": x}, {"c": c}, 0.02 - (c - x) ** 2)
    found = optimizer.recommend()
    known, rivals = found._known, Rivals(SPACE, torch.tensor([found.design["x"]]).double(), HALF[:0], 1)
    measure = known.answers.measure
    assert measure.box is not None
    smooth, steps = (
        outlook(known.worlds, known.context_distribution, rivals, known.trust, one).gains
        for one in (measure, replace(measure, box=None))
    )
    assert np.mean(smooth == 0.0) < np.mean(steps == 0.0)
    assert np.quantile(smooth, 0.95) < np.quantile(steps, 0.95)  # and none is best because it suits those few
