"""The MAP fit: likelihood, priors and gradient against independent numbers, and optima that are optima."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from gpytorch.priors import LogNormalPrior
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Reference, central_difference, random_data, random_hyper, uniform
from scipy.optimize import minimize
from torch import Tensor

from edrbo.surrogate.ensemble import Surrogate
from edrbo.surrogate.exact_gp import ExactGP
from edrbo.surrogate.fit import (
    LENGTHSCALE_BOUNDS,
    NOISE_BOUNDS,
    SHAPE_BOUNDS,
    Likelihood,
    default_theta,
    fit,
    fit_experts,
    pack,
    profile_mean,
    unpack,
)
from edrbo.surrogate.kernels import EXPERTS, KERNELS, Kernel, LogNormal, Priors, dimension_scaled, ensemble_priors

pytestmark = [pytest.mark.torch_numeric, pytest.mark.numpy_numeric]

ALL = tuple(KERNELS.values())
FLAT = Priors(lengthscale=None, noise_variance=None, outputscale=None, shape=None)
PROPER = Priors(
    lengthscale=LogNormal(-0.3, 0.75), noise_variance=LogNormal(-4.0, 1.0), outputscale=LogNormal(0.2, 0.8), mean_sd=0.7
)


def some_noise(n: int) -> Tensor:
    noise_variance = uniform(n, seed=41, low=1e-3, high=0.3)
    noise_variance[::2] = torch.nan
    return noise_variance


def likelihood_of(n: int, d: int, seed: int, priors: Priors, known: bool = False) -> Likelihood:
    return Likelihood(*random_data(n, d, seed), some_noise(n) if known else None, priors)


def value_of(likelihood: Likelihood, theta: Tensor, kernel: Kernel) -> float:
    """The log posterior of one expert at one θ (d+3)."""
    return float(likelihood.value_and_gradient(theta[None], (kernel,))[0])


@pytest.mark.parametrize("known", [False, True])
def test_log_marginal_likelihood_is_gpytorchs(known: bool) -> None:
    n, d = 14, 3
    likelihood = likelihood_of(n, d, seed=1, priors=FLAT, known=known)
    hyper = random_hyper(4, d, seed=2)
    value, _ = likelihood.value_and_gradient(pack(hyper), ALL)
    factors = ExactGP.condition(ALL, hyper, likelihood.x, likelihood.y, likelihood.known_noise).chol
    mean = profile_mean(factors, likelihood.y, FLAT.mean_sd)
    hyper = replace(hyper, mean=mean)
    for m, name in enumerate(EXPERTS):
        noise_variance = likelihood.known_noise
        rows = (
            None
            if noise_variance is None
            else torch.where(noise_variance.isnan(), hyper.noise_variance[m], noise_variance)
        )
        reference = Reference(name, hyper, m, likelihood.x, likelihood.y, rows)
        expected = reference.log_marginal_likelihood()
        mean_penalty = 0.5 * (mean[m] / FLAT.mean_sd).square()
        assert float(value[m] + mean_penalty) == pytest.approx(float(expected.detach()), abs=1e-8)
        # the profiled mean is where its posterior is flat
        (slope,) = torch.autograd.grad(expected, reference.mean_module.constant)
        assert float(slope) == pytest.approx(float(mean[m] / FLAT.mean_sd**2), abs=1e-8)


@pytest.mark.parametrize("name", EXPERTS)
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("priors", [FLAT, PROPER], ids=["flat", "proper"])
def test_gradient_of_the_log_posterior(name: str, known: bool, priors: Priors) -> None:
    kernel, d = KERNELS[name], 2
    likelihood = likelihood_of(11, d, seed=3, priors=priors, known=known)
    theta = pack(random_hyper(1, d, seed=4))
    _, gradient = likelihood.value_and_gradient(theta, (kernel,))
    numeric = central_difference(
        lambda t: torch.tensor(value_of(likelihood, t, kernel), dtype=torch.float64), theta[0], step=1e-4
    )
    torch.testing.assert_close(gradient[0], numeric, rtol=1e-7, atol=1e-7)
    assert (float(gradient[0, -1]) != 0.0) == kernel.has_shape


def test_batched_likelihood_is_a_loop() -> None:
    likelihood = likelihood_of(10, 2, seed=5, priors=PROPER)
    theta = torch.cat([pack(random_hyper(4, 2, seed=6)), pack(random_hyper(4, 2, seed=7))])
    values, gradients = likelihood.value_and_gradient(theta, ALL * 2)
    for row, kernel in enumerate(ALL * 2):
        value, gradient = likelihood.value_and_gradient(theta[row : row + 1], (kernel,))
        torch.testing.assert_close(values[row], value[0], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(gradients[row], gradient[0], rtol=1e-9, atol=1e-10)


def test_priors_are_log_normal_densities() -> None:
    """The posterior with priors minus that without is the sum of GPyTorch's log densities."""
    d = 3
    hyper = random_hyper(4, d, seed=8)
    flat, proper = (likelihood_of(9, d, 9, replace(p, mean_sd=1.0)) for p in (FLAT, PROPER))
    difference = (
        proper.value_and_gradient(pack(hyper), ALL)[0] - flat.value_and_gradient(pack(hyper), ALL)[0]
    ).tolist()

    def density(prior: LogNormal | None, values: Tensor) -> float:
        assert prior is not None
        return float(LogNormalPrior(prior.loc, prior.scale).double().log_prob(values).sum())

    for m, kernel in enumerate(ALL):
        expected = density(PROPER.lengthscale, hyper.lengthscale[m])
        expected += density(PROPER.outputscale, hyper.outputscale[m]) + density(
            PROPER.noise_variance, hyper.noise_variance[m]
        )
        if kernel.has_shape:
            expected += density(PROPER.shape, hyper.shape[m])
        assert difference[m] == pytest.approx(expected, abs=1e-6)  # GPyTorch keeps loc and scale in single precision


