"""The batched engine: GPyTorch's numbers, its own gradients, rows added to factors, hard data."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Reference, central_difference, random_data, random_hyper, uniform
from torch import Tensor

from edrbo.surrogate.exact_gp import ExactGP, safe_cholesky
from edrbo.surrogate.kernels import EXPERTS, KERNELS, Hyperparameters

pytestmark = pytest.mark.torch_numeric

ALL = tuple(KERNELS.values())


def some_gp(n: int = 12, d: int = 3, seed: int = 0) -> ExactGP:
    x, y = random_data(n, d, seed)
    return ExactGP.condition(ALL, random_hyper(4, d, seed), x, y)


def partly_known_noise(n: int) -> Tensor:
    noise_variance = uniform(n, seed=99, low=1e-3, high=0.5)
    noise_variance[::3] = torch.nan
    return noise_variance


def assert_same(ours: ExactGP, other: ExactGP, points: Tensor, atol: float) -> None:
    for a, b in zip(ours.posterior(points), other.posterior(points), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=atol)


@pytest.mark.parametrize("d", [1, 4])
@pytest.mark.parametrize("known", [False, True])
def test_posterior_is_gpytorchs(d: int, known: bool) -> None:
    x, y = random_data(15, d, seed=d)
    hyper, points = random_hyper(4, d, seed=3), uniform(6, d, seed=5)
    noise_variance = partly_known_noise(15) if known else None
    mean, covariance = ExactGP.condition(ALL, hyper, x, y, noise_variance).posterior(points)
    assert mean.shape == (4, 6)
    assert covariance.shape == (4, 6, 6)
    for m, name in enumerate(EXPERTS):
        rows = (
            None
            if noise_variance is None
            else torch.where(noise_variance.isnan(), hyper.noise_variance[m], noise_variance)
        )
        expected = Reference(name, hyper, m, x, y, rows).exact_posterior(points)
        torch.testing.assert_close(mean[m], expected[0], rtol=0, atol=1e-8)
        torch.testing.assert_close(covariance[m], expected[1], rtol=0, atol=1e-8)


def test_moments_are_the_marginals_of_the_posterior() -> None:
    gp, points = some_gp(), uniform(50, 3, seed=7)
    mean, sd = gp.moments(points)
    joint_mean, covariance = gp.posterior(points)
    torch.testing.assert_close(mean, joint_mean, rtol=0, atol=1e-12)
    torch.testing.assert_close(sd.square(), covariance.diagonal(dim1=-2, dim2=-1), rtol=0, atol=1e-12)


def test_batched_posterior_is_a_loop() -> None:
    gp, points = some_gp(), uniform(2, 5, 3, 3, seed=8)
    mean, covariance = gp.posterior(points)
    assert mean.shape == (2, 5, 4, 3)
    assert covariance.shape == (2, 5, 4, 3, 3)
    for i in range(2):
        for j in range(5):
            one = gp.posterior(points[i, j])
            torch.testing.assert_close(mean[i, j], one[0], rtol=0, atol=1e-12)
            torch.testing.assert_close(covariance[i, j], one[1], rtol=0, atol=1e-12)


def test_expert_is_one_row() -> None:
    gp, points = some_gp(), uniform(6, 3, seed=9)
    mean, sd = gp.moments(points)
    for m in range(4):
        alone = gp.expert(m)
        assert alone.kernels == (ALL[m],)
        for part, whole in zip(alone.moments(points), (mean, sd), strict=True):
            torch.testing.assert_close(part[0], whole[m], rtol=0, atol=1e-13)


@pytest.mark.parametrize("d", [1, 3])
def test_gradient_of_moments(d: int) -> None:
    gp, points = some_gp(d=d), uniform(4, d, seed=10)
    weights = uniform(2, 4, 4, seed=11, low=-1.0)

    def weighted(at: Tensor) -> Tensor:
        mean, sd = gp.moments(at)
        return (weights[0] * mean + weights[1] * sd).sum()

    at = points.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(weighted(at), at)
    torch.testing.assert_close(gradient, central_difference(weighted, points), rtol=1e-7, atol=1e-8)


def test_second_derivatives() -> None:
    gp, points = some_gp(d=2), uniform(2, 2, seed=12)

    def sd(at: Tensor) -> Tensor:
        return gp.posterior(at)[1].diagonal(dim1=-2, dim2=-1).sqrt().sum()

    def squared_slope(at: Tensor) -> Tensor:
        (gradient,) = torch.autograd.grad(sd(at), at, create_graph=True)
        return gradient.square().sum()

    at = points.clone().requires_grad_()
    (second,) = torch.autograd.grad(squared_slope(at), at)
    numeric = central_difference(lambda p: squared_slope(p.clone().requires_grad_()).detach(), points)
    torch.testing.assert_close(second, numeric, rtol=1e-6, atol=1e-7)


def test_gradient_at_an_observation_without_noise_is_finite() -> None:
    x, y = random_data(5, 2, seed=13)
    gp = ExactGP.condition(ALL, random_hyper(4, 2, seed=13), x, y, torch.zeros(5, dtype=torch.float64))
    at = x.clone().requires_grad_()
    mean, sd = gp.moments(at)
    (gradient,) = torch.autograd.grad((mean + sd).sum(), at)
    assert bool(gradient.isfinite().all())
    assert float(sd.detach().max()) < 1e-5


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("steps", [(1, 1, 1), (3,)])
def test_rows_added_to_the_factor_are_conditioning_from_scratch(known: bool, steps: tuple[int, ...]) -> None:
    x, y = random_data(14, 3, seed=14)
    hyper = random_hyper(4, 3, seed=15)
    noise_variance = partly_known_noise(14) if known else None
    full = ExactGP.condition(ALL, hyper, x, y, noise_variance)
    gp = ExactGP.condition(ALL, hyper, x[:11], y[:11], None if noise_variance is None else noise_variance[:11])
    end = 11
    for step in steps:
        rows = slice(end, end + step)
        gp = gp.extend(x[rows], y[rows], None if noise_variance is None else noise_variance[rows])
        end += step
    torch.testing.assert_close(gp.chol, full.chol, rtol=0, atol=1e-9)
    torch.testing.assert_close(gp.alpha, full.alpha, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(gp.noise_variance, full.noise_variance, rtol=0, atol=0)
    assert_same(gp, full, uniform(6, 3, seed=16), atol=1e-9)


def test_fantasies_are_a_loop_over_conditioning() -> None:
    gp, points = some_gp(), uniform(3, 3, seed=17)
    new_x, new_y = uniform(2, 2, 3, seed=18), uniform(5, 2, 2, seed=19)  # 5 fantasies of each of 2 batches of q = 2
    fantasies = gp.extend(new_x, new_y)
    assert fantasies.x.shape == (5, 2, 14, 3)
    assert fantasies.chol.shape == (5, 2, 4, 14, 14)
    mean, covariance = fantasies.posterior(points)
    assert mean.shape == (5, 2, 4, 3)
    for i in range(5):
        for j in range(2):
            x, y = torch.cat([gp.x, new_x[j]]), torch.cat([gp.y, new_y[i, j]])
            expected = ExactGP.condition(ALL, gp.hyper, x, y).posterior(points)
            torch.testing.assert_close(mean[i, j], expected[0], rtol=0, atol=1e-9)
            torch.testing.assert_close(covariance[i, j], expected[1], rtol=0, atol=1e-9)


def test_other_outcomes_on_the_same_factors() -> None:
    gp = some_gp()
    y, mean = uniform(12, seed=20), uniform(4, seed=21)
    fresh = ExactGP.condition(ALL, replace(gp.hyper, mean=mean), gp.x, y)
    assert_same(gp.with_outcomes(y, mean), fresh, uniform(4, 3, seed=22), atol=1e-12)
    assert torch.equal(gp.with_outcomes(y).hyper.mean, gp.hyper.mean)


def test_known_noise_matters() -> None:
    x, y = random_data(8, 2, seed=23)
    hyper = random_hyper(4, 2, seed=24)
    noisy = torch.full((8,), torch.nan, dtype=torch.float64)
    noisy[3] = 100.0
    exact = noisy.clone()
    exact[3] = 1e-6
    without = ExactGP.condition(ALL, hyper, torch.cat([x[:3], x[4:]]), torch.cat([y[:3], y[4:]]))
    at = x[3:4]
    near_nothing, near_exact = (
        ExactGP.condition(ALL, hyper, x, y, noise_variance).moments(at) for noise_variance in (noisy, exact)
    )
    # an observation with a huge variance says next to nothing, one with a tiny variance nearly everything
    torch.testing.assert_close(near_nothing[0], without.moments(at)[0], rtol=0, atol=0.1)
    torch.testing.assert_close(near_exact[0], y[3].expand(4, 1), rtol=0, atol=1e-3)
    assert bool((near_exact[1] < 1e-2 * near_nothing[1].clamp_min(0.2)).all())


# ---------------------------------------------------------------- hard data


def jitter_used(matrix: Tensor) -> float:
    """The largest relative shift of the diagonal between a matrix and its factor."""
    chol = safe_cholesky(matrix)
    shift = (chol @ chol.mT - matrix).diagonal(dim1=-2, dim2=-1)
    return float(shift.abs().max() / matrix.diagonal(dim1=-2, dim2=-1).mean())


def test_a_positive_definite_matrix_gets_no_jitter() -> None:
    root = uniform(2, 6, 6, seed=25)
    matrix = root @ root.mT + torch.eye(6, dtype=torch.float64)
    assert torch.equal(safe_cholesky(matrix), torch.linalg.cholesky(matrix))


def test_jitter_is_only_for_the_matrix_that_needs_it() -> None:
    good, bad = torch.eye(4, dtype=torch.float64), torch.ones(4, 4, dtype=torch.float64)
    factors = safe_cholesky(torch.stack([good, bad]))
    assert torch.equal(factors[0], good)
    assert jitter_used(bad) < 1e-10


@pytest.mark.parametrize("lowest", [-1e-9, -1e-6, -1e-3])
def test_jitter_goes_only_as_far_as_needed(lowest: float) -> None:
    matrix = torch.diag(torch.tensor([1.0, 1.0, 1.0 + lowest, lowest], dtype=torch.float64))
    assert -lowest * 4 / 3 * 0.99 < jitter_used(matrix) < -lowest * 4 / 3 * 11


def test_an_indefinite_matrix_is_refused() -> None:
    with pytest.raises(ArithmeticError, match="positive definite"):
        safe_cholesky(torch.diag(torch.tensor([1.0, -1.0], dtype=torch.float64)))


@pytest.mark.parametrize("nearly_exact", [False, True])
def test_five_hundred_duplicates(nearly_exact: bool) -> None:
    x = torch.full((500, 2), 0.3, dtype=torch.float64)
    y = torch.linspace(-1, 1, 500, dtype=torch.float64)
    hyper = replace(random_hyper(4, 2, seed=26), mean=torch.zeros(4, dtype=torch.float64))
    noise_variance = torch.full((500,), 1e-8, dtype=torch.float64) if nearly_exact else None
    gp = ExactGP.condition(ALL, hyper, x, y, noise_variance)
    mean, sd = gp.moments(x[:1])
    condition = 500 * float(hyper.outputscale.max()) / float(gp.noise_variance.min())
    assert float(mean.abs().max()) < 10 * torch.finfo(torch.float64).eps * condition  # the average of y is zero
    assert float(sd.max()) < 0.02
    far = gp.moments(torch.ones(1, 2, dtype=torch.float64))
    assert bool((far[1] > 0.1).all())


def test_a_duplicate_without_noise_can_be_added() -> None:
    """Its row of the factor is all rounding error: jitter must be measured against the prior variance, not the row."""
    x, y = random_data(6, 2, seed=27)
    zeros = torch.zeros(6, dtype=torch.float64)
    gp = ExactGP.condition(ALL, random_hyper(4, 2, seed=28), x, y, zeros)
    for row in range(3):
        gp = gp.extend(x[row : row + 1], y[row : row + 1], zeros[:1])
    mean, sd = gp.moments(x)
    torch.testing.assert_close(mean, y.expand(4, 6), rtol=0, atol=1e-3)
    assert float(sd.max()) < 1e-3


def test_one_observation() -> None:
    hyper = random_hyper(4, 2, seed=29)
    x, y = torch.tensor([[0.2, 0.8]], dtype=torch.float64), torch.tensor([1.3], dtype=torch.float64)
    mean, sd = ExactGP.condition(ALL, hyper, x, y).moments(x)
    share = hyper.outputscale / (hyper.outputscale + hyper.noise_variance)
    torch.testing.assert_close(mean[:, 0], hyper.mean + share * (1.3 - hyper.mean), rtol=1e-12, atol=0)
    torch.testing.assert_close(sd[:, 0].square(), share * hyper.noise_variance, rtol=1e-9, atol=0)


# ---------------------------------------------------------------- properties


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 20), d=st.integers(1, 4))
def test_the_order_of_the_data_does_not_matter(seed: int, n: int, d: int) -> None:
    x, y = random_data(n, d, seed)
    hyper, noise_variance = random_hyper(4, d, seed), partly_known_noise(n)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    gp = ExactGP.condition(ALL, hyper, x, y, noise_variance)
    permuted = ExactGP.condition(ALL, hyper, x[order], y[order], noise_variance[order])
    assert_same(gp, permuted, uniform(5, d, seed=seed + 1), atol=1e-8)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 15))
def test_data_never_add_uncertainty(seed: int, n: int) -> None:
    x, y = random_data(n, 2, seed)
    hyper, points = random_hyper(4, 2, seed), uniform(10, 2, seed=seed + 1)
    before = ExactGP.condition(ALL, hyper, x, y).moments(points)[1]
    after = ExactGP.condition(ALL, hyper, x, y).extend(points[:1], y[:1]).moments(points)[1]
    assert bool((after <= before + 1e-12).all())
    assert bool((before <= hyper.outputscale.sqrt()[:, None] + 1e-12).all())


def test_hyperparameters_of_one_expert() -> None:
    hyper = random_hyper(3, 2, seed=30)
    alone: Hyperparameters = hyper.expert(1)
    assert torch.equal(alone.lengthscale, hyper.lengthscale[1:2])
    assert [float(v) for v in (alone.outputscale, alone.noise_variance, alone.mean, alone.shape)] == [
        float(v[1]) for v in (hyper.outputscale, hyper.noise_variance, hyper.mean, hyper.shape)
    ]
