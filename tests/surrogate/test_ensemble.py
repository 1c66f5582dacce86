"""The ensemble as a BoTorch model: the barycentre's moments, stock acquisition functions, fantasies, hard data."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from botorch.acquisition import (
    AcquisitionFunction,
    LogExpectedImprovement,
    UpperConfidenceBound,
    qKnowledgeGradient,
    qUpperConfidenceBound,
)
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models.model import Model
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import central_difference, random_data, random_hyper, uniform
from torch import Tensor

from edrbo.errors import InvalidValueError, UnknownNameError
from edrbo.surrogate.ensemble import Ensemble, Surrogate, radius, single_gp
from edrbo.surrogate.scaling import Scaling

pytestmark = pytest.mark.torch_numeric

UNIT_SQUARE = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)


def data(n: int = 12, d: int = 2, seed: int = 0) -> tuple[Tensor, Tensor]:
    x, y = random_data(n, d, seed)
    return x, 30.0 + 7.0 * y  # not standardized: units must be undone everywhere


def fitted(n: int = 12, d: int = 2, seed: int = 0) -> Ensemble:
    return Surrogate().fit(*data(n, d, seed))


def sampler(count: int) -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(torch.Size([count]), seed=1)


def test_the_posterior_is_the_barycentre() -> None:
    model, points = fitted(), uniform(5, 2, seed=2)
    mean, sd = model.moments(points)
    assert mean.shape == sd.shape == (4, 5)
    posterior = model.posterior(points)
    center = torch.stack([model.expert(m).posterior(points).mean.squeeze(-1) for m in range(4)]).mean(0)
    spread = torch.stack([model.expert(m).posterior(points).variance.squeeze(-1).sqrt() for m in range(4)]).mean(0)
    torch.testing.assert_close(posterior.mean.squeeze(-1), center, rtol=1e-12, atol=1e-10)
    torch.testing.assert_close(posterior.variance.squeeze(-1).sqrt(), spread, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(mean.mean(0), center, rtol=1e-12, atol=1e-10)
    torch.testing.assert_close(sd.mean(0), spread, rtol=1e-9, atol=1e-10)


def test_expert_moments_take_any_batch_shape() -> None:
    model, points = fitted(), uniform(3, 2, 4, 2, seed=3)
    mean, sd = model.expert_moments(points)
    assert mean.shape == sd.shape == (3, 2, 4, 4)
    flat_mean, flat_sd = model.moments(points.reshape(-1, 2))
    torch.testing.assert_close(mean.transpose(-1, -2).reshape(-1, 4).T, flat_mean, rtol=1e-12, atol=1e-10)
    torch.testing.assert_close(sd.transpose(-1, -2).reshape(-1, 4).T, flat_sd, rtol=1e-8, atol=1e-10)


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
    whole = model.posterior(points).distribution.covariance_matrix
    assert float(torch.linalg.eigvalsh(whole).min()) > -1e-10 * float(whole.diagonal().max())
    part = model.posterior(points[[4, 1, 6]]).distribution.covariance_matrix
    rows = torch.tensor([4, 1, 6])
    torch.testing.assert_close(part, whole[rows][:, rows], rtol=1e-9, atol=1e-10)


def test_batched_posterior_is_a_loop() -> None:
    model, points = fitted(), uniform(4, 3, 2, seed=6)
    posterior = model.posterior(points)
    assert posterior.mean.shape == (4, 3, 1)
    for i in range(4):
        one = model.posterior(points[i])
        torch.testing.assert_close(posterior.mean[i], one.mean, rtol=0, atol=1e-10)
        torch.testing.assert_close(
            posterior.distribution.covariance_matrix[i], one.distribution.covariance_matrix, rtol=0, atol=1e-10
        )


def test_identical_experts_are_one_gp() -> None:
    x, y = data()
    points = uniform(6, 2, seed=7)
    twice, once = (Surrogate(experts).fit(x, y) for experts in (("se", "se"), ("se",)))
    torch.testing.assert_close(twice.posterior(points).mean, once.posterior(points).mean, rtol=0, atol=1e-9)
    torch.testing.assert_close(
        twice.posterior(points).distribution.covariance_matrix,
        once.posterior(points).distribution.covariance_matrix,
        rtol=0,
        atol=1e-9,
    )
    assert float(radius(*twice.moments(points)).max()) < 1e-12
    assert float(radius(*once.moments(points)).max()) == 0.0
    assert float(radius(*fitted().moments(points)).min()) > 1e-3


def test_observation_noise_and_transforms() -> None:
    model, points = fitted(), uniform(3, 2, seed=8)
    plain = model.posterior(points).distribution.covariance_matrix
    learnt = model.posterior(points, observation_noise=True).distribution.covariance_matrix
    noise = model.likelihood.noise.item()
    assert noise == pytest.approx(float(model.scaling.scale**2 * model.gp.hyper.noise.mean()), rel=1e-12)
    torch.testing.assert_close(learnt - plain, noise * torch.eye(3, dtype=torch.float64), rtol=0, atol=1e-10)
    given_noise = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)
    known = model.posterior(points, observation_noise=given_noise).distribution.covariance_matrix
    torch.testing.assert_close(known - plain, torch.diag(given_noise.squeeze(-1)), rtol=0, atol=1e-10)
    negative = ScalarizedPosteriorTransform(weights=torch.tensor([-1.0], dtype=torch.float64))
    transformed = model.posterior(points, posterior_transform=negative)
    torch.testing.assert_close(transformed.mean, -model.posterior(points).mean)


# ---------------------------------------------------------------- BoTorch


def test_it_is_a_botorch_model() -> None:
    model = fitted()
    assert isinstance(model, Model)
    assert (model.num_outputs, model.batch_shape, model.num_experts) == (1, torch.Size([]), 4)
    assert torch.equal(model.train_inputs[0], model.gp.x)


@pytest.mark.parametrize("name", ["log-ei", "ucb", "q-log-nei", "q-ucb", "q-kg"])
def test_stock_acquisition_functions_are_optimized_on_it(name: str) -> None:
    model, (x, y) = fitted(), data()
    make: dict[str, tuple[AcquisitionFunction, int]] = {
        "log-ei": (LogExpectedImprovement(model, y.max()), 1),
        "ucb": (UpperConfidenceBound(model, 2.0), 1),
        "q-log-nei": (qLogNoisyExpectedImprovement(model, x, sampler=sampler(8)), 2),
        "q-ucb": (qUpperConfidenceBound(model, 2.0, sampler=sampler(8)), 2),
        "q-kg": (qKnowledgeGradient(model, num_fantasies=4, sampler=sampler(4)), 1),
    }
    acquisition, q = make[name]
    torch.manual_seed(0)
    options = {"maxiter": 5, "seed": 0}
    found, value = optimize_acqf(acquisition, UNIT_SQUARE, q=q, num_restarts=2, raw_samples=16, options=options)
    assert found.shape == (q, 2)
    assert bool(((found >= 0) & (found <= 1)).all())
    with torch.no_grad():
        random = acquisition.forward(uniform(64, 5 if name == "q-kg" else q, 2, seed=9))
    assert float(value) > float(random.median())


def test_botorchs_ucb_has_the_square_root_of_beta() -> None:
    model, points = fitted(), uniform(5, 1, 2, seed=10)
    mean, sd = model.moments(points.squeeze(1))
    with torch.no_grad():
        value = UpperConfidenceBound(model, 1.5**2)(points)
    torch.testing.assert_close(value, mean.mean(0) + 1.5 * sd.mean(0), rtol=1e-9, atol=1e-9)


def test_fantasies_condition_on_their_samples() -> None:
    model, new, points = fitted(), uniform(3, 2, 2, seed=11), uniform(5, 2, seed=12)
    fantasies = model.fantasize(new, sampler(4))  # 4 samples at each of 3 batches of q = 2
    assert fantasies.batch_shape == torch.Size([4, 3])
    posterior = fantasies.posterior(points)
    assert posterior.mean.shape == (4, 3, 5, 1)
    values = model.scaling.shift + model.scaling.scale * fantasies.gp.y[..., -2:]
    for i in range(4):
        for j in range(3):
            one = model.condition_on_observations(new[j], values[i, j].unsqueeze(-1)).posterior(points)
            torch.testing.assert_close(posterior.mean[i, j], one.mean, rtol=0, atol=1e-9)
            torch.testing.assert_close(posterior.variance[i, j], one.variance, rtol=0, atol=1e-9)


def test_conditioning_pulls_the_mean_and_respects_the_noise() -> None:
    model = fitted()
    point = torch.tensor([[0.5, 0.5]], dtype=torch.float64)
    target = model.posterior(point).mean + 20.0
    moved = [
        float((model.condition_on_observations(point, target, noise).posterior(point).mean - target).abs())
        for noise in (torch.full((1, 1), variance, dtype=torch.float64) for variance in (1e-9, 1.0, 1e6))
    ]
    assert moved[0] < 1e-2
    assert moved[0] < moved[1] < moved[2]
    assert moved[2] > 19.0


# ---------------------------------------------------------------- fit, at, extend


def test_a_fit_takes_the_better_of_warm_and_cold() -> None:
    x, y = data(15)
    cold = Surrogate().fit(x, y)
    stuck = replace(
        cold.gp.hyper,
        lengthscale=torch.full((4, 2), 0.01, dtype=torch.float64),
        noise=torch.full((4,), 1.5, dtype=torch.float64),
    )
    both = Surrogate().fit(x, y, start=stuck, cold=True)
    torch.testing.assert_close(both.gp.hyper.lengthscale, cold.gp.hyper.lengthscale, rtol=0.05, atol=0)
    warm = Surrogate().fit(x, y, start=cold.gp.hyper, cold=False)
    torch.testing.assert_close(warm.gp.hyper.lengthscale, cold.gp.hyper.lengthscale, rtol=0.05, atol=0)


@pytest.mark.parametrize("known", [False, True])
def test_extending_is_conditioning_on_all_the_data(known: bool) -> None:
    x, y = data(16, 3, seed=13)
    y[-1] += 60.0  # the standardization changes a lot
    noise = uniform(16, seed=14, low=0.1, high=9.0) if known else None
    if noise is not None:
        noise[::4] = torch.nan
    surrogate = Surrogate()
    start = surrogate.fit(x[:13], y[:13], None if noise is None else noise[:13])
    extended = surrogate.extend(start, x, y, noise)
    fresh = surrogate.at(x, y, noise, start.gp.hyper)
    points = uniform(5, 3, seed=15)
    torch.testing.assert_close(extended.gp.noise, fresh.gp.noise, rtol=1e-12, atol=0)
    torch.testing.assert_close(extended.posterior(points).mean, fresh.posterior(points).mean, rtol=0, atol=1e-9)
    torch.testing.assert_close(extended.posterior(points).variance, fresh.posterior(points).variance, rtol=0, atol=1e-8)
    assert torch.equal(extended.gp.hyper.lengthscale, start.gp.hyper.lengthscale)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    scale=st.floats(1e-6, 1e6) | st.floats(-1e6, -1e-6),
    shift=st.floats(-1e3, 1e3),
)
def test_units_of_y_do_not_matter(seed: int, scale: float, shift: float) -> None:
    x, y = random_data(10, 2, seed)
    hyper, noise = random_hyper(4, 2, seed), uniform(10, seed=seed, low=1e-3)
    points = uniform(5, 2, seed=seed + 1)
    mean, sd = Surrogate().at(x, y, noise, hyper).moments(points)
    other = y * scale + shift * abs(scale)
    other_mean, other_sd = Surrogate().at(x, other, noise * scale**2, hyper).moments(points)
    torch.testing.assert_close(other_mean / scale, mean + shift * abs(scale) / scale, rtol=0, atol=1e-8)
    torch.testing.assert_close(other_sd / abs(scale), sd, rtol=0, atol=1e-8)


def test_known_noise_is_in_units_of_y_and_matters() -> None:
    x, y = data()
    spread = torch.full((12,), 1e4, dtype=torch.float64)
    model = Surrogate().fit(x, y, spread)
    assert float((model.posterior(x).mean.squeeze(-1) - y.mean()).abs().max()) < 1.0  # nothing but noise
    spread[:6] = 0.0
    model = Surrogate().fit(x, y, spread)
    torch.testing.assert_close(model.posterior(x[:6]).mean.squeeze(-1), y[:6], rtol=0, atol=1e-3)


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
    posterior = model.posterior(uniform(4, 2, seed=17))
    torch.testing.assert_close(posterior.mean, torch.full((4, 1), value, dtype=torch.float64), rtol=1e-9, atol=1e-9)
    assert bool((posterior.variance > 0).all())


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
