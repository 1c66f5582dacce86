"""Information gains, norms and β against independent arithmetic; Lemma 1 on functions drawn with known norm."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from edrbo import Method, Optimizer, Space, Surrogate
from edrbo.acquisition.risk import Expectation
from edrbo.acquisition.scores import UCB, BarycenterUCB, DesignUCB
from edrbo.contexts.distributions import Empirical, sobol_points
from edrbo.errors import InvalidValueError
from edrbo.surrogate.ensemble import ExpertEnsemble, barycenter
from edrbo.surrogate.kernels import EXPERTS
from edrbo.theory import (
    FixedSurrogate,
    TheoryBeta,
    beta,
    information_gain,
    information_gain_path,
    posterior_norm,
    realized_gain,
    rkhs_norm_lower_estimate,
    unit_kernel,
)

pytestmark = pytest.mark.torch_numeric

SIZES = st.integers(min_value=1, max_value=12)
SEEDS = st.integers(min_value=0, max_value=2**31)
NAMES = st.sampled_from(EXPERTS)


def points(n: int, d: int, seed: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).uniform(size=(n, d)))


def outcomes(x: Tensor) -> Tensor:
    return torch.sin(5 * x[..., 0]) * x[..., -1] + 0.3 * x.sum(-1)


# ---------------------------------------------------------------- information gain


@settings(max_examples=50, deadline=None)
@given(SIZES, SEEDS, NAMES, st.floats(1e-3, 2.0))
def test_information_gain_is_the_sum_over_eigenvalues(n: int, seed: int, name: str, noise_variance: float) -> None:
    x = points(n, 2, seed)
    gram = unit_kernel(name, 0.4)(x, x)
    expected = torch.linalg.eigvalsh(gram).clamp_min(0.0).div(noise_variance).log1p().sum()
    torch.testing.assert_close(information_gain(gram, noise_variance), expected, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(2 * information_gain(gram, noise_variance, halved=True), expected, rtol=1e-9, atol=1e-9)


def test_the_path_holds_the_gain_of_every_beginning_for_all_experts() -> None:
    x = points(9, 2, 0)
    gram = torch.stack([unit_kernel(name, 0.4)(x, x) for name in EXPERTS])
    looped = torch.stack([information_gain(gram[:, :t, :t], 0.05) for t in range(1, 10)], dim=-1)
    torch.testing.assert_close(information_gain_path(gram, 0.05), looped, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("known", [False, True])
def test_the_gain_of_a_model_comes_from_its_factors(known: bool) -> None:
    """Ordinary surrogate, noise of its own or known for each row: log det(K + Λ) − log det Λ."""
    x = points(12, 3, 1)
    variance = torch.linspace(0.01, 0.3, 12, dtype=torch.float64) if known else None
    model = Surrogate().fit(x, outcomes(x), variance)
    gp = model.gp
    for m in range(4):
        kernel = unit_kernel(EXPERTS[m], gp.hyper.lengthscale[m], float(gp.hyper.shape[m]))
        root = gp.noise_variance[m].sqrt()
        expected = information_gain(kernel(x, x) / root[:, None] / root, 1.0)
        torch.testing.assert_close(realized_gain(model)[m], expected, rtol=1e-7, atol=0)
        torch.testing.assert_close(realized_gain(model, halved=True)[m], expected / 2, rtol=1e-7, atol=0)


# ---------------------------------------------------------------- β and the norm


def test_beta_by_hand() -> None:
    # ln(M/δ) = 4 and γ = 3: the root is √(2 · 8) = 4
    assert beta(2.0, 0.5, 3.0, 1, math.exp(-4)) == pytest.approx(4.0)
    # ln(M/δ) = 1, so the roots are 4 and 2: first 1 + 4 against 3 + 1, then 1 + 2 against 3 + 1
    norms, gains = torch.tensor([1.0, 3.0]), torch.tensor([6.0, 0.0])
    assert beta(norms, torch.tensor([1.0, 0.5]), gains, 2, 2 / math.e) == pytest.approx(5.0)
    assert beta(norms, 0.5, gains, 2, 2 / math.e) == pytest.approx(4.0)


@settings(max_examples=50, deadline=None)
@given(SIZES, SIZES, SEEDS, NAMES)
def test_the_least_norm_is_below_the_norm_and_reaches_it_at_the_centers(n: int, p: int, seed: int, name: str) -> None:
    """f = Σ a_i k(·, z_i) has norm √(aᵀKa); values at other points can only show less of it."""
    kernel, z, x = unit_kernel(name, 0.2), points(p, 2, seed), points(n, 2, seed + 1)
    a = torch.from_numpy(np.random.default_rng(seed).normal(size=p))
    norm = float((a @ kernel(z, z) @ a).sqrt())
    assert float(rkhs_norm_lower_estimate(kernel(x, x), kernel(x, z) @ a)) <= norm * (1 + 1e-6)
    seen = torch.cat([x, z])
    assert float(rkhs_norm_lower_estimate(kernel(seen, seen), kernel(seen, z) @ a)) == pytest.approx(norm, rel=1e-3)


@pytest.mark.parametrize("scaled", [True, False])
def test_the_norm_of_the_posterior_mean(scaled: bool) -> None:
    """√(wᵀKw) for μ = Σ w_i k(·, x_i), the same in both scalings, and below that of f for noiseless data."""
    kernel, z = unit_kernel("matern52", 0.3), points(4, 2, 8)
    a = torch.tensor([1.0, -2.0, 0.5, 1.0], dtype=torch.float64)
    norm = float((a @ kernel(z, z) @ a).sqrt())
    x = points(15, 2, 9)
    y = kernel(x, z) @ a
    model = FixedSurrogate(("matern52",), lengthscale=0.3, noise_variance=0.05, scaled=scaled).fit(x, y)
    gram = kernel(x, x)
    weights = torch.linalg.solve(gram + 0.05 * torch.eye(15, dtype=torch.float64), y)
    found = float(posterior_norm(model)[0])
    assert found == pytest.approx(float((weights @ gram @ weights).sqrt()), rel=1e-9)
    assert 0.5 * norm < found <= norm


# ---------------------------------------------------------------- Lemma 1


def draw_functions(domain: Tensor, draws: int, seed: int) -> tuple[Tensor, Tensor]:
    """Functions on a finite domain (draws × N) and their exact norms for each expert (draws × M).

    f = Σ a_i k_se(·, z_i) is in every expert's RKHS on the domain, with norm √(fᵀ K_m⁻¹ f) there, scaled so that the
    largest of the four is one: every bound B_m = 1 then holds, and one of them with equality.
    """
    rng = np.random.default_rng(seed)
    coefficients = np.zeros((draws, len(domain)))
    for row in coefficients:
        row[rng.choice(len(domain), 5, replace=False)] = rng.normal(size=5)
    f = torch.from_numpy(coefficients) @ unit_kernel("se", 0.25)(domain, domain)
    kernels = [unit_kernel(name, 0.25)(domain, domain) for name in EXPERTS]
    norms = torch.stack([rkhs_norm_lower_estimate(gram.expand(draws, -1, -1), f) for gram in kernels], dim=-1)
    largest = norms.amax(-1, keepdim=True)
    return f / largest, norms / largest


def failures(
    R: float, noise_variance: float, delta: float, *, factor: float, draws: int, steps: int, seed: int
) -> Tensor:
    """For each draw, whether |μ̄ − f| ≤ factor · β_t σ̄ broke anywhere on the domain at any step.

    Points are chosen where the upper bound is largest, so they depend on the noise seen before, as the lemma allows.
    """
    domain = sobol_points(2, 36, seed)
    f, _ = draw_functions(domain, draws, seed)
    noise_variances = torch.from_numpy(np.random.default_rng(seed + 1).normal(scale=R, size=(draws, steps)))
    rows = torch.arange(draws)
    surrogate = FixedSurrogate(lengthscale=0.25, noise_variance=noise_variance)
    broken = torch.zeros(draws, dtype=torch.bool)
    best = torch.zeros(draws, dtype=torch.long)
    model: ExpertEnsemble | None = None
    for t in range(steps):
        x, y = domain[best][:, None], (f[rows, best] + noise_variances[:, t])[:, None]
        if model is None:
            model = surrogate.fit(x, y)
        else:
            gp = model.gp
            model = surrogate.extend(model, torch.cat([gp.x, x], dim=-2), torch.cat([gp.y, y], dim=-1))
        center, spread = barycenter(*model.expert_moments(domain))
        gain = realized_gain(model).amax(-1).tolist()
        band = torch.tensor([beta(1.0, R, one, len(EXPERTS), delta) for one in gain])[:, None] * spread
        broken |= ((center - f).abs() > factor * band).any(-1)
        best = (center + band).argmax(-1)
    return broken


def test_the_drawn_functions_have_the_norm_they_claim() -> None:
    domain = sobol_points(2, 36, 0)
    f, norms = draw_functions(domain, 20, 0)
    torch.testing.assert_close(norms.amax(-1), torch.ones(20, dtype=torch.float64))
    gram = unit_kernel("matern32", 0.25)(domain, domain)
    direct = (f * torch.linalg.solve(gram, f.T).T).sum(-1).sqrt()
    torch.testing.assert_close(norms[:, EXPERTS.index("matern32")], direct, rtol=1e-8, atol=0)


@pytest.mark.parametrize(("R", "noise_variance"), [(0.1, 0.01), (0.5, 0.05), (0.3, 1.0)])
def test_the_confidence_bound_of_lemma_1_holds_at_the_stated_rate(R: float, noise_variance: float) -> None:
    delta, draws = 0.1, 250
    broken = failures(R, noise_variance, delta, factor=1.0, draws=draws, steps=20, seed=11)
    assert int(broken.sum()) <= delta * draws


def test_the_division_by_lambda_is_needed() -> None:
    """β times the ordinary σ, which is √λ times the paper's, is no confidence bound: the test above can fail."""
    delta, draws, noise_variance = 0.1, 250, 0.01
    broken = failures(0.5, noise_variance, delta, factor=math.sqrt(noise_variance), draws=draws, steps=20, seed=11)
    assert int(broken.sum()) > 2 * delta * draws


