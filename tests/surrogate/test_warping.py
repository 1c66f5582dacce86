"""Warped outcomes against independent references: SciPy's transform, quadrature, finite differences, simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from edrbo import Optimizer, Space
from edrbo.acquisition.acquisition import RobustAcquisition
from edrbo.acquisition.methods import Method
from edrbo.acquisition.risk import Expectation
from edrbo.acquisition.scores import UCB, BarycenterUCB, Score
from edrbo.contexts.distributions import ContextPoints, Empirical
from edrbo.errors import InvalidValueError
from edrbo.optimizer.calibration import leave_one_out
from edrbo.surrogate.ensemble import Surrogate
from edrbo.surrogate.kernels import Hyperparameters
from edrbo.surrogate.scaling import Scaling, Warping
from edrbo.surrogate.warping import POWER_SD, WarpedSurrogate, _log_evidence

pytestmark = [pytest.mark.torch_numeric, pytest.mark.numpy_numeric]

POWERS = (0.0, 0.25, 0.75, 1.0, 1.5, 2.0)


def double(values: list) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def outcomes(n: int = 40, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(3.0 + 5.0 * np.random.default_rng(seed).standard_normal(n))


def peaked(n: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """A function flat almost everywhere with one high, narrow peak: exp of a smooth one."""
    X = torch.from_numpy(np.random.default_rng(seed).random((n, 2)))
    return X, (4.0 * (-8.0 * (X - 0.4).square().sum(-1)).exp()).exp()


@pytest.mark.parametrize("power", POWERS)
def test_the_transform_is_scipys_yeo_johnson_transform(power: float) -> None:
    Y = outcomes()
    warping = Warping.warped(Y, power)
    z = ((Y - Y.mean()) / Y.std(correction=0)).numpy()
    warped = stats.yeojohnson(z, lmbda=power)
    expected = (warped - warped.mean()) / warped.std()
    np.testing.assert_allclose(warping.standardize(Y).numpy(), expected, rtol=1e-10, atol=1e-12)


@given(st.floats(0.0, 2.0), st.floats(-6.0, 6.0), st.integers(0, 5))
def test_value_inverts_standardize_and_slope_is_its_derivative(power: float, y: float, seed: int) -> None:
    warping = Warping.warped(outcomes(seed=seed), power)
    at = warping.standardize(torch.tensor([3.0 + 5.0 * y], dtype=torch.float64))
    assert warping.value(at).item() == pytest.approx(3.0 + 5.0 * y, rel=1e-9, abs=1e-9)
    step = 1e-6 * max(1.0, abs(at.item()))
    by_differences = (warping.value(at + step) - warping.value(at - step)) / (2.0 * step)
    assert warping.slope(at).item() == pytest.approx(by_differences.item(), rel=1e-5)
    back = warping.log_slope(warping.value(at)).exp()
    assert (back * warping.slope(at)).item() == pytest.approx(1.0, rel=1e-8)


def test_a_power_of_one_is_the_linear_scaling() -> None:
    Y = outcomes()
    linear, warping = Scaling.of(Y), Warping.warped(Y, 1.0)
    mean, sd = double([[-0.5, 2.0]]), double([[0.3, 1.2]])
    torch.testing.assert_close(warping.standardize(Y), linear.standardize(Y), rtol=1e-12, atol=1e-12)
    for mine, reference in zip(warping.moments(mean, sd), linear.moments(mean, sd), strict=True):
        torch.testing.assert_close(mine, reference, rtol=1e-12, atol=0)


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize(("mean", "sd"), [(0.3, 0.2), (-1.0, 0.5), (2.0, 0.8), (1.0, 1e-5)])
def test_moments_are_those_of_the_unbent_normal(power: float, mean: float, sd: float) -> None:
    warping = Warping.warped(outcomes(), power)

    def expect(moment: int, around: float) -> float:
        def integrand(u: float) -> float:
            value = warping.value(torch.tensor(mean + sd * u, dtype=torch.float64)).item()
            return float((value - around) ** moment * stats.norm.pdf(u))

        kink = -(mean + warping.shift / warping.scale) / sd  # the transform's second derivative jumps there
        ends = sorted({-9.0, 9.0, min(max(kink, -9.0), 9.0)})
        return sum(integrate.quad(integrand, a, b, epsabs=1e-13, epsrel=1e-11)[0] for a, b in itertools.pairwise(ends))

    center, spread = warping.moments(double([mean]), double([sd]))
    exact = expect(1, 0.0)
    # nine nodes: the kink in the slope at the center costs most
    assert center.item() == pytest.approx(exact, abs=2e-3 * spread.item())
    assert spread.item() == pytest.approx(math.sqrt(expect(2, exact)), rel=1e-2)


@given(st.sampled_from(POWERS), st.floats(-2.0, 2.0), st.floats(0.05, 1.0))
def test_the_pullback_of_the_moments_is_their_derivative(power: float, mean: float, sd: float) -> None:
    warping = Warping.warped(outcomes(), power)
    at = torch.tensor([mean], dtype=torch.float64), torch.tensor([sd], dtype=torch.float64)
    center, spread, pullback = warping.moments_and_pullback(*at)
    torch.testing.assert_close((center, spread), warping.moments(*at), rtol=1e-12, atol=0)
    leaves = tuple(part.clone().requires_grad_() for part in at)
    total = sum((scale * part).sum() for scale, part in zip((0.7, -1.3), warping.moments(*leaves), strict=True))
    reference = torch.autograd.grad(total, leaves)
    found = pullback(double([0.7]), double([-1.3]))
    torch.testing.assert_close(found, reference, rtol=1e-9, atol=1e-9)


def test_the_power_follows_the_data() -> None:
    X, Y = peaked(40)
    up = WarpedSurrogate().fit(X, Y)
    down = WarpedSurrogate().fit(X, -Y)
    assert up.gp.hyper.power < 1.0 < down.gp.hyper.power
    smooth = (3.0 * X).sin().sum(-1)
    assert 0.5 < WarpedSurrogate().fit(X, smooth).gp.hyper.power < 1.5  # neither end of what is tried


def test_warping_foretells_a_peaked_function_better() -> None:
    X, Y = peaked(30)
    new_X, new_Y = peaked(200, seed=1)
    errors, surprise = [], []
    for surrogate in (Surrogate(), WarpedSurrogate()):
        model = surrogate.fit(X, Y)
        center, spread = model.barycenter(*model.moments(new_X))
        errors.append((center - new_Y).square().mean().sqrt().item())
        surprise.append((((center - new_Y) / spread).abs() > 3.0).double().mean().item())
    assert errors[1] < 0.8 * errors[0]
    assert surprise[1] <= surprise[0]


def test_log_evidence_counts_the_change_of_variables() -> None:
    """Density of y = density of the modelled values times |d modelled / dy|: SciPy's, and a numerical Jacobian."""
    X, Y = peaked(12)
    model = WarpedSurrogate().fit(X, Y)
    warping, gp, step = model.scaling, model.gp, 1e-6
    jacobian = (warping.standardize(Y + step) - warping.standardize(Y - step)) / (2.0 * step)
    covariances = (gp.chol @ gp.chol.mT).numpy()
    densities = [
        stats.multivariate_normal(np.full(12, m), K).logpdf(gp.y)
        for m, K in zip(gp.hyper.mean, covariances, strict=True)
    ]
    prior = -0.5 * ((gp.hyper.power - 1.0) / POWER_SD) ** 2
    assert gp.hyper.power != 1.0
    expected = np.mean(densities) + jacobian.log().sum().item() + prior
    assert _log_evidence(model, Y, None) == pytest.approx(expected, abs=1e-5)