def test_mode_and_median_of_a_prior() -> None:
    prior = LogNormal(-0.4, 0.9)
    torch_prior = torch.distributions.LogNormal(
        torch.tensor(-0.4, dtype=torch.float64), torch.tensor(0.9, dtype=torch.float64)
    )
    assert prior.mode == pytest.approx(float(torch_prior.mode), rel=1e-12)
    assert prior.median == pytest.approx(float(torch_prior.icdf(torch.tensor(0.5, dtype=torch.float64))), rel=1e-12)


def test_named_priors() -> None:
    for d in (1, 3, 8):
        ensemble, scaled = ensemble_priors(d), dimension_scaled(d)
        assert ensemble.lengthscale is not None
        assert scaled.lengthscale is not None
        assert ensemble.lengthscale.median == pytest.approx(0.7)
        assert ensemble.lengthscale.scale == 0.75
        assert scaled.lengthscale.median == pytest.approx(math.exp(math.sqrt(2)) * math.sqrt(d))
        assert ensemble.outputscale is scaled.outputscale is None


def test_pack_and_unpack_are_inverse() -> None:
    hyper = random_hyper(3, 2, seed=10)
    back = unpack(pack(hyper))
    for name in ("lengthscale", "outputscale", "noise_variance", "shape"):
        torch.testing.assert_close(getattr(back, name), getattr(hyper, name), rtol=1e-13, atol=0)
    assert not bool(back.mean.any())


def test_a_cold_fit_starts_at_the_modes_of_the_priors() -> None:
    priors = ensemble_priors(2)
    assert priors.lengthscale is not None
    assert priors.noise_variance is not None
    hyper = unpack(default_theta(ALL, 2, priors))
    assert hyper.lengthscale.flatten().tolist() == pytest.approx([priors.lengthscale.mode] * 8)
    assert hyper.noise_variance.tolist() == pytest.approx([priors.noise_variance.mode] * 4)
    assert hyper.outputscale.tolist() == [1.0] * 4  # no prior: fixed at one


def projected_gradient(likelihood: Likelihood, theta: Tensor) -> Tensor:
    """The gradient per observation (M × (d+3)) with what points out of the bounds, or is held fixed, set to zero."""
    _, gradient = likelihood.value_and_gradient(theta, ALL)
    d = likelihood.x.shape[1]
    pairs = [LENGTHSCALE_BOUNDS] * d + [(1.0, 1.0), NOISE_BOUNDS, SHAPE_BOUNDS]
    lower, upper = torch.tensor(pairs, dtype=torch.float64).log().T
    at_lower, at_upper = theta <= lower + 1e-9, theta >= upper - 1e-9
    blocked = (at_lower & (gradient < 0)) | (at_upper & (gradient > 0))
    return torch.where(blocked, 0.0, gradient) / len(likelihood.y)


@pytest.mark.parametrize(("n", "d"), [(1, 2), (6, 1), (20, 2), (40, 4)])
@pytest.mark.parametrize("priors", [ensemble_priors, dimension_scaled])
def test_the_optimum_is_stationary(n: int, d: int, priors: object) -> None:
    assert callable(priors)
    likelihood = likelihood_of(n, d, seed=11, priors=priors(d))
    start = default_theta(ALL, d, likelihood.priors)
    theta = pack(fit(ALL, likelihood, start, max_iterations=200, nats=1e-10))
    assert float(projected_gradient(likelihood, theta).abs().max()) < 1e-4
    # at the usual tolerance the search ends sooner, but at the same maximum
    usual = pack(fit(ALL, likelihood, start))
    best, _ = likelihood.value_and_gradient(theta, ALL)
    value, _ = likelihood.value_and_gradient(usual, ALL)
    assert float((best - value).max()) < 0.02


