"""Gaussian processes whose variance few rows tell: against the textbook formula, the exact one and differences."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate, single_gp
from edrbo.surrogate.paired_gp import PairedGP
from edrbo.surrogate.sparse import INDUCING_POINTS, MIN_OBSERVATIONS, SparseGP, inducing_points
from edrbo.surrogate.warping import WarpedSurrogate

pytestmark = [pytest.mark.torch_numeric]


def uniform(*shape: int, seed: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def fitted(n: int = 120, surrogate: Surrogate | None = None) -> ExpertEnsemble:
    X = uniform(n, 3, seed=1)
    noise_variance = 0.02 * torch.randn(n, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    Y = torch.sin(4.0 * X).sum(-1) + X[:, 0] * X[:, 2] + noise_variance
    return (surrogate or Surrogate()).fit(X, 5.0 + 3.0 * Y)


def anywhere(gp: SparseGP) -> PairedGP:
    return gp.paired_with(torch.zeros(1, 0, dtype=torch.float64))


def test_the_moments_are_the_exact_mean_and_the_sparse_variance() -> None:
    gp = fitted().gp
    rows, points = inducing_points(gp, 30), uniform(7, 3, seed=5)
    mean, sd = anywhere(SparseGP.of(gp, rows)).moments(points)
    assert torch.allclose(mean, gp.moments(points)[0], rtol=1e-9, atol=1e-9)
    for m in range(4):
        one = gp.expert(m)
        inner, cross = one._gram(gp.x[rows], gp.x[rows]), one._gram(gp.x[rows], gp.x)
        outer = one._gram(points, gp.x[rows])
        both = inner + cross @ torch.diag_embed(one.noise_variance.reciprocal()) @ cross.mT
        reported = outer @ (torch.linalg.inv(inner) - torch.linalg.inv(both)) @ outer.mT
        variance = one.hyper.outputscale - reported[0].diagonal()
        assert torch.allclose(sd[m].square(), variance, rtol=1e-4, atol=1e-6)


def test_all_rows_tell_the_exact_variance() -> None:
    gp, points = fitted(60).gp, uniform(9, 3, seed=3)
    shuffled = torch.randperm(60, generator=torch.Generator().manual_seed(0))
    _, sd = anywhere(SparseGP.of(gp, shuffled)).moments(points)
    assert torch.allclose(sd, gp.moments(points)[1], rtol=1e-3, atol=1e-5)


def test_fewer_rows_know_less_but_not_much() -> None:
    gp, points = fitted(200).gp, uniform(200, 3, seed=4)
    exact = gp.moments(points)[1]
    reported = [anywhere(SparseGP.of(gp, inducing_points(gp, k))).moments(points)[1] for k in (24, 96)]
    excess = [float((sd - exact).mean()) for sd in reported]
    assert 0.0 <= excess[1] < excess[0] < 0.3
    assert excess[1] < 0.3 * float(exact.mean())


@pytest.mark.parametrize("surrogate", [Surrogate(), single_gp(), WarpedSurrogate()], ids=["four", "one", "warped"])
@pytest.mark.parametrize("share", [0.2, 1.0])
def test_gradients_are_those_of_differences(surrogate: Surrogate, share: float) -> None:
    model = fitted(surrogate=surrogate).sparse()
    paired, x = model.paired_with(uniform(5, 1, seed=8)), uniform(2, 2, seed=9)
    mean, _, pullback = paired.moments_and_pullback(x)
    mass = torch.where(uniform(*mean.shape, seed=1) < share, uniform(*mean.shape, seed=2), 0.0)
    gradient, step = pullback(mass, 0.7 * mass), 1e-5

    def total(places: Tensor) -> Tensor:
        center, spread = paired.moments(places)
        return (mass * (center + 0.7 * spread)).sum()

    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        away = torch.zeros_like(x)
        away[i, j] = step
        slope = (total(x + away) - total(x - away)) / (2.0 * step)
        assert float(gradient[i, j]) == pytest.approx(float(slope), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("surrogate", [Surrogate(), WarpedSurrogate()], ids=["plain", "warped"])
def test_the_belief_about_a_mean_over_contexts_has_the_gradient_of_differences(surrogate: Surrogate) -> None:
    paired = fitted(surrogate=surrogate).sparse().paired_with(uniform(4, 1, seed=8))
    x, weights = uniform(1, 2, seed=9), torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    mean, sd, pullback = paired.integrated_and_pullback(x, weights)
    gradient = pullback(torch.ones_like(mean), torch.ones_like(sd))
    away = torch.tensor([[1e-5, 0.0]], dtype=torch.float64)
    beyond, before = (sum(part.sum() for part in paired.integrated(place, weights)) for place in (x + away, x - away))
    assert float(gradient[0, 0]) == pytest.approx(float(beyond - before) / 2e-5, rel=1e-4)


def test_rows_are_spread_out_and_some_of_all() -> None:
    gp = fitted(150).gp
    rows = inducing_points(gp)
    assert len(rows) == INDUCING_POINTS == len(rows.unique())
    scaled = gp.x / gp.hyper.lengthscale.log().mean(0).exp()
    nearest = torch.cdist(scaled, scaled[rows]).amin(-1)
    apart = torch.cdist(scaled[rows], scaled[rows]).fill_diagonal_(torch.inf).amin()
    assert float(nearest.max()) <= float(apart) + 1e-9  # no row left out is farther than those taken are apart


def test_few_observations_need_no_stand_in() -> None:
    model = fitted(MIN_OBSERVATIONS - 1)
    assert model.sparse() is model
    larger = fitted(MIN_OBSERVATIONS)
    assert larger.sparse() is larger.sparse() is not larger


def test_an_expert_of_the_stand_in_is_the_stand_in_of_the_expert() -> None:
    gp, points = fitted().gp, uniform(6, 3, seed=2)
    rows = inducing_points(gp)
    every = anywhere(SparseGP.of(gp, rows)).moments(points)
    for m in range(4):
        one = anywhere(SparseGP.of(gp, rows).expert(m)).moments(points)
        assert all(torch.allclose(a[m], b[0]) for a, b in zip(every, one, strict=True))