def test_appended_rows_equal_a_model_of_all_rows_with_the_same_warping() -> None:
    X, Y = peaked(25)
    surrogate = WarpedSurrogate()
    model = surrogate.fit(X[:20], Y[:20])
    grown = surrogate.extend(model, X, Y)
    rebuilt = surrogate._at(X, Y, None, model.gp.hyper, model.scaling.again(Y))
    points = peaked(7, seed=3)[0]
    for mine, reference in zip(grown.moments(points), rebuilt.moments(points), strict=True):
        torch.testing.assert_close(mine, reference, rtol=1e-7, atol=1e-9)
    assert grown.gp.hyper.power == model.gp.hyper.power


def test_known_noise_is_seen_through_the_transform() -> None:
    Y = peaked(25)[1]
    warping = Warping.warped(Y, 0.25)
    known = torch.full_like(Y, 0.04)
    noise_variance = warping.noise_variance(known, Y)
    assert noise_variance is not None
    step = 1e-5
    slope = (warping.standardize(Y + step) - warping.standardize(Y - step)) / (2.0 * step)
    torch.testing.assert_close(noise_variance, (known * slope.square()).clamp_min(1e-8), rtol=1e-6, atol=1e-12)


def test_integrated_beliefs_agree_with_simulation() -> None:
    """Σ_j w_j f(x, c_j) by drawing the modelled values jointly and unbending each draw."""
    X, Y = peaked(12)
    model = WarpedSurrogate().fit(X, Y)
    x, contexts = double([[0.35]]), double([[0.1], [0.45], [0.8]])
    weights = double([0.2, 0.5, 0.3])
    mean, sd = model.paired_with(contexts).integrated(x, weights)
    joint = torch.cat([x.expand(3, 1), contexts], dim=-1)
    centers, covariances = model.gp.posterior(joint)
    rng = np.random.default_rng(0)
    for m in range(model.num_experts):
        draws = rng.multivariate_normal(centers[m].numpy(), covariances[m].numpy(), size=200_000)
        total = model.scaling.value(torch.from_numpy(draws)) @ weights
        assert mean[m, 0].item() == pytest.approx(total.mean().item(), abs=0.02 * total.std().item())
        assert sd[m, 0].item() == pytest.approx(total.std().item(), rel=0.1)  # correlations are changed a little too


