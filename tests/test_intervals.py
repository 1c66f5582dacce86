"""Intervals of the value under the true distribution: each part against an independent computation, and what makes it
vanish."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import optimize, stats

from edrbo import Optimizer, Space
from edrbo.contexts.uncertainty import DistributionUncertainty, known_distribution
from edrbo.optimizer.calibration import Z95, Trust, earned_trust
from edrbo.optimizer.calibration import student_quantile as student
from edrbo.optimizer.intervals import mixture_quantiles, value_intervals
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate
from edrbo.surrogate.marginal import MEMBERS
from edrbo.surrogate.warping import WarpedSurrogate

SPACE = Space(design={"x": (0, 1)}, context={"c": (0, 1)})
NONE = torch.zeros(1, 1, dtype=torch.float64)


def bumpy(x: np.ndarray, c: np.ndarray) -> np.ndarray:
    return np.sin(5.0 * x) + (1.0 + x) * np.cos(4.0 * c)


def model_of(
    n: int = 24, surrogate: Surrogate | None = None, noise_variance: float = 0.1, seed: int = 0
) -> ExpertEnsemble:
    rng = np.random.default_rng(seed)
    points = rng.random((n, 2))
    values = bumpy(points[:, 0], points[:, 1]) + noise_variance * rng.standard_normal(n)
    return (surrogate or Surrogate()).fit(torch.from_numpy(points), torch.from_numpy(values))


def distribution_of(n: int, effective: float, seed: int = 1) -> DistributionUncertainty:
    rng = np.random.default_rng(seed)
    weights = torch.from_numpy(rng.uniform(0.5, 1.5, n))
    return DistributionUncertainty(torch.from_numpy(rng.random((n, 1))), weights / weights.sum(), effective)


def _drawn(model: ExpertEnsemble, m: int, points: torch.Tensor, count: int) -> torch.Tensor:
    """Draws of expert m's joint posterior at ``points``, by SciPy, in units of y (count × points)."""
    mean, covariance = (part[m].numpy() for part in model.gp.posterior(points))
    context_distribution = stats.multivariate_normal(mean, covariance, allow_singular=True, seed=17)
    return model.scaling.value(torch.from_numpy(context_distribution.rvs(count)))


def plain_trust(model: ExpertEnsemble) -> Trust:
    return Trust(10**9, 1.0, model.gp.hyper.noise_variance)  # so many outcomes that Student is normal


@pytest.mark.parametrize("weighting", ["equal", "evidence"])
def test_the_parts_are_those_of_a_simulation(weighting: str) -> None:
    """Draw an expert, f at all contexts from the joint posterior, and a distribution; then take the variance apart."""
    model = model_of(surrogate=Surrogate(weighting=weighting))  # type: ignore[arg-type]
    context_distribution, x = distribution_of(9, effective=9.0), torch.tensor([[0.3], [0.9]], dtype=torch.float64)
    found = value_intervals(model, context_distribution, NONE, x, plain_trust(model))
    shares = np.full(4, 0.25) if model.weights is None else model.weights.numpy()
    distributions, count = context_distribution.draw(20_000, seed=3), 20_000
    for i in range(len(x)):
        points = torch.cat([x[i].expand(9, 1), context_distribution.contexts], dim=1)
        means, of_model, of_distribution = [], [], []
        for m in range(4):
            rows = _drawn(model, m, points, count)
            means.append(float(model.moments(points)[0][m] @ context_distribution.weights))
            of_model.append(float((rows @ context_distribution.weights).var()))
            of_distribution.append(float(((distributions - context_distribution.weights) * rows).sum(-1).var()))
        mean = shares @ means
        assert found.mean[i] == pytest.approx(mean, rel=1e-9)
        assert (found.model[i] / Z95) ** 2 == pytest.approx(shares @ of_model, rel=0.05)
        assert (found.experts[i] / Z95) ** 2 == pytest.approx(shares @ (np.array(means) - mean) ** 2, rel=1e-6)
        # the bootstrap has n + 1 and no estimate of the variance; the interval has n − 1 and Student's quantile
        bootstrap = (found.contexts[i] / student(8.0)) ** 2 * 8.0 / 10.0
        assert bootstrap == pytest.approx(shares @ of_distribution, rel=0.05)
        assert found.half[i] ** 2 == pytest.approx(found.model[i] ** 2 + found.contexts[i] ** 2 + found.experts[i] ** 2)


