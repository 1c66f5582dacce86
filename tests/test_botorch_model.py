"""The ensemble as a BoTorch model: its posterior, stock acquisition functions, fantasies."""

from __future__ import annotations

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
from torch import Tensor

import edrbo
from edrbo.integrations.botorch import Ensemble
from edrbo.surrogate.ensemble import Surrogate
from edrbo.surrogate.warping import WarpedSurrogate

UNIT_SQUARE = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)


def uniform(*size: int, seed: int) -> Tensor:
    return torch.rand(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def data(n: int = 12, d: int = 2, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Outcomes (n × 1) that are not standardized: units must be undone everywhere."""
    x = uniform(n, d, seed=seed)
    return x, 30.0 + 7.0 * (torch.sin(6.0 * x).sum(-1, keepdim=True) + x[:, :1] * x[:, -1:])


def fitted() -> Ensemble:
    return Ensemble.fit(*data())


def sampler(count: int) -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(torch.Size([count]), seed=1)


@pytest.mark.parametrize(
    "surrogate", [Surrogate(), Surrogate(weighting="evidence"), WarpedSurrogate()], ids=["4", "weighted", "warped"]
)
def test_the_posterior_has_the_marginals_of_the_barycenter(surrogate: Surrogate) -> None:
    model, points = Ensemble.fit(*data(25), surrogate=surrogate), uniform(5, 2, seed=2)
    posterior = model.posterior(points)
    center, spread = model.experts.barycenter(*model.experts.moments(points))
    torch.testing.assert_close(posterior.mean.squeeze(-1), center, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(posterior.variance.squeeze(-1).sqrt(), spread, rtol=1e-6, atol=1e-7)


def test_known_noise_reaches_the_fit() -> None:
    x, y = data()
    model = Ensemble.fit(x, y, torch.full_like(y, 1e4))
    assert float((model.posterior(x).mean - y.mean()).abs().max()) < 1.0  # nothing but noise


def test_a_batched_posterior() -> None:
    posterior = fitted().posterior(uniform(4, 3, 2, seed=6))
    assert posterior.mean.shape == (4, 3, 1)
    assert posterior.distribution.covariance_matrix.shape == (4, 3, 3)


def test_observation_noise_and_transforms() -> None:
    model, points = fitted(), uniform(3, 2, seed=8)
    plain = model.posterior(points).distribution.covariance_matrix
    learnt = model.posterior(points, observation_noise=True).distribution.covariance_matrix
    noise_variance = model.likelihood.noise.item()
    assert noise_variance == pytest.approx(
        float(model.experts.scaling.scale**2 * model.experts.gp.hyper.noise_variance.mean()), rel=1e-12
    )
    torch.testing.assert_close(learnt - plain, noise_variance * torch.eye(3, dtype=torch.float64), rtol=0, atol=1e-10)
    given_noise = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)
    known = model.posterior(points, observation_noise=given_noise).distribution.covariance_matrix
    torch.testing.assert_close(known - plain, torch.diag(given_noise.squeeze(-1)), rtol=0, atol=1e-10)
    negative = ScalarizedPosteriorTransform(weights=torch.tensor([-1.0], dtype=torch.float64))
    transformed = model.posterior(points, posterior_transform=negative)
    torch.testing.assert_close(transformed.mean, -model.posterior(points).mean)


def test_it_is_a_botorch_model() -> None:
    model = fitted()
    assert isinstance(model, Model)
    assert (model.num_outputs, model.batch_shape) == (1, torch.Size([]))
    assert torch.equal(model.train_inputs[0], data()[0])
    assert edrbo.Ensemble is Ensemble


@pytest.mark.parametrize("name", ["log-ei", "ucb", "q-log-nei", "q-ucb", "q-kg"])
def test_stock_acquisition_functions_are_optimized_on_it(name: str) -> None:
    model, (x, y) = fitted(), data()
    make: dict[str, tuple[AcquisitionFunction, int]] = {
        "log-ei": (LogExpectedImprovement(model, y.max()), 1),
        "ucb": (UpperConfidenceBound(model, 2.0), 1),
        # Older BoTorch caches roots of GPyTorch's models only, and says so of any other.
        "q-log-nei": (qLogNoisyExpectedImprovement(model, x, sampler=sampler(8), cache_root=False), 2),
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
    mean, sd = model.experts.moments(points.squeeze(1))
    with torch.no_grad():
        value = UpperConfidenceBound(model, 1.5**2)(points)
    torch.testing.assert_close(value, mean.mean(0) + 1.5 * sd.mean(0), rtol=1e-9, atol=1e-9)


def test_fantasies_condition_on_their_samples() -> None:
    model, new, points = fitted(), uniform(3, 2, 2, seed=11), uniform(5, 2, seed=12)
    fantasies = model.fantasize(new, sampler(4))  # 4 samples at each of 3 batches of q = 2
    assert fantasies.batch_shape == torch.Size([4, 3])
    posterior = fantasies.posterior(points)
    assert posterior.mean.shape == (4, 3, 5, 1)
    values = model.experts.scaling.value(fantasies.experts.gp.y[..., -2:])
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
        float((model.condition_on_observations(point, target, noise_variance).posterior(point).mean - target).abs())
        for noise_variance in (torch.full((1, 1), variance, dtype=torch.float64) for variance in (1e-9, 1.0, 1e6))
    ]
    assert moved[0] < 1e-2
    assert moved[0] < moved[1] < moved[2]
    assert moved[2] > 19.0