def test_the_integrated_belief_has_the_correlations_of_what_is_modelled() -> None:
    X, Y = peaked(12)
    model = WarpedSurrogate().fit(X, Y)
    x, contexts = double([[0.35], [0.8]]), double([[0.1], [0.45], [0.8]])
    own = double([[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]])
    paired = model.paired_with(contexts)
    mean, sd = paired.integrated(x, own)
    for i, weights in enumerate(own):
        centers, covariances = model.gp.posterior(torch.cat([x[i].expand(3, 1), contexts], dim=-1))
        modelled = covariances.diagonal(dim1=-2, dim2=-1).sqrt()
        center, spread = model.scaling.moments(centers, modelled)
        stretched = weights * spread / modelled
        variance = (stretched.unsqueeze(-2) @ covariances @ stretched.unsqueeze(-1)).squeeze((-2, -1))
        torch.testing.assert_close(mean[:, i], center @ weights, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(sd[:, i], variance.sqrt(), rtol=1e-6, atol=1e-10)
        alone = paired.integrated(x[i : i + 1], weights)
        torch.testing.assert_close(sd[:, i : i + 1], alone[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("score", [BarycenterUCB(), UCB(1.5, integrated=True)], ids=["each", "mean"])
def test_the_acquisitions_gradient_is_that_of_autograd_and_of_differences(score: Score) -> None:
    X, Y = peaked(25)
    model = WarpedSurrogate().fit(X, Y)
    points = ContextPoints(double([[0.2], [0.7]]), double([0.4, 0.6]), X.new_zeros(0, 1))
    acquisition = RobustAcquisition(model, score, points, Expectation())
    x = double([[0.3], [0.62], [0.9]])
    value, gradient = acquisition.value_and_gradient(x)
    leaf = x.clone().requires_grad_()
    (reference,) = torch.autograd.grad(acquisition.evaluate(leaf).sum(), leaf)
    torch.testing.assert_close(value, acquisition.evaluate(x), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(gradient, reference, rtol=1e-8, atol=1e-8)
    step = 1e-6
    difference = (acquisition.evaluate(x + step) - acquisition.evaluate(x - step)) / (2.0 * step)
    torch.testing.assert_close(gradient[:, 0], difference, rtol=1e-4, atol=1e-5)


def test_suggestions_do_not_change_with_the_units_of_the_outcome() -> None:
    def run(scale: float, shift: float) -> list[float]:
        space = Space(design={"x": (0, 1)}, context={"c": (0, 1)})
        method = Method(WarpedSurrogate(), BarycenterUCB(), Empirical(), Expectation())
        optimizer = Optimizer(space, method, seed=1)
        rng, designs = np.random.default_rng(0), []
        for _ in range(9):
            suggestion = optimizer.ask()
            c = float(rng.random())
            value = math.exp(3.0 * math.sin(5.0 * suggestion["x"]) * c)
            optimizer.tell(suggestion, context=[c], value=shift + scale * value)
            designs.append(suggestion["x"])
        return designs

    np.testing.assert_allclose(run(1.0, 0.0), run(1000.0, -50.0), atol=1e-4)


def test_leave_one_out_is_in_units_of_y() -> None:
    X, Y = peaked(25)
    found = leave_one_out(WarpedSurrogate().fit(X, Y))
    np.testing.assert_allclose(found.y, Y.numpy(), rtol=1e-9)
    assert found.skill > 0.5


def test_the_power_survives_json_and_old_records_have_none() -> None:
    X, Y = peaked(20)
    hyper = WarpedSurrogate().fit(X, Y).gp.hyper
    record = hyper.to_dict()
    assert Hyperparameters.from_dict(record).power == hyper.power != 1.0
    del record["power"]
    assert Hyperparameters.from_dict(record).power == 1.0


def test_what_needs_gaussian_outcomes_is_refused() -> None:
    X, Y = peaked(20)
    model = WarpedSurrogate().fit(X, Y)
    with pytest.raises(InvalidValueError, match="warped"):
        UCB("theory").at(model)
    with pytest.raises(InvalidValueError):
        Warping.warped(Y, 2.5)


def test_a_stored_optimizer_goes_on_exactly_as_the_first() -> None:
    """With everything that conditions the model in units of its own: failures, missing contexts, pending designs."""
    optimizer = Optimizer(Space(design={"x": (0, 1)}, context={"c": (0, 1)}), "edrbo-warped", seed=2)
    rng = np.random.default_rng(0)
    for i in range(14):
        suggestion = optimizer.ask()
        c = float(rng.random())
        value = math.exp(4.0 * math.sin(5.0 * suggestion["x"]) * c)
        if i == 6:
            optimizer.tell(suggestion, context=[c], failed=True)
        else:
            optimizer.tell(suggestion, context=None if i == 9 else [c], value=value)
    optimizer.ask()  # stays pending
    assert optimizer.model is not None
    power = optimizer.model.gp.hyper.power
    assert power != 1.0
    again = Optimizer.from_json(optimizer.to_json())
    assert again.ask(3) == optimizer.ask(3)
    assert again.recommend() == optimizer.recommend()
    assert again.model is not None
    assert again.model.gp.hyper.power == power


def test_a_pending_design_shrinks_the_uncertainty_and_moves_no_mean() -> None:
    X, Y = peaked(25)
    model = WarpedSurrogate().fit(X, Y)
    point = double([[0.9, 0.1]])
    center = model.barycenter(*model.gp.moments(point))[0]
    after = model.with_modelled(point, center, double([1e-4]))
    before_sd = model.barycenter(*model.gp.moments(point))[1]
    assert after.barycenter(*after.gp.moments(point))[1].item() < 0.5 * before_sd.item()
    assert after.barycenter(*after.gp.moments(point))[0].item() == pytest.approx(center.item(), abs=0.05)