def test_a_long_log_is_summed_over_one_by_one() -> None:
    """Also where covariances are taken on fewer contexts: the mean has no bias of a compression."""
    model, context_distribution = model_of(), distribution_of(3_000, effective=3_000.0)
    found = value_intervals(
        model, context_distribution, NONE, torch.tensor([[0.4]], dtype=torch.float64), plain_trust(model)
    )
    points = torch.cat([torch.full_like(context_distribution.contexts, 0.4), context_distribution.contexts], dim=1)
    mean, _ = model.moments(points)
    assert found.mean[0] == pytest.approx(float(mean.mean(0) @ context_distribution.weights), rel=1e-12)
    few = context_distribution.thinned(512)
    exact = value_intervals(model, few, NONE, torch.tensor([[0.4]], dtype=torch.float64), plain_trust(model))
    assert found.model[0] == pytest.approx(exact.model[0], rel=1e-9)
    assert found.contexts[0] == pytest.approx(exact.contexts[0], rel=1e-3)


def test_many_designs_are_the_single_ones() -> None:
    model, context_distribution = model_of(), distribution_of(60, effective=60.0)
    x = torch.linspace(0, 1, 300, dtype=torch.float64)[:, None]
    many = value_intervals(model, context_distribution, NONE, x, plain_trust(model))
    for i in (0, 123, 299):
        one = value_intervals(model, context_distribution, NONE, x[i : i + 1], plain_trust(model))
        assert many.mean[i] == pytest.approx(one.mean[0], abs=1e-4)
        assert many.half[i] == pytest.approx(one.half[0], rel=0.02)
        assert many.outcome_lower[i] == pytest.approx(one.outcome_lower[0], abs=0.05)


def test_the_mean_of_warped_outcomes_is_that_of_the_model() -> None:
    model, context_distribution = model_of(surrogate=WarpedSurrogate()), distribution_of(12, effective=12.0)
    x = torch.tensor([[0.7]], dtype=torch.float64)
    found = value_intervals(model, context_distribution, NONE, x, plain_trust(model))
    center, spread = model.paired_with(context_distribution.contexts).integrated(x, context_distribution.weights)
    assert found.mean[0] == pytest.approx(float(center.mean()), rel=1e-9)
    assert found.model[0] == pytest.approx(Z95 * float(spread.square().mean().sqrt()), rel=1e-6)


@pytest.mark.parametrize("apart", [1.0, 10.0])  # far apart there is nothing between, where Newton's method has no slope
def test_mixture_quantiles_are_those_of_a_root_search(apart: float) -> None:
    rng = np.random.default_rng(5)
    mean, sd, weights = rng.normal(size=(3, 7)), rng.uniform(0.01, 2.0, (3, 7)), rng.dirichlet(np.ones(7))
    mean, sd = apart * mean, sd / apart
    levels = (0.025, 0.5, 0.975)
    quantiles = mixture_quantiles(levels, *map(torch.from_numpy, (mean, sd, weights)))
    for level, found in zip(levels, quantiles, strict=True):
        for i in range(3):

            def excess(y: float, i: int = i, level: float = level) -> float:
                return float(weights @ stats.norm.cdf(y, mean[i], sd[i])) - level

            assert float(found[i]) == pytest.approx(optimize.brentq(excess, -40, 40), abs=1e-7)


def test_the_next_outcome_falls_where_it_was_predicted() -> None:
    """Of 4,000 outcomes drawn from the truth, about 95 % lie in the interval; it is as wide as that needs."""
    model = model_of(n=80)
    rng = np.random.default_rng(7)
    context_distribution = DistributionUncertainty(
        torch.from_numpy(rng.random((60, 1))), torch.full((60,), 1 / 60, dtype=torch.float64), 60.0
    )
    box = torch.linspace(0, 1, 16, dtype=torch.float64)[:, None]
    found = value_intervals(
        model, context_distribution, box, torch.tensor([[0.6]], dtype=torch.float64), plain_trust(model)
    )
    y = bumpy(np.full(4_000, 0.6), rng.random(4_000)) + 0.1 * rng.standard_normal(4_000)
    inside = np.mean((y >= found.outcome_lower[0]) & (y <= found.outcome_upper[0]))
    assert 0.92 < inside < 0.985


def test_the_interval_of_an_outcome_without_uncertainty_is_that_of_the_noise() -> None:
    model = model_of(n=120, noise_variance=0.3)
    x, c = torch.tensor([[0.5]], dtype=torch.float64), torch.tensor([[0.5]], dtype=torch.float64)
    found = value_intervals(model, known_distribution(c), NONE, x, plain_trust(model))
    assert found.contexts[0] == 0.0
    assert found.outcome_upper[0] - found.outcome_lower[0] == pytest.approx(2 * Z95 * 0.3, rel=0.25)


