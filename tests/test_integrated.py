"""Integrated scores, weighted experts, and gradients written out: each against something independent."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from edrbo import Optimizer, Space
from edrbo.acquisition.acquisition import RobustAcquisition
from edrbo.acquisition.risk import (
    KL,
    MMD,
    CVaRFunctional,
    Expectation,
    Functional,
    Minimum,
    MMDMidpoint,
    TotalVariation,
    VaR,
    Wasserstein,
    WassersteinLipschitz,
)
from edrbo.acquisition.scores import UCB, BarycenterUCB, Score
from edrbo.contexts.distributions import ContextPoints
from edrbo.errors import InvalidValueError
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate, barycenter, radius, single_gp

pytestmark = pytest.mark.torch_numeric

LINEAR: list[Functional] = [Expectation(), Minimum(), TotalVariation(0.4), CVaRFunctional(0.3), Wasserstein(0.1)]


def data(n: int = 24, d_x: int = 2, d_c: int = 1, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, d_x + d_c, generator=generator, dtype=torch.float64)
    return X, (5.0 * X).sin().sum(-1) + X[:, 0] * X[:, -1]


def context_distribution(d_c: int = 1, seed: int = 1) -> ContextPoints:
    generator = torch.Generator().manual_seed(seed)
    atoms, support = (torch.rand(count, d_c, generator=generator, dtype=torch.float64) for count in (7, 5))
    weights = torch.rand(7, generator=generator, dtype=torch.float64)
    return ContextPoints(atoms, weights / weights.sum(), support)


def model(surrogate: Surrogate | None = None, d_c: int = 1) -> ExpertEnsemble:
    X, Y = data(d_c=d_c)
    return (surrogate or Surrogate()).fit(X, Y)


def designs(count: int = 6, d_x: int = 2) -> Tensor:
    return torch.rand(count, d_x, generator=torch.Generator().manual_seed(9), dtype=torch.float64)


@pytest.mark.parametrize("d_c", [1, 2])
def test_the_integrated_belief_is_that_of_the_joint_posterior(d_c: int) -> None:
    ensemble, points, x = model(d_c=d_c), context_distribution(d_c), designs()
    mean, sd = ensemble.paired_with(points.atoms).integrated(x, points.weights)
    for i, row in enumerate(x):
        joint = torch.cat([row.expand(len(points.atoms), -1), points.atoms], dim=-1)
        means, covariance = ensemble.gp.posterior(joint)
        scaling = ensemble.scaling
        assert torch.allclose(mean[:, i], scaling.shift + scaling.scale * (means @ points.weights), atol=1e-10)
        variance = torch.einsum("i,mij,j->m", points.weights, covariance, points.weights)
        assert torch.allclose(sd[:, i], scaling.scale * variance.sqrt(), atol=1e-9)


def test_weights_of_each_design_its_own_and_one_atom() -> None:
    ensemble, points, x = model(), context_distribution(), designs()
    paired = ensemble.paired_with(points.atoms)
    own = torch.rand(len(x), 7, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    together = paired.integrated(x, own)
    for i in range(len(x)):
        alone = paired.integrated(x[i : i + 1], own[i])
        for all_at_once, one in zip(together, alone, strict=True):
            assert torch.allclose(all_at_once[:, i], one[:, 0], atol=1e-12)
    at_one = torch.zeros(7, dtype=torch.float64)
    at_one[3] = 1.0
    joint = torch.cat([x, points.atoms[3].expand(len(x), -1)], dim=-1)
    for integrated, plain in zip(paired.integrated(x, at_one), ensemble.moments(joint), strict=True):
        assert torch.allclose(integrated, plain, atol=1e-10)


def test_the_expectation_is_known_better_than_the_average_point() -> None:
    ensemble, points, x = model(), context_distribution(), designs()
    paired = ensemble.paired_with(points.atoms)
    _, of_mean = paired.integrated(x, points.weights)
    _, sd = paired.moments(x)
    mean_of = (sd.reshape(4, len(x), 7) * points.weights).sum(-1)
    assert bool((of_mean <= mean_of + 1e-12).all())


@pytest.mark.parametrize("functional", LINEAR, ids=lambda f: type(f).__name__)
@pytest.mark.parametrize("score", [UCB(2.0, integrated=True), BarycenterUCB(integrated=True)])
def test_integrated_gradients_agree_with_finite_differences(functional: Functional, score: Score) -> None:
    acquisition = RobustAcquisition(model(), score, context_distribution(), functional)
    x = designs()
    value, gradient = acquisition.value_and_gradient(x)
    assert torch.allclose(value, acquisition.evaluate(x), atol=1e-12)
    step = 1e-6
    for k in range(x.shape[1]):
        shift = step * torch.eye(x.shape[1], dtype=torch.float64)[k]
        slope = (acquisition.evaluate(x + shift) - acquisition.evaluate(x - shift)) / (2.0 * step)
        assert torch.allclose(gradient[:, k], slope, atol=1e-6, rtol=1e-5)


def test_functionals_whose_weights_move_with_the_design_are_refused() -> None:
    for functional in (MMD(0.2), KL(0.1), VaR(0.5), MMDMidpoint(0.2), WassersteinLipschitz(0.1)):
        with pytest.raises(InvalidValueError, match="integrated"):
            RobustAcquisition(model(), BarycenterUCB(integrated=True), context_distribution(), functional)


@pytest.mark.parametrize(
    "functional",
    [*LINEAR, MMD(0.2), MMDMidpoint(0.2), VaR(0.4), WassersteinLipschitz(0.1)],
    ids=lambda f: type(f).__name__,
)
@pytest.mark.parametrize("surrogate", [Surrogate(), Surrogate(weighting="evidence"), single_gp()], ids=["4", "w", "1"])
def test_the_written_out_gradient_is_that_of_autograd(functional: Functional, surrogate: Surrogate) -> None:
    for score in (UCB(), BarycenterUCB(), BarycenterUCB(0.5, radius_weight=0.0)):
        acquisition = RobustAcquisition(model(surrogate), score, context_distribution(), functional)
        x = designs()
        value, gradient = acquisition.value_and_gradient(x)
        leaf = x.clone().requires_grad_()
        expected = acquisition.evaluate(leaf)
        (by_autograd,) = torch.autograd.grad(expected.sum(), leaf)
        assert torch.allclose(value, expected.detach(), atol=1e-12)
        assert torch.allclose(gradient, by_autograd, atol=1e-9)


def test_a_score_of_ones_own_needs_no_gradient_of_its_own() -> None:
    class Optimistic(Score):
        def __call__(self, mean: Tensor, sd: Tensor, weights: Tensor | None = None) -> Tensor:
            return (mean + sd).amax(-2)

    acquisition = RobustAcquisition(model(), Optimistic(), context_distribution(), Expectation())
    x = designs()
    leaf = x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(acquisition.evaluate(leaf).sum(), leaf)
    assert torch.allclose(acquisition.value_and_gradient(x)[1], expected, atol=1e-10)


def test_evidence_is_the_marginal_likelihood() -> None:
    ensemble = model(Surrogate(weighting="evidence"))
    gp = ensemble.gp
    covariance = gp.chol @ gp.chol.mT
    for m in range(4):
        distribution_of_y = torch.distributions.MultivariateNormal(gp.hyper.mean[m].expand(len(gp.y)), covariance[m])
        assert float(gp.log_evidence()[m]) == pytest.approx(float(distribution_of_y.log_prob(gp.y)), abs=1e-6)
    weights = ensemble.weights
    assert weights is not None
    assert float(weights.sum()) == pytest.approx(1.0)
    assert int(weights.argmax()) == int(gp.log_evidence().argmax())


def test_equal_weights_are_no_weights_and_a_silent_expert_is_not_heard() -> None:
    mean, sd = torch.rand(2, 4, 9, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    equal = torch.full((4,), 0.25, dtype=torch.float64)
    for a, b in zip(barycenter(mean, sd, equal), barycenter(mean, sd), strict=True):
        assert torch.allclose(a, b)
    assert torch.allclose(radius(mean, sd, equal), radius(mean, sd))
    silent = torch.tensor([0.5, 0.5, 0.0, 0.0], dtype=torch.float64)
    assert torch.allclose(radius(mean, sd, silent), radius(mean[:2], sd[:2]))


def test_the_stand_in_for_mmd_lies_between_it_and_the_expectation() -> None:
    points = context_distribution()
    rows = torch.rand(40, 12, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    for size in (0.0, 0.1, 0.4, 2.0):
        exact, rough, mean = MMD(size)(rows, points), MMD(size).rough()(rows, points), Expectation()(rows, points)
        assert bool((exact <= rough + 1e-9).all())
        assert bool((rough <= mean + 1e-12).all())


def test_the_largest_slope_has_the_gradient_of_finite_differences() -> None:
    surrogate = model(d_c=2)
    acquisition = RobustAcquisition(surrogate, UCB(), context_distribution(2), WassersteinLipschitz(0.5))
    x = designs()
    slope, gradient = acquisition._largest_slope(x)
    step = 1e-5
    for k in range(2):
        shift = step * torch.eye(2, dtype=torch.float64)[k]
        difference = (acquisition._steepest(x + shift)[0] - acquisition._steepest(x - shift)[0]) / (2.0 * step)
        assert torch.allclose(gradient[:, k], difference, atol=1e-5, rtol=1e-5)
    # and the slope itself is that of autograd at the support
    support = context_distribution(2).support
    for i, row in enumerate(x):
        joint = torch.cat([row.expand(len(support), -1), support], dim=-1).requires_grad_()
        (by_autograd,) = torch.autograd.grad(acquisition.score(*surrogate.moments(joint)).sum(), joint)
        assert float(slope[i]) == pytest.approx(float(by_autograd[:, 2:].norm(dim=-1).max()), rel=1e-9)


@pytest.mark.parametrize("goal", ["expected", "cvar:0.2", "worst-case", "robust:0.1", "robust:0.1:total-variation"])
def test_an_integrated_method_asks_under_every_goal_that_has_a_worst_distribution(goal: str) -> None:
    """Of a Wasserstein ball it could not: the rough approximation has no worst distribution, and took the score all the
    same."""
    optimizer = Optimizer(Space(design={"x": (0, 1)}, context={"c": (0, 1)}), "edrbo-integrated", goal=goal, seed=0)
    for x, c in ((0.1, 0.2), (0.4, 0.9), (0.7, 0.4), (0.9, 0.6), (0.3, 0.5), (0.5, 0.1)):
        optimizer.tell({"x": x}, {"c": c}, -((x - 0.3 * c - 0.4) ** 2))
    assert 0.0 <= optimizer.ask()["x"] <= 1.0
