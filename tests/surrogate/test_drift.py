"""f that drifts, against brute force: a Gaussian process over inputs and time with the product kernel."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from edrbo.optimizer.calibration import one_step_ahead
from edrbo.surrogate.drift import DriftingGP, DriftingSurrogate, asked_at, faded
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate
from edrbo.surrogate.fit import Likelihood, default_theta
from edrbo.surrogate.kernels import ensemble_priors, get_kernel, gram, scaled_sqdist
from edrbo.surrogate.marginal import marginalized

HALF_LIFE = 7.0


def data(n: int = 14, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    draw = np.random.default_rng(seed)
    x = draw.random((n, 2))
    x[3] = x[9]  # the same input at two times is no replicate
    time = np.sort(draw.choice(np.arange(30.0), n, replace=False))
    y = np.sin(4 * x[:, 0]) + x[:, 1] * time / 20 + 0.1 * draw.standard_normal(n)
    return torch.from_numpy(np.column_stack([x, time])), torch.from_numpy(y)


def drifting(half_life: float | None = HALF_LIFE) -> tuple[ExpertEnsemble, torch.Tensor, torch.Tensor]:
    X, Y = data()
    return DriftingSurrogate(half_life=half_life).fit(X, Y), X, Y


def by_hand(model: ExpertEnsemble, m: int, z: torch.Tensor, rows: slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of expert m's f at inputs ``z`` and the present time, from the rows of the data."""
    gp = model.gp
    assert isinstance(gp, DriftingGP)
    expert = gp.hyper.expert(m)
    x, time = torch.cat([gp.x[rows], z]), torch.cat([gp.time[rows], torch.full((len(z),), gp.now)])
    sqdist = scaled_sqdist(x, x, expert.lengthscale)
    sqdist.diagonal(dim1=-2, dim2=-1).zero_()
    whole = gram(gp.kernels[m : m + 1], sqdist, expert.outputscale, expert.shape)[0].numpy()
    whole = whole * np.exp(-math.log(2) / gp.half_life * (time[:, None] - time).abs().numpy())
    n = len(x) - len(z)
    inverse = np.linalg.inv(whole[:n, :n] + np.diag(gp.noise_variance[m, rows].numpy()))
    mean = float(expert.mean[0])
    center = mean + whole[n:, :n] @ inverse @ (gp.y[rows].numpy() - mean)
    return center, whole[n:, n:] - whole[n:, :n] @ inverse @ whole[:n, n:]


def test_the_posterior_is_that_of_a_process_over_inputs_and_time() -> None:
    model, _, _ = drifting()
    z = torch.from_numpy(np.random.default_rng(1).random((6, 2)))
    means, sds = model.gp.moments(z)
    joint_mean, joint = model.gp.posterior(z)
    for m in range(model.num_experts):
        center, covariance = by_hand(model, m, z)
        np.testing.assert_allclose(means[m], center, atol=1e-9)
        np.testing.assert_allclose(sds[m], np.sqrt(np.diag(covariance)), rtol=1e-7)
        np.testing.assert_allclose(joint_mean[m], center, atol=1e-9)
        np.testing.assert_allclose(joint[m], covariance, atol=1e-9)
    paired = model.gp.paired_with(z[:3, 1:])
    weights = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    mean, sd = paired.integrated(z[:1, :1], weights)
    grid = torch.cat([z[:1, :1].expand(3, 1), z[:3, 1:]], dim=1)
    for m in range(model.num_experts):
        center, covariance = by_hand(model, m, grid)
        assert float(mean[m, 0]) == pytest.approx(float(weights.numpy() @ center), abs=1e-9)
        assert float(sd[m, 0]) ** 2 == pytest.approx(float(weights.numpy() @ covariance @ weights.numpy()), rel=1e-6)


def test_pending_runs_are_of_now() -> None:
    model, X, _ = drifting()
    z = torch.tensor([[0.3, 0.4]], dtype=torch.float64)
    grown = model.with_modelled(z, torch.tensor([0.7], dtype=torch.float64))
    assert isinstance(model.gp, DriftingGP)
    again = DriftingGP.at_times(
        model.gp.kernels,
        model.gp.hyper,
        torch.cat([model.gp.x, z]),
        torch.cat([model.gp.y, torch.tensor([0.7], dtype=torch.float64)]),
        torch.cat([model.gp.noise_variance, model.gp.hyper.noise_variance[:, None]], dim=1),
        torch.cat([X[:, 2], torch.tensor([model.gp.now])]),
        model.gp.now,
    )
    for one, other in zip(grown.gp.moments(z), again.moments(z), strict=True):
        torch.testing.assert_close(one, other)