def test_above_one_lambda_breaks_the_lemma_and_theory_beta_mends_it() -> None:
    """f = B k(·, ξ), no noise, one observation far away: |μ − f| = B at ξ, and B σ = B/√λ is below it."""
    xi, far = torch.zeros(1, 1, dtype=torch.float64), torch.full((1, 1), 1.0, dtype=torch.float64)
    model = FixedSurrogate(("se",), lengthscale=0.05, noise_variance=4.0).fit(far, torch.zeros(1, dtype=torch.float64))
    mean, sd = (float(value) for value in model.moments(xi))
    assert abs(mean - 1.0) > beta(1.0, 0.0, realized_gain(model), 1, 0.1) * sd
    assert abs(mean - 1.0) <= TheoryBeta(B=1.0, R=0.0)(model) * sd * (1 + 1e-12)


# ---------------------------------------------------------------- β = "theory" in scores and methods


def test_theory_beta_on_the_scaled_surrogate_is_the_formula() -> None:
    x = points(9, 2, 2)
    model = FixedSurrogate(lengthscale=0.4).fit(x, outcomes(x))
    B = (1.0, 2.0, 3.0, 2.5)
    expected = beta(torch.tensor(B), 0.2, realized_gain(model), 4, 0.05)
    assert TheoryBeta(B=B, R=0.2, delta=0.05)(model) == pytest.approx(expected, rel=1e-12)
    assert TheoryBeta(B=B, R=0.2, delta=0.05, halved=True)(model) < expected