@pytest.mark.parametrize(("n", "d", "seed"), [(5, 1, 0), (12, 2, 1), (25, 3, 2)])
def test_a_fit_is_no_worse_than_multi_start(n: int, d: int, seed: int) -> None:
    priors = ensemble_priors(d)
    likelihood = likelihood_of(n, d, seed, priors)
    found = pack(fit(ALL, likelihood, default_theta(ALL, d, priors)))
    ours = likelihood.value_and_gradient(found, ALL)[0]
    bounds = np.log([LENGTHSCALE_BOUNDS] * d + [(1.0, 1.0), NOISE_BOUNDS, SHAPE_BOUNDS])
    rng = np.random.default_rng(seed)
    for m, kernel in enumerate(ALL):

        def cost(theta: np.ndarray, kernel: Kernel = kernel) -> tuple[float, np.ndarray]:
            value, gradient = likelihood.value_and_gradient(torch.from_numpy(theta[None].copy()), (kernel,))
            return -float(value[0]), -gradient[0].numpy()

        starts = rng.uniform(np.maximum(bounds[:, 0], -4.0), np.minimum(bounds[:, 1], 1.5), size=(6, d + 3))
        ends = [minimize(cost, start, jac=True, bounds=bounds, method="L-BFGS-B") for start in starts]
        assert float(ours[m]) >= max(-end.fun for end in ends) - 1e-3


def test_a_warm_start_never_loses() -> None:
    likelihood = likelihood_of(15, 2, seed=12, priors=ensemble_priors(2))
    start = pack(replace(random_hyper(4, 2, seed=13), outputscale=torch.ones(4, dtype=torch.float64)))
    before, _ = likelihood.value_and_gradient(start, ALL)
    after, _ = likelihood.value_and_gradient(pack(fit(ALL, likelihood, start)), ALL)
    assert bool((after >= before - 1e-12).all())
    again = pack(fit(ALL, likelihood, pack(fit(ALL, likelihood, start))))
    assert bool((likelihood.value_and_gradient(again, ALL)[0] >= after - 1e-12).all())


def test_the_best_of_several_starts_wins() -> None:
    likelihood = likelihood_of(15, 2, seed=14, priors=ensemble_priors(2))
    cold = default_theta(ALL, 2, likelihood.priors)
    bad = cold.clone()
    bad[:, :2] = math.log(0.01)  # every observation a surprise
    bad[:, 3] = math.log(1.5)
    both, alone = (fit(ALL, likelihood, start) for start in (torch.cat([bad, cold]), cold))
    value, expected = (likelihood.value_and_gradient(pack(hyper), ALL)[0] for hyper in (both, alone))
    assert bool((value >= expected - 1e-9).all())


def ripples(seed: int) -> tuple[Likelihood, Tensor]:
    """f ripples along both inputs, along the first twice as high; two experts start on the hill of the first input, two
    on that of the second."""
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.uniform(size=(40, 2)))
    wave = torch.sin(25.0 * x[:, 0]) + 0.5 * torch.sin(25.0 * x[:, 1])
    y = (wave - wave.mean()) / wave.std() + 0.3 * torch.from_numpy(rng.standard_normal(40))
    likelihood = Likelihood(x, (y - y.mean()) / y.std(), None, ensemble_priors(2))
    start = default_theta(ALL, 2, likelihood.priors)
    start[:2, :2], start[2:, :2] = torch.tensor([0.06, 0.8]).log(), torch.tensor([0.8, 0.06]).log()
    start[:, 3] = math.log(0.3)
    return likelihood, start


def test_experts_on_different_hills_hear_of_each_other() -> None:
    likelihood, start = ripples(seed=4)
    alone, together = fit(ALL, likelihood, start), fit_experts(ALL, likelihood, start)
    value, expected = (likelihood.value_and_gradient(pack(hyper), ALL)[0] for hyper in (together, alone))
    assert bool((alone.lengthscale[2:].argmin(1) == 1).all())  # they did stay on the worse hill
    assert bool((together.lengthscale.argmin(1) == 0).all())
    assert bool((value >= expected - 1e-9).all())
    assert int((value - expected > 2.0).sum()) == 3


def test_many_data_are_not_asked_again_at_every_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    likelihood, start = ripples(seed=4)  # where they disagree already
    monkeypatch.setattr("edrbo.surrogate.fit.CHEAP", 39)
    alone, again = fit(ALL, likelihood, start), fit_experts(ALL, likelihood, start)
    assert torch.equal(pack(alone), pack(again))
    further = fit_experts(ALL, likelihood, torch.cat([start, start]))  # as when the data have doubled
    assert bool((further.lengthscale.argmin(1) == 0).all())