# ------------------------------------------------------------------ through the optimizer


def reported(n: int, unit: float = 1.0, **settings: object) -> Optimizer:
    optimizer = Optimizer(SPACE, seed=0, **settings)  # type: ignore[arg-type]
    rng = np.random.default_rng(11)
    for x, c in rng.random((n, 2)):
        optimizer.tell({"x": x}, {"c": c}, unit * float(bumpy(np.array(x), np.array(c))))
    return optimizer


def test_a_known_distribution_adds_nothing_and_a_million_contexts_next_to_nothing() -> None:
    optimizer = reported(20)
    before = optimizer.recommend().interval_parts["contexts"]
    assert optimizer.recommend(context={"c": 0.4}).interval_parts["contexts"] == 0.0
    assert optimizer.recommend(forecast=np.linspace(0, 1, 50)[:, None]).interval_parts["contexts"] == 0.0
    optimizer.observe_context(np.random.default_rng(0).random((1_000_000, 1)))
    after = optimizer.recommend().interval_parts
    assert 0.0 < after["contexts"] < before / 100
    assert after["model"] > 0.0
    assert after["experts"] > 0.0


def test_forgetting_makes_the_distribution_less_known() -> None:
    steady, forgetful = reported(40), reported(40, context_half_life=3.0)
    design = {"x": 0.5}
    assert forgetful.predict(design).from_contexts[0] > 2.0 * steady.predict(design).from_contexts[0]


def test_one_outcome_has_no_scale() -> None:
    answer = reported(1).recommend()
    assert answer.interval == (-math.inf, math.inf)
    assert answer.outcome_interval == (-math.inf, math.inf)
    assert math.isfinite(answer.expected)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e9])
def test_two_outcomes_say_little_in_any_unit(unit: float) -> None:
    """At a design far from both, the interval is many times as wide as the two outcomes are apart."""
    optimizer = reported(2, unit)
    apart = float(np.ptp(optimizer.observations.y))
    found = optimizer.predict({"x": 0.0})
    assert 5.0 * apart < found.upper[0] - found.lower[0] < 1_000.0 * apart
    assert found.lower[0] / unit == pytest.approx(reported(2).predict({"x": 0.0}).lower[0], rel=1e-4)


def test_more_outcomes_narrow_the_interval() -> None:
    widths = []
    for n in (2, 4, 8, 16, 64):
        found = reported(n).predict({"x": 0.37})
        widths.append(found.upper[0] - found.lower[0])
    assert all(later < earlier for earlier, later in itertools.pairwise(widths))


# ------------------------------------------------------------------ trust


def test_trust_falls_when_errors_are_larger_than_predicted() -> None:
    """A function that is tame in one half and wild in the other, sampled densely in the tame half only."""
    model = model_of(30)
    assert 1.0 <= earned_trust(model).inflation < 1.5
    rng = np.random.default_rng(2)
    points = np.concatenate([rng.uniform(0.0, 0.5, 40), rng.uniform(0.5, 1.0, 6)])[:, None]
    values = np.where(points[:, 0] < 0.5, 0.01 * points[:, 0], 3.0 * np.sign(np.sin(60.0 * points[:, 0])))
    wild = Surrogate().fit(torch.from_numpy(points), torch.from_numpy(values))
    assert earned_trust(wild).inflation > 1.2


def test_answers_are_made_from_draws_of_the_hyper_parameters() -> None:
    """By the fit alone, which takes half of much noise for signal, an answer is too sure."""
    known = reported(24).recommend()._known
    assert known.worlds.num_experts == MEMBERS * known.posterior.model.num_experts
    by_fit = replace(known, worlds=known.posterior.model, trust=earned_trust(known.posterior.model))
    x = torch.tensor([[0.37]], dtype=torch.float64)
    assert known.values(x).mean[0] != by_fit.values(x).mean[0]
    assert known.trust.inflation == pytest.approx(earned_trust(known.worlds).inflation)


def test_students_quantiles() -> None:
    assert student(1.0) == pytest.approx(math.tan(math.pi * 0.475))  # Cauchy's, in closed form
    assert student(2.0) == pytest.approx(0.95 * math.sqrt(2.0 / 0.0975))
    assert student(math.inf) == pytest.approx(Z95)
    assert student(0.0) == math.inf
    assert Trust(1, 1.0, torch.zeros(4)).reach == math.inf
    assert Trust(2, 1.0, torch.zeros(4)).reach > 10.0