def test_held_out_and_evidence_are_those_of_the_outcomes_then() -> None:
    model, _, _ = drifting()
    gp = model.gp
    assert isinstance(gp, DriftingGP)
    y, mean, sd = model.leave_one_out()
    ahead = one_step_ahead(model)
    n = len(y)
    for m in range(model.num_experts):
        expert = gp.hyper.expert(m)
        sqdist = scaled_sqdist(gp.x, gp.x, expert.lengthscale)
        whole = gram(gp.kernels[m : m + 1], sqdist, expert.outputscale, expert.shape)[0].numpy()
        whole = whole * 0.5 ** ((gp.time[:, None] - gp.time).abs().numpy() / HALF_LIFE)
        whole += np.diag(gp.noise_variance[m].numpy())
        center, values = float(expert.mean[0]), gp.y.numpy()
        for i in (0, 5, n - 1):
            rest = np.delete(np.arange(n), i)
            gain = whole[i, rest] @ np.linalg.inv(whole[np.ix_(rest, rest)])
            assert float(mean[m, i]) == pytest.approx(center + gain @ (values[rest] - center), abs=1e-6)
            assert float(sd[m, i]) ** 2 == pytest.approx(whole[i, i] - gain @ whole[rest, i], rel=1e-6)
        residual = values - center
        logdet = np.linalg.slogdet(whole)[1]
        evidence = -0.5 * (residual @ np.linalg.solve(whole, residual) + logdet + n * math.log(2 * math.pi))
        assert float(model.log_evidence()[m]) == pytest.approx(evidence, abs=1e-6)
    assert len(ahead.y) == n - 1
    assert np.isfinite(ahead.sd).all()


def test_without_drift_it_is_the_plain_process() -> None:
    X, Y = data(seed=3)
    X[3, :2] += 0.05
    still = DriftingSurrogate(half_life=math.inf).fit(X, Y)
    plain = Surrogate().fit(X[:, :2], Y)
    torch.testing.assert_close(still.gp.hyper.lengthscale, plain.gp.hyper.lengthscale, rtol=1e-4, atol=1e-4)
    same = Surrogate().at(X[:, :2], Y, None, still.gp.hyper)
    for one, other in zip(still.gp.moments(X[:4, :2] + 0.01), same.gp.moments(X[:4, :2] + 0.01), strict=True):
        torch.testing.assert_close(one, other)


def test_the_gradient_of_the_likelihood_has_the_correlation() -> None:
    X, Y = data()
    pairs = torch.tril_indices(len(Y), len(Y), offset=-1)
    together = 0.5 ** ((X[pairs[0], 2] - X[pairs[1], 2]).abs() / HALF_LIFE)
    kernels = tuple(get_kernel(name) for name in ("se", "rq", "matern32", "matern52"))
    likelihood = Likelihood(X[:, :2], (Y - Y.mean()) / Y.std(), None, ensemble_priors(2), correlation=together)
    theta = default_theta(kernels, 2, ensemble_priors(2)) + 0.1
    _, gradient = likelihood.value_and_gradient(theta, kernels)
    for column in range(theta.shape[1]):
        step = torch.zeros_like(theta)
        step[:, column] = 1e-5
        ends = [likelihood.value_and_gradient(theta + sign * step, kernels)[0] for sign in (1, -1)]
        torch.testing.assert_close((ends[0] - ends[1]) / 2e-5, gradient[:, column], rtol=1e-4, atol=1e-5)


def test_later_more_is_forgotten() -> None:
    model, X, _ = drifting()
    later = asked_at(model, model.gp.now + 100 * HALF_LIFE)  # type: ignore[attr-defined]
    mean, sd = later.gp.moments(X[:3, :2])
    torch.testing.assert_close(mean, later.gp.hyper.mean[:, None].expand_as(mean))
    torch.testing.assert_close(sd.square(), later.gp.hyper.outputscale[:, None].expand_as(sd))
    assert asked_at(model, model.gp.now) is model  # type: ignore[attr-defined]
    very_old = replace(model.gp, half_life=1e-3)
    assert bool(very_old.asked_at(1e6).moments(X[:3, :2])[1].isfinite().all())  # type: ignore[attr-defined]


def test_an_outcome_without_a_context_says_less_the_older_it_is() -> None:
    model, _, _ = drifting()
    gp = model.gp
    assert isinstance(gp, DriftingGP)
    time = torch.tensor([gp.now, gp.now - HALF_LIFE], dtype=torch.float64)
    y, noise = faded(model, time, torch.ones(2, dtype=torch.float64), torch.full((2,), 0.1, dtype=torch.float64))
    assert noise[0] == pytest.approx(0.1)
    assert noise[1] == pytest.approx((0.1 + 0.75 * float(gp.hyper.outputscale.mean())) / 0.25)
    assert y[0] == pytest.approx(1.0)


def test_hyper_parameters_in_doubt_drift_too() -> None:
    model, _, _ = drifting()
    members = marginalized(model, ensemble_priors(2))
    assert isinstance(members.gp, DriftingGP)
    assert members.gp.half_life == HALF_LIFE


@pytest.mark.parametrize(("moves", "expected"), [(True, True), (False, False)])
def test_the_half_life_is_learned(moves: bool, expected: bool) -> None:
    draw = np.random.default_rng(5)
    x, time = draw.random((60, 1)), np.arange(60.0)
    y = -4 * (x[:, 0] - (0.2 + 0.01 * time if moves else 0.5)) ** 2 + 0.05 * draw.standard_normal(60)
    X, Y = torch.from_numpy(np.column_stack([x, time])), torch.from_numpy(y)
    found = DriftingSurrogate().fit(X, Y)
    assert math.isfinite(found.gp.hyper.half_life or math.nan) == expected
    warm = DriftingSurrogate().fit(X, Y, start=found.gp.hyper, cold=False)
    assert math.isfinite(warm.gp.hyper.half_life or math.nan) == expected
