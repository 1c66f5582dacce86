"""The ensemble: the barycenter's moments, fits and their extension, hard data."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import central_difference, random_data, random_hyper, uniform
from torch import Tensor

from edrbo.errors import InvalidValueError, UnknownNameError
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate, radius, single_gp
from edrbo.surrogate.scaling import Scaling

pytestmark = pytest.mark.torch_numeric


def data(n: int = 12, d: int = 2, seed: int = 0) -> tuple[Tensor, Tensor]:
    x, y = random_data(n, d, seed)
    return x, 30.0 + 7.0 * y  # not standardized: units must be undone everywhere


def fitted(n: int = 12, d: int = 2, seed: int = 0) -> ExpertEnsemble:
    return Surrogate().fit(*data(n, d, seed))


def test_the_joint_is_the_barycenter() -> None:
    model, points = fitted(), uniform(5, 2, seed=2)
    mean, sd = model.moments(points)
    assert mean.shape == sd.shape == (4, 5)
    joint_mean, joint = model.joint(points)
    experts = [model.expert(m).joint(points) for m in range(4)]
    center = torch.stack([mean for mean, _ in experts]).mean(0)
    spread = torch.stack([covariance.diagonal().sqrt() for _, covariance in experts]).mean(0)
    torch.testing.assert_close(joint_mean, center, rtol=1e-12, atol=1e-10)
    torch.testing.assert_close(joint.diagonal().sqrt(), spread, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(mean.mean(0), center, rtol=1e-12, atol=1e-10)
    torch.testing.assert_close(sd.mean(0), spread, rtol=1e-9, atol=1e-10)


def test_what_an_outcome_adds_is_the_noise() -> None:
    model, points = fitted(), uniform(3, 2, seed=8)
    noise_variance = float(model.scaling.scale**2 * model.gp.hyper.noise_variance.mean())
    added = model.joint(points, observed=True)[1] - model.joint(points)[1]
    torch.testing.assert_close(added, noise_variance * torch.eye(3, dtype=torch.float64), rtol=0, atol=1e-10)


def test_expert_moments_take_any_batch_shape() -> None:
    model, points = fitted(), uniform(3, 2, 4, 2, seed=3)
    mean, sd = model.expert_moments(points)
    assert mean.shape == sd.shape == (3, 2, 4, 4)
    flat_mean, flat_sd = model.moments(points.reshape(-1, 2))
    torch.testing.assert_close(mean.transpose(-1, -2).reshape(-1, 4).T, flat_mean, rtol=1e-12, atol=1e-10)
    torch.testing.assert_close(sd.transpose(-1, -2).reshape(-1, 4).T, flat_sd, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("used", [[], [5], [0, 3, 4, 9], list(range(12))])
def test_a_pullback_of_some_pairs_is_the_gradient(used: list[int]) -> None:
    """Of three designs in four contexts; by autograd through the joint posterior, which shares none of its code."""
    model, x, contexts = fitted(d=3), uniform(3, 2, seed=5), uniform(4, 1, seed=6)
    by_mean, by_sd = torch.zeros(4, 12, dtype=torch.float64), torch.zeros(4, 12, dtype=torch.float64)
    by_mean[:, used], by_sd[:, used] = uniform(4, len(used), seed=7), -uniform(4, len(used), seed=8)
    by_sd[:, used[1:2]] = by_mean[:, used[2:3]] = 0.0
    _, _, pullback = model.paired_with(contexts).moments_and_pullback(x)
    x = x.requires_grad_()
    pairs = torch.cat([x.repeat_interleave(4, dim=0), contexts.repeat(3, 1)], dim=-1)
    mean, sd = model.expert_moments(pairs)
    (expected,) = torch.autograd.grad((by_mean * mean + by_sd * sd).sum(), x)
    torch.testing.assert_close(pullback(by_mean, by_sd), expected, rtol=1e-7, atol=1e-8)


def test_expert_moments_are_twice_differentiable() -> None:
    model, point = fitted(), uniform(1, 2, seed=4)

    def squared_slope(at: Tensor) -> Tensor:
        at = at.clone().requires_grad_()
        mean, sd = model.expert_moments(at)
        (gradient,) = torch.autograd.grad((mean + sd).sum(), at, create_graph=True)
        return gradient.square().sum()

    at = point.clone().requires_grad_()
    mean, sd = model.expert_moments(at)
    (first,) = torch.autograd.grad((mean + sd).sum(), at, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), at)
    numeric = central_difference(lambda p: squared_slope(p).detach(), point)
    torch.testing.assert_close(second, numeric, rtol=1e-6, atol=1e-4 * float(numeric.abs().max()))


def test_joint_covariance_is_positive_and_consistent_under_marginalization() -> None:
    model = fitted()
    points = torch.cat([uniform(6, 2, seed=5), model.gp.x[:2]])
    _, whole = model.joint(points)
    assert float(torch.linalg.eigvalsh(whole).min()) > -1e-10 * float(whole.diagonal().max())
    rows = torch.tensor([4, 1, 6])
    torch.testing.assert_close(model.joint(points[rows])[1], whole[rows][:, rows], rtol=1e-9, atol=1e-10)


def test_a_batched_joint_is_a_loop() -> None:
    model, points = fitted(), uniform(4, 3, 2, seed=6)
    mean, covariance = model.joint(points)
    assert mean.shape == (4, 3)
    for i in range(4):
        one = model.joint(points[i])
        torch.testing.assert_close(mean[i], one[0], rtol=0, atol=1e-10)
        torch.testing.assert_close(covariance[i], one[1], rtol=0, atol=1e-10)


def test_identical_experts_are_one_gp() -> None:
    x, y = data()
    points = uniform(6, 2, seed=7)
    twice, once = (Surrogate(experts).fit(x, y) for experts in (("se", "se"), ("se",)))
    for a, b in zip(twice.joint(points), once.joint(points), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)
    assert float(radius(*twice.moments(points)).max()) < 1e-12
    assert float(radius(*once.moments(points)).max()) == 0.0
    assert float(radius(*fitted().moments(points)).min()) > 1e-3


# ---------------------------------------------------------------- fit, at, extend


def test_a_fit_takes_the_better_of_warm_and_cold() -> None:
    x, y = data(15)
    cold = Surrogate().fit(x, y)
    stuck = replace(
        cold.gp.hyper,
        lengthscale=torch.full((4, 2), 0.01, dtype=torch.float64),
        noise_variance=torch.full((4,), 1.5, dtype=torch.float64),
    )
    both = Surrogate().fit(x, y, start=stuck, cold=True)
    torch.testing.assert_close(both.gp.hyper.lengthscale, cold.gp.hyper.lengthscale, rtol=0.05, atol=0)
    warm = Surrogate().fit(x, y, start=cold.gp.hyper, cold=False)
    torch.testing.assert_close(warm.gp.hyper.lengthscale, cold.gp.hyper.lengthscale, rtol=0.05, atol=0)


@pytest.mark.parametrize("known", [False, True])
def test_extending_is_conditioning_on_all_the_data(known: bool) -> None:
    x, y = data(16, 3, seed=13)
    y[-1] += 60.0  # the standardization changes a lot
    noise_variance = uniform(16, seed=14, low=0.1, high=9.0) if known else None
    if noise_variance is not None:
        noise_variance[::4] = torch.nan
    surrogate = Surrogate()
    start = surrogate.fit(x[:13], y[:13], None if noise_variance is None else noise_variance[:13])
    extended = surrogate.extend(start, x, y, noise_variance)
    fresh = surrogate.at(x, y, noise_variance, start.gp.hyper)
    points = uniform(5, 3, seed=15)
    torch.testing.assert_close(extended.gp.noise_variance, fresh.gp.noise_variance, rtol=1e-12, atol=0)
    torch.testing.assert_close(extended.moments(points)[0], fresh.moments(points)[0], rtol=0, atol=1e-9)
    torch.testing.assert_close(
        extended.moments(points)[1].square(), fresh.moments(points)[1].square(), rtol=0, atol=1e-8
    )
    assert torch.equal(extended.gp.hyper.lengthscale, start.gp.hyper.lengthscale)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    scale=st.floats(1e-6, 1e6) | st.floats(-1e6, -1e-6),
    shift=st.floats(-1e3, 1e3),
)
def test_units_of_y_do_not_matter(seed: int, scale: float, shift: float) -> None:
    x, y = random_data(10, 2, seed)
    hyper, noise_variance = random_hyper(4, 2, seed), uniform(10, seed=seed, low=1e-3)
    points = uniform(5, 2, seed=seed + 1)
    mean, sd = Surrogate().at(x, y, noise_variance, hyper).moments(points)
    other = y * scale + shift * abs(scale)
    other_mean, other_sd = Surrogate().at(x, other, noise_variance * scale**2, hyper).moments(points)
    torch.testing.assert_close(other_mean / scale, mean + shift * abs(scale) / scale, rtol=0, atol=1e-8)
    torch.testing.assert_close(other_sd / abs(scale), sd, rtol=0, atol=1e-8)


def test_known_noise_is_in_units_of_y_and_matters() -> None:
    x, y = data()
    spread = torch.full((12,), 1e4, dtype=torch.float64)
    model = Surrogate().fit(x, y, spread)
    assert float((model.joint(x)[0] - y.mean()).abs().max()) < 1.0  # nothing but noise
    spread[:6] = 0.0
    model = Surrogate().fit(x, y, spread)
    torch.testing.assert_close(model.joint(x[:6])[0], y[:6], rtol=0, atol=1e-3)


def test_single_gp_is_the_baselines_model() -> None:
    model = single_gp().fit(*data())
    assert [kernel.name for kernel in model.gp.kernels] == ["se"]
    with pytest.raises(UnknownNameError):
        Surrogate(("se", "sinc")).fit(*data())


# ---------------------------------------------------------------- hard data


@pytest.mark.parametrize("value", [0.0, 3.0, -1e8])
@pytest.mark.parametrize("n", [1, 9])
def test_constant_outcomes(value: float, n: int) -> None:
    x = uniform(n, 2, seed=16)
    model = Surrogate().fit(x, torch.full((n,), value, dtype=torch.float64))
    mean, covariance = model.joint(uniform(4, 2, seed=17))
    torch.testing.assert_close(mean, torch.full((4,), value, dtype=torch.float64), rtol=1e-9, atol=1e-9)
    assert bool((covariance.diagonal() > 0).all())


def test_five_hundred_duplicates_known_exactly() -> None:
    x = torch.full((500, 2), 0.4, dtype=torch.float64)
    y = torch.ones(500, dtype=torch.float64)
    y[::2] = 2.0
    model = Surrogate().fit(x, y, torch.zeros(500, dtype=torch.float64))
    mean, sd = model.moments(torch.tensor([[0.4, 0.4], [1.0, 1.0]], dtype=torch.float64))
    torch.testing.assert_close(mean[:, 0], torch.full((4,), 1.5, dtype=torch.float64), rtol=0, atol=1e-3)
    assert float(sd[:, 0].max()) < 1e-3 < float(sd[:, 1].min())


def test_scaling_refuses_what_is_not_a_vector_of_numbers() -> None:
    for bad in (
        torch.zeros(0, dtype=torch.float64),
        torch.zeros(2, 1, dtype=torch.float64),
        torch.tensor([0.0, torch.nan], dtype=torch.float64),
        torch.tensor([0.0, torch.inf], dtype=torch.float64),
    ):
        with pytest.raises(InvalidValueError, match="outcomes"):
            Scaling.of(bad)


def test_outcomes_that_differ_by_rounding_have_no_scale() -> None:
    y = torch.tensor([1e6, 1e6 + 1e-9, 1e6], dtype=torch.float64)
    assert Scaling.of(y).scale == pytest.approx(1e6)
    assert Scaling.of(torch.zeros(3, dtype=torch.float64)).scale == 1.0
