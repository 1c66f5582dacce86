"""Observations at one input: the model of few rows is that of all observations, and it is small."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import central_difference, random_hyper, uniform
from torch import Tensor

from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate
from edrbo.surrogate.exact_gp import ExactGP
from edrbo.surrogate.fit import Likelihood, pack
from edrbo.surrogate.kernels import EXPERTS, ensemble_priors, get_kernel
from edrbo.surrogate.replicates import SAME_INPUT, Replicates, same_rows
from edrbo.surrogate.scaling import Scaling
from edrbo.surrogate.warping import WarpedSurrogate

KERNELS = tuple(get_kernel(name) for name in EXPERTS)
KINDS = ["learnt", "known", "some known"]


def repeated(kind: str = "learnt", n: int = 24, seed: int = 0) -> tuple[Tensor, Tensor, Tensor | None]:
    """n observations at nine inputs, repeats of one input not side by side."""
    places, rng = uniform(9, 2, seed=seed), np.random.default_rng(seed)
    x = places[torch.from_numpy(np.concatenate([np.arange(9), rng.integers(0, 9, n - 9)]))]
    y = torch.sin(5.0 * x).sum(-1) + 0.3 * torch.from_numpy(rng.standard_normal(n))
    noise_variance = uniform(n, seed=seed + 1, low=0.05, high=0.4)
    if kind == "some known":
        noise_variance[torch.from_numpy(rng.random(n) < 0.4)] = torch.nan
    return x, y, None if kind == "learnt" else noise_variance


def unmerged(model: ExpertEnsemble, x: Tensor, y: Tensor, noise_variance: Tensor | None) -> ExactGP:
    """The GP with a row for every observation, at the hyper-parameters of ``model``."""
    known = model.scaling.noise_variance(noise_variance, y)
    return ExactGP.condition(KERNELS, model.gp.hyper, x, model.scaling.standardize(y), known)


@pytest.mark.parametrize("kind", KINDS)
def test_the_posterior_is_that_of_all_observations(kind: str) -> None:
    x, y, noise_variance = repeated(kind)
    model = Surrogate().at(x, y, noise_variance, random_hyper(4, 2, seed=2))
    assert model.observations == 24
    assert model.gp.x.shape[0] == (9 if kind != "some known" else len({(*a, b) for a, b in pairs(x, noise_variance)}))
    assert torch.equal(model.inputs, x)
    whole, points = unmerged(model, x, y, noise_variance), uniform(7, 2, seed=3)
    for ours, expected in zip(model.gp.posterior(points), whole.posterior(points), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(model.log_evidence(), whole.log_evidence(), rtol=1e-9, atol=1e-9)


def pairs(x: Tensor, noise_variance: Tensor | None) -> list[tuple[list[float], bool]]:
    assert noise_variance is not None
    return list(zip(x.tolist(), noise_variance.isnan().tolist(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_the_likelihood_and_its_gradient_are_those_of_all_observations(kind: str) -> None:
    x, y, noise_variance = repeated(kind)
    scaling, priors = Scaling.of(y), ensemble_priors(2)
    standardized, known = scaling.standardize(y), scaling.noise_variance(noise_variance, y)
    replicates = Replicates.among(x, standardized, known)
    assert replicates is not None
    merged = Likelihood(
        x[replicates.first], replicates.mean(standardized), replicates.noise_variance, priors, replicates
    )
    whole = Likelihood(x, standardized, known, priors)
    assert merged.observations == whole.observations == 24
    theta = pack(random_hyper(4, 2, seed=4))
    for ours, expected in zip(
        merged.value_and_gradient(theta, KERNELS), whole.value_and_gradient(theta, KERNELS), strict=True
    ):
        torch.testing.assert_close(ours, expected, rtol=1e-8, atol=1e-8)
    numeric = central_difference(lambda at: merged.value_and_gradient(at, KERNELS)[0].sum(), theta)
    torch.testing.assert_close(merged.value_and_gradient(theta, KERNELS)[1], numeric, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("surrogate", [Surrogate(weighting="evidence"), WarpedSurrogate()], ids=["plain", "warped"])
def test_a_fit_is_that_of_all_observations(kind: str, surrogate: Surrogate, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, noise_variance = repeated(kind)
    merged = surrogate.fit(x, y, noise_variance)
    monkeypatch.setattr(Replicates, "among", lambda *data: None)
    whole = surrogate.fit(x, y, noise_variance)
    assert whole.replicates is None
    points = uniform(6, 2, seed=5)
    for ours, expected in zip(merged.moments(points), whole.moments(points), strict=True):
        # two searches end as near as they are reported
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4)
    if merged.weights is not None and whole.weights is not None:
        torch.testing.assert_close(merged.weights, whole.weights, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_leaving_one_out_leaves_out_one_observation(kind: str) -> None:
    x, y, noise_variance = repeated(kind)
    model = Surrogate().at(x, y, noise_variance, random_hyper(4, 2, seed=6))
    outcomes, mean, sd = model.leave_one_out()
    standardized, known = model.scaling.standardize(y), model.scaling.noise_variance(noise_variance, y)
    torch.testing.assert_close(outcomes, standardized, rtol=1e-12, atol=1e-12)
    for i in range(len(y)):
        rest = torch.arange(len(y)) != i
        others = ExactGP.condition(
            KERNELS, model.gp.hyper, x[rest], standardized[rest], None if known is None else known[rest]
        )
        expected, covariance = others.posterior(x[i : i + 1])
        own = model.gp.hyper.noise_variance if known is None or bool(known[i].isnan()) else known[i]
        torch.testing.assert_close(mean[:, i], expected[:, 0], rtol=1e-7, atol=1e-7)
        torch.testing.assert_close(sd[:, i], (covariance[:, 0, 0] + own).sqrt(), rtol=1e-7, atol=1e-7)


def test_observations_that_come_after_a_fit_are_rows_of_their_own() -> None:
    x, y, _ = repeated()
    surrogate = Surrogate()
    start = surrogate.fit(x[:20], y[:20])
    longer = surrogate.extend(start, x, y)
    assert longer.observations == 24
    assert longer.gp.x.shape[0] == 9 + 4
    whole, points = unmerged(longer, x, y, None), uniform(7, 2, seed=3)
    for ours, expected in zip(longer.gp.posterior(points), whole.posterior(points), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(longer.log_evidence(), whole.log_evidence(), rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(longer.leave_one_out()[0], longer.scaling.standardize(y), rtol=1e-12, atol=1e-12)


def test_two_thousand_points_next_to_each_other_are_one() -> None:
    rng = np.random.default_rng(7)
    x = torch.from_numpy(0.4 + 1e-12 * rng.standard_normal((2000, 2)))
    y = torch.from_numpy(5.0 + rng.standard_normal(2000))
    model = Surrogate().fit(x, y)
    assert (model.observations, model.gp.x.shape[0]) == (2000, 1)
    mean, sd = model.moments(torch.tensor([[0.4, 0.4], [0.9, 0.9]], dtype=torch.float64))
    torch.testing.assert_close(mean[:, 0], y.mean().expand(4), rtol=0, atol=0.01)
    assert float(sd[:, 0].max()) < 1.2 / 2000**0.5  # of the mean of 2,000
    assert float(sd[:, 1].min()) > 0.3
    noise_variance = model.gp.hyper.noise_variance * model.scaling.scale**2
    torch.testing.assert_close(noise_variance, y.var().expand(4), rtol=0.05, atol=0)


# ---------------------------------------------------------------- which are the same


def test_what_differs_is_left_alone() -> None:
    assert same_rows(uniform(300, 3, seed=8).numpy()) is None
    assert Replicates.among(uniform(30, 3, seed=8), uniform(30, seed=9), None) is None
    grid = torch.cartesian_prod(*[torch.linspace(0, 1, 7, dtype=torch.float64)] * 3)
    assert same_rows(grid.numpy()) is None  # many share a coordinate, none all of them


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 4), spread=st.sampled_from([0.0, 0.01, 0.4, 3.0, 30.0]))
def test_the_same_are_found_as_by_comparing_all_with_all(seed: int, d: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 3, (40, d)) / 3.0 + spread * SAME_INPUT * rng.standard_normal((40, d))
    leaders: list[int] = []
    expected = []
    for point in points:
        near = [row for row, i in enumerate(leaders) if (np.abs(points[i] - point) <= SAME_INPUT).all()]
        if not near:
            leaders.append(len(expected))
        expected.append(near[0] if near else len(leaders) - 1)
    found = same_rows(points)
    assert (list(range(40)) if found is None else found.tolist()) == expected
    before = same_rows(points[:25])  # what comes later changes nothing
    assert (list(range(25)) if before is None else before.tolist()) == expected[:25]