def test_the_band_does_not_depend_on_the_scaling() -> None:
    x, query = points(9, 2, 2), points(5, 2, 3)
    rule, bands = TheoryBeta(B=2.0, R=0.2), []
    for scaled in (True, False):
        model = FixedSurrogate(lengthscale=0.4, noise_variance=0.03, scaled=scaled).fit(x, outcomes(x))
        bands.append(rule(model) * model.moments(query)[1])
    torch.testing.assert_close(bands[0], bands[1], rtol=1e-9, atol=0)


def test_the_band_of_a_fitted_surrogate_moves_with_the_units_of_y() -> None:
    x = points(12, 2, 2)
    rule = TheoryBeta(B=2.0, R=0.1)
    one = Surrogate().fit(x, outcomes(x))
    many = TheoryBeta(B=2000.0, R=100.0)(Surrogate().fit(x, 1000 * outcomes(x) + 7))
    assert rule(one) == pytest.approx(many, rel=1e-6)
    assert TheoryBeta()(one) == pytest.approx(TheoryBeta()(Surrogate().fit(x, 1000 * outcomes(x) + 7)), rel=1e-6)


@pytest.mark.parametrize("score", [UCB("theory"), DesignUCB("theory"), BarycenterUCB(TheoryBeta(B=2.0, R=0.1), 0.5)])
def test_scores_become_numbers_at_a_model(score: UCB) -> None:
    x = points(9, 2, 2)
    model = Surrogate().fit(x, outcomes(x))
    found = score.at(model)
    rule = score.beta if isinstance(score.beta, TheoryBeta) else TheoryBeta()
    assert type(found) is type(score)
    assert found.beta == rule(model)
    assert found.at(model) is found
    mean, sd = model.moments(x)
    assert bool(found(mean, sd).isfinite().all())
    with pytest.raises(InvalidValueError, match=r"score\.at"):
        score(mean, sd)


@pytest.mark.parametrize("surrogate", [Surrogate(), FixedSurrogate(lengthscale=0.3)], ids=["fitted", "fixed"])
def test_a_method_with_theory_beta_runs_and_explores_more(surrogate: Surrogate) -> None:
    def run(beta: float | TheoryBeta | str) -> tuple[Optimizer, float]:
        method = Method(surrogate, BarycenterUCB(beta), Empirical(), Expectation())  # type: ignore[arg-type]
        optimizer = Optimizer(Space(design={"x": (0, 1)}, context={"c": (0, 1)}), method, seed=3)
        rng = np.random.default_rng(3)
        designs = []
        for _ in range(10):
            suggestion = optimizer.ask()
            designs.append(suggestion["x"])
            c = rng.uniform(0.4, 0.6)
            optimizer.tell(suggestion, {"c": c}, -10 * (suggestion["x"] - c) ** 2)
        return optimizer, float(np.std(designs[5:]))

    optimizer, wide = run("theory")
    assert wide > run(0.0)[1]
    assert run("theory")[0].ask() == optimizer.ask()
    assert optimizer.ask(2)[1]["x"] <= 1.0
    assert math.isfinite(optimizer.recommend().robust)
