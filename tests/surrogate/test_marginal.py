"""Draws of hyper-parameters: against quadrature, and whether the noise is among them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from edrbo.surrogate import marginal
from edrbo.surrogate.ensemble import Surrogate
from edrbo.surrogate.kernels import LogNormal, Priors
from edrbo.surrogate.marginal import doubted, marginalized
from edrbo.theory import FixedSurrogate


def some_data(n: int, d: int, noise_sd: float, seed: int) -> tuple[torch.Tensor, torch.Tensor, float]:
    """A smooth function of ``d`` inputs, with noise of so many standard deviations of it; and that noise's sd."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    f = np.sin(5.0 * x[:, 0]) + (0.0 if d < 2 else x[:, 1] ** 2 + np.cos(4.0 * x[:, -1] * x[:, 0]))
    sd = noise_sd * f.std()
    return torch.from_numpy(x), torch.from_numpy(f + sd * rng.standard_normal(n)), float(sd)


PRIORS = Priors(lengthscale=LogNormal(np.log(0.7), 0.75))


@pytest.mark.parametrize("noise_sd", [0.05, 0.5])
def test_draws_are_from_the_posterior(noise_sd: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Means and standard deviations of log lengthscale and log noise, by a sum over a fine grid with SciPy."""
    monkeypatch.setattr(marginal, "PROPOSED", 2000)
    monkeypatch.setattr(marginal, "LARGEST_WORK", 1e12)
    x, y, _ = some_data(14, 1, noise_sd, 0)
    model = Surrogate(experts=("se",), priors=partial(_same, PRIORS)).fit(x, y)
    found = marginalized(model, PRIORS, 400).gp.hyper
    drawn = np.stack([found.lengthscale[:, 0].log().numpy(), found.noise_variance.log().numpy()])
    standardized = model.gp.y.numpy()
    square = (x.numpy() - x.numpy().T) ** 2
    lengths, noise_variances = np.linspace(np.log(0.02), np.log(20.0), 70), np.linspace(np.log(1e-6), np.log(2.0), 70)
    ones = np.ones_like(square)
    log_density = np.empty((70, 70))
    for i, length in enumerate(lengths):
        for j, noise_variance in enumerate(noise_variances):
            covariance = np.exp(-0.5 * square / np.exp(2 * length)) + np.exp(noise_variance) * np.eye(14)
            # the fit profiles the mean out; under its prior N(0, 1) the two differ by a factor that hardly moves
            training_data = multivariate_normal(np.zeros(14), covariance + ones).logpdf(standardized)
            profiled = (
                training_data + 0.5 * np.linalg.slogdet(covariance + ones)[1] - 0.5 * np.linalg.slogdet(covariance)[1]
            )
            prior = (
                -0.5 * ((length - np.log(0.7)) / 0.75) ** 2 - 0.5 * ((noise_variance + 4.0) / marginal.NOISE_DOUBT) ** 2
            )
            log_density[i, j] = profiled + prior
    weights = np.exp(log_density - logsumexp(log_density))
    for k, (axis, other) in enumerate(((lengths, 1), (noise_variances, 0))):
        share = weights.sum(axis=other)
        mean = share @ axis
        sd = np.sqrt(share @ (axis - mean) ** 2)
        assert drawn[k].mean() == pytest.approx(mean, abs=0.2 * sd)
        assert drawn[k].std() == pytest.approx(sd, rel=0.25)


def _same(priors: Priors, d: int) -> Priors:
    return priors


@pytest.mark.parametrize("noise_sd", [0.1, 0.4])
def test_the_noise_is_among_the_draws(noise_sd: float) -> None:
    """Of forty noisy outcomes. Where noise is much the fits take half of it for signal, and have no doubt."""
    largest, middle = [], []
    for seed in range(20):
        x, y, truth = some_data(40, 3, noise_sd, seed)
        model = Surrogate().fit(x, y)
        noise_variance = doubted(Surrogate(), model).gp.hyper.noise_variance.sqrt() * model.scaling.scale / truth
        assert float(noise_variance.min()) <= 1.0
        largest.append(float(noise_variance.max()))
        middle.append(float(noise_variance.median()))
    assert np.mean(np.array(largest) >= 0.9) >= 0.9
    assert 0.8 <= np.median(middle) <= 1.2


def test_members_are_draws_of_every_expert_and_condition_on_the_same_data() -> None:
    x, y, _ = some_data(20, 2, 0.1, 1)
    model = Surrogate().fit(x, y)
    found = doubted(Surrogate(), model)
    assert [kernel.name for kernel in found.gp.kernels] == [k.name for k in model.gp.kernels for _ in range(4)]
    assert torch.equal(found.gp.x, model.gp.x)
    assert torch.equal(found.gp.y, model.gp.y)
    assert found is doubted(Surrogate(), model)  # worked out once
    again = marginalized.__wrapped__(model, Surrogate().priors(2))
    assert torch.equal(again.gp.hyper.lengthscale, found.gp.hyper.lengthscale)


def test_known_noise_and_repeats_stay() -> None:
    x, y, _ = some_data(20, 2, 0.1, 2)
    x = torch.cat([x, x[:6]])
    y = torch.cat([y, y[:6] + 0.05])
    known = torch.full((26,), torch.nan, dtype=torch.float64)
    known[3:9] = 0.04
    model = Surrogate().fit(x, y, known)
    found = doubted(Surrogate(), model)
    assert found.replicates is model.replicates
    some = (
        ~model.replicates.noise_variance.isnan()
        if model.replicates is not None and model.replicates.noise_variance is not None
        else None
    )
    assert some is not None
    assert torch.equal(found.gp.noise_variance[:, some], model.gp.noise_variance[0, some].expand(16, -1))
    assert not torch.equal(found.gp.noise_variance[:, ~some], model.gp.noise_variance[0, ~some].expand(16, -1))


def test_experts_weigh_by_how_many_members_they_have() -> None:
    x, y, _ = some_data(30, 2, 0.0, 3)
    surrogate = Surrogate(weighting="evidence")
    model = surrogate.fit(x, y)
    assert model.weights is not None
    found = doubted(surrogate, model)
    assert found.weights is None
    assert found.num_experts == 16
    for kernel, weight in zip(model.gp.kernels, model.weights.tolist(), strict=True):
        share = np.mean([one.name == kernel.name for one in found.gp.kernels])
        assert abs(share - weight) <= 1 / 16


def test_many_observations_leave_no_doubt_and_fixed_kernels_none_at_all() -> None:
    x, y, _ = some_data(700, 2, 0.1, 4)
    surrogate = Surrogate(experts=("se",))
    few = surrogate.fit(x[:30], y[:30])
    many = surrogate.at(x, y, None, few.gp.hyper)
    assert doubted(surrogate, many) is many
    fixed = FixedSurrogate()
    model = fixed.fit(x[:20], y[:20])
    assert doubted(fixed, model) is model
