"""Noise that varies: the evidence against brute force, gradients against differences, and when it is believed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate
from edrbo.surrogate.fit import Likelihood, default_theta
from edrbo.surrogate.kernels import Hyperparameters, ensemble_priors, get_kernel, noise_ratio
from edrbo.surrogate.marginal import marginalized
from edrbo.surrogate.noise import NoisyGP, VaryingNoiseSurrogate, _Finder, varying_noise
from edrbo.surrogate.replicates import Replicates
from edrbo.surrogate.tolerance import Shift


def data(n: int = 60, *, varies: bool = True, seed: int = 0, repeat: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    draw = np.random.default_rng(seed)
    x = draw.random((n, 2)).repeat(repeat, axis=0)
    sd = np.where(x[:, 0] > 0.5, 0.5, 0.05) if varies else 0.2
    y = np.sin(5 * x[:, 0]) + x[:, 1] + sd * draw.standard_normal(len(x))
    return torch.from_numpy(x), torch.from_numpy(y)


@pytest.fixture(scope="module")
def varying() -> ExpertEnsemble:
    model = VaryingNoiseSurrogate().fit(*data())
    assert model.gp.hyper.noise_profile is not None
    return model


def test_it_is_found_where_it_is(varying: ExpertEnsemble) -> None:
    gp = varying.gp
    ratio = gp.noise_ratio(torch.tensor([[0.2, 0.5], [0.8, 0.5], [0.8, 0.1]], dtype=torch.float64))
    assert ratio is not None
    sd = (gp.hyper.noise_variance.mean() * ratio).sqrt() * varying.scaling.scale  # type: ignore[attr-defined]
    assert 0.025 < float(sd[0]) < 0.1
    assert 0.3 < float(sd[1]) < 0.8
    assert 0.4 < float(ratio[1] / ratio[2]) < 2.5  # the other input says nothing


@pytest.mark.parametrize("seed", range(2))
def test_noise_that_is_alike_keeps_every_bit(seed: int) -> None:
    X, Y = data(40, varies=False, seed=seed)
    one, other = Surrogate().fit(X, Y), VaryingNoiseSurrogate().fit(X, Y)
    assert other.gp.hyper.noise_profile is None
    assert one.gp.hyper.to_dict() == other.gp.hyper.to_dict()
    assert torch.equal(one.gp.chol, other.gp.chol)


def test_few_outcomes_no_noise_and_known_noise_have_no_model() -> None:
    X, Y = data()
    assert VaryingNoiseSurrogate().fit(X[:15], Y[:15]).gp.hyper.noise_profile is None
    smooth = torch.sin(3 * X[:, 0]) + X[:, 1] ** 2
    assert VaryingNoiseSurrogate().fit(X, smooth).gp.hyper.noise_profile is None
    assert VaryingNoiseSurrogate().fit(X, Y, torch.full_like(Y, 0.05)).gp.hyper.noise_profile is None


@pytest.mark.parametrize("repeat", [1, 3])
def test_evidence_and_slope_are_those_of_all_observations(repeat: int) -> None:
    """Brute force: the multivariate normal of every single outcome with its own noise."""
    X, Y = data(12, repeat=repeat)
    model = Surrogate(experts=("matern52",)).fit(torch.cat([X, X[:8] + 0.01]), torch.cat([Y, Y[:8]]))
    finder = _Finder.of(model)
    assert finder is not None
    gp = model.gp
    rows = torch.arange(len(gp.y)) if model.replicates is None else model.replicates.rows
    y = gp.y if model.replicates is None else gp.y[rows] + model.replicates.deviation
    signal = finder.signal[0][rows][:, rows]
    log_ratio = 0.7 * torch.sin(7 * gp.x[:, 0])

    def density(levels: torch.Tensor) -> float:
        noise = gp.hyper.noise_variance[0] * levels.exp()[rows]
        normal = torch.distributions.MultivariateNormal(
            gp.hyper.mean.expand(len(y)), signal + torch.diag(noise) + 1e-12 * torch.eye(len(y))
        )
        return float(normal.log_prob(y))

    value, slope, information = finder.information(log_ratio)
    change = value - finder.information(torch.zeros_like(log_ratio))[0]
    assert change == pytest.approx(density(log_ratio) - density(torch.zeros_like(log_ratio)), abs=1e-5)
    for i in range(0, len(gp.y), 5):
        step = torch.zeros_like(log_ratio)
        step[i] = 1e-5
        difference = (density(log_ratio + step) - density(log_ratio - step)) / 2e-5
        assert float(slope[i]) == pytest.approx(difference, abs=1e-4)
    assert bool((torch.linalg.eigvalsh(information) > -1e-9).all())


def test_the_search_ends_at_the_top() -> None:
    finder = _Finder.of(Surrogate().fit(*data()))
    assert finder is not None
    coefficients, covariance, gain = finder.search([0], None)
    features, variances = finder.features([0])

    def posterior(point: torch.Tensor) -> float:
        return finder.information(features @ point)[0] - 0.5 * float((point.square() / variances).sum())

    ends = [finder._climb(features, variances, start)[0] for start in (torch.zeros(4).double(), torch.ones(4).double())]
    torch.testing.assert_close(ends[0], ends[1], atol=1e-3, rtol=1e-3)
    for k in range(4):
        step = torch.zeros(4, dtype=torch.float64)
        step[k] = 0.01
        assert posterior(ends[0]) >= max(posterior(ends[0] + step), posterior(ends[0] - step))
    assert gain > 4.0
    assert not bool(coefficients[1].any())
    assert bool((torch.linalg.eigvalsh(covariance) > -1e-12).all())
    assert not bool(covariance[3:].any())


def test_the_likelihood_of_lengthscales_has_it_too() -> None:
    X, Y = data(15, repeat=2)
    standardized = (Y - Y.mean()) / Y.std()
    replicates = Replicates.among(X, standardized, None)
    assert replicates is not None
    x, y = X[replicates.first], replicates.mean(standardized)
    ratio = noise_ratio(torch.tensor([[1.0, 0.3], [-0.5, 0.1]], dtype=torch.float64), x)
    kernels = (get_kernel("se"), get_kernel("rq"))
    likelihood = Likelihood(x, y, None, ensemble_priors(2), replicates, noise_ratio=ratio)
    theta = default_theta(kernels, 2, ensemble_priors(2))
    _, gradient = likelihood.value_and_gradient(theta, kernels)
    for column in range(theta.shape[1]):
        step = torch.zeros_like(theta)
        step[:, column] = 1e-5
        ends = [likelihood.value_and_gradient(theta + sign * step, kernels)[0] for sign in (1, -1)]
        torch.testing.assert_close((ends[0] - ends[1]) / 2e-5, gradient[:, column], rtol=1e-4, atol=1e-5)


def test_stored_extended_and_doubted_it_stays(varying: ExpertEnsemble) -> None:
    X, Y = data()
    again = Hyperparameters.from_dict(varying.gp.hyper.to_dict())
    assert again.noise_profile is not None
    assert torch.equal(again.noise_profile, varying.gp.hyper.noise_profile)  # type: ignore[arg-type]
    surrogate = VaryingNoiseSurrogate()
    stored = surrogate.at(X, Y, None, again)
    assert torch.equal(stored.gp.chol, varying.gp.chol)
    more, values = data(4, seed=9)
    grown = surrogate.extend(varying, torch.cat([X, more]), torch.cat([Y, values]))
    at_once = surrogate.at(torch.cat([X, more]), torch.cat([Y, values]), None, again)
    assert torch.equal(grown.gp.chol, at_once.gp.chol)
    assert varying.known_noise is None
    members = marginalized(varying, ensemble_priors(2))
    assert members.gp.hyper.noise_profile is not None
    np.testing.assert_allclose(
        members.gp.noise_variance, members.gp.hyper.noise_variance[:, None] * members.gp.noise_ratio(members.gp.x)
    )


def test_with_the_noise_among_the_contexts_a_sum_is_one_over_outcomes(varying: ExpertEnsemble) -> None:
    """Against Monte Carlo of the mean and the variance over noise; gradients against differences."""
    nothing = torch.zeros(1, dtype=torch.float64)
    gp = NoisyGP.of(varying.gp, Shift(1, torch.zeros(1, dtype=torch.long), nothing, nothing))
    x = torch.tensor([[0.3], [0.8]], dtype=torch.float64)
    draw = torch.from_numpy(np.random.default_rng(0).standard_normal(4000))
    pairs = torch.stack([0.5 + draw / 6, torch.full_like(draw, 0.4)], dim=-1)
    means, sds = (part.reshape(4, 2, -1) for part in gp.paired_with(pairs).moments(x))
    plain = torch.cat([x, torch.full_like(x, 0.4)], dim=-1)
    mean, sd = varying.gp.moments(plain)
    noise = varying.gp.hyper.noise_variance[:, None] * noise_ratio(varying.gp.hyper.noise_profile, plain)  # type: ignore[arg-type]
    torch.testing.assert_close(sds, sd[..., None].expand_as(sds))
    torch.testing.assert_close(means.var(-1), noise, rtol=0.08, atol=1e-6)
    torch.testing.assert_close(means.mean(-1), mean, rtol=0.1, atol=0.03)
    few = gp.paired_with(pairs[:5])
    weights = torch.full((5,), 0.2, dtype=torch.float64)
    for function in (few.moments, lambda point: few.integrated(point, weights)):
        point = x.clone().requires_grad_()
        total = sum(part.sum() for part in function(point))
        (slope,) = torch.autograd.grad(total, point)
        for k in range(2):
            step = torch.zeros_like(x)
            step[k] = 1e-5
            ends = [float(sum(part.sum() for part in function(x + sign * step))) for sign in (1, -1)]
            assert float(slope[k]) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4, abs=1e-4)
    torch.testing.assert_close(few.moments(x)[0], few.moments_and_pullback(x)[0])
    joint_mean, _ = gp.posterior(torch.cat([x[:1].expand(5, 1), pairs[:5]], dim=-1))
    torch.testing.assert_close(joint_mean, means[:, 0, :5])


def test_replicates_alone_tell_it() -> None:
    X, Y = data(10, repeat=6)
    assert varying_noise(Surrogate().fit(X, Y)) is not None


def test_it_turns_up_in_few_studies_where_it_is_not() -> None:
    found = 0
    for seed in range(8):
        X, Y = data(50, varies=False, seed=100 + seed)
        found += varying_noise(Surrogate(experts=("matern52",)).fit(X, Y)) is not None
    assert found == 0


def test_the_ratio_stays_what_it_is_outside_of_what_was_seen() -> None:
    profile = torch.tensor([[1.0, 0.5]], dtype=torch.float64)
    points = torch.tensor([[-3.0], [0.0], [1.0], [7.0]], dtype=torch.float64)
    ratio = noise_ratio(profile, points)
    assert ratio.tolist() == pytest.approx([math.exp(1.5)] * 2 + [math.exp(-0.5)] * 2)