def test_experts_on_one_hill_are_fitted_once() -> None:
    likelihood, start = ripples(seed=5)
    alone, together = fit(ALL, likelihood, start), fit_experts(ALL, likelihood, start)
    assert torch.equal(pack(alone), pack(together))


@pytest.mark.parametrize("y", [[0.0], [0.0] * 7], ids=["one observation", "constant y"])
def test_a_fit_to_data_without_spread_stays_inside_its_bounds(y: list[float]) -> None:
    outcomes = torch.tensor(y, dtype=torch.float64)
    likelihood = Likelihood(uniform(len(y), 2, seed=15), outcomes, None, ensemble_priors(2))
    hyper = fit(ALL, likelihood, default_theta(ALL, 2, likelihood.priors))
    for values, (low, high) in (
        (hyper.lengthscale, LENGTHSCALE_BOUNDS),
        (hyper.noise_variance, NOISE_BOUNDS),
        (hyper.shape, SHAPE_BOUNDS),
    ):
        assert bool(((values >= low * (1 - 1e-12)) & (values <= high * (1 + 1e-12))).all())
    assert hyper.outputscale.tolist() == [1.0] * 4


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 12))
def test_the_likelihood_does_not_depend_on_the_order_or_sign_of_the_data(seed: int, n: int) -> None:
    likelihood = likelihood_of(n, 2, seed, PROPER, known=True)
    theta = pack(random_hyper(4, 2, seed))
    expected = likelihood.value_and_gradient(theta, ALL)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    assert likelihood.known_noise is not None
    permuted = Likelihood(likelihood.x[order], -likelihood.y[order], likelihood.known_noise[order], PROPER)
    for a, b in zip(permuted.value_and_gradient(theta, ALL), expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("known", [False, True])
def test_the_curvature_is_the_average_information(known: bool) -> None:
    """Against ½ (∂K α)ᵀ K⁻¹ (∂K α) with ∂K by finite differences of the Gram matrix, and the priors' own curvature."""
    d, n = 2, 9
    likelihood = likelihood_of(n, d, seed=16, priors=PROPER, known=known)
    theta = pack(random_hyper(4, d, seed=17))
    _, _, curvature = likelihood.evaluate(theta, ALL, curved=True)
    assert curvature is not None
    scales = [PROPER.lengthscale] * d + [PROPER.outputscale, PROPER.noise_variance, PROPER.shape]
    for m, kernel in enumerate(ALL):

        def covariance(row: Tensor, kernel: Kernel = kernel) -> Tensor:
            gp = ExactGP.condition((kernel,), unpack(row[None]), likelihood.x, likelihood.y, likelihood.known_noise)
            return (gp.chol @ gp.chol.mT)[0]

        inverse = torch.linalg.inv(covariance(theta[m]))
        ones = torch.ones(n, dtype=torch.float64)
        mean = (ones @ inverse @ likelihood.y) / (ones @ inverse @ ones + PROPER.mean_sd**-2)
        alpha = inverse @ (likelihood.y - mean)
        steps = 1e-5 * torch.eye(d + 3, dtype=torch.float64)
        columns = torch.stack([(covariance(theta[m] + s) - covariance(theta[m] - s)) @ alpha / 2e-5 for s in steps])
        expected = 0.5 * columns @ inverse @ columns.T
        expected += torch.diag(torch.tensor([scale.scale**-2 for scale in scales if scale is not None]).double())
        torch.testing.assert_close(curvature[m], expected, rtol=1e-6, atol=1e-6)


def test_much_noise_is_found_from_the_hill_without_any() -> None:
    """Where half of the runs are gathered a search from little noise stayed 1.2 nats low: everything was signal."""
    rng = np.random.default_rng(26)
    x = rng.random((24, 4))
    x[12:] = np.clip(x[0] + 0.1 * rng.standard_normal((12, 4)), 0.0, 1.0)
    f = np.sin(3.0 * x[:, 0]) + x[:, 1]
    y = torch.from_numpy(f + f.std() * rng.standard_normal(24))
    model = Surrogate().fit(torch.from_numpy(x), y)
    kernels, priors = model.gp.kernels, Surrogate().priors(4)
    likelihood = Likelihood(model.gp.x, model.gp.y, None, priors)
    reached, _ = likelihood.value_and_gradient(pack(model.gp.hyper), kernels)
    for noise_variance in (0.01, 0.1, 1.0):
        start = default_theta(kernels, 4, priors)
        start[:, :4], start[:, -2] = 0.0, np.log(noise_variance)
        ends, _ = likelihood.value_and_gradient(pack(fit(kernels, likelihood, start)), kernels)
        assert (reached >= ends - 0.1).all()
