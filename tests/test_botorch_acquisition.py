"""Our acquisition at BoTorch's interface: its contract, stock models, and what happens without BoTorch."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from botorch.models import ModelListGP, SingleTaskGP
from botorch.optim import optimize_acqf
from torch import Tensor

import edrbo
from edrbo.acquisition import acquisition as engine
from edrbo.acquisition.risk import (
    CVaRFunctional,
    Expectation,
    Functional,
    Minimum,
    TotalVariation,
    Wasserstein,
    WassersteinLipschitz,
)
from edrbo.acquisition.scores import UCB, BarycenterUCB, Score
from edrbo.acquisition.search.maximizer import maximize
from edrbo.contexts.distributions import ContextPoints, box_points
from edrbo.errors import InvalidValueError
from edrbo.integrations.botorch import Ensemble, RobustAcquisition, StockModel
from edrbo.space import Space
from edrbo.surrogate.ensemble import Surrogate, single_gp

FUNCTIONALS: dict[str, Functional] = {
    "expectation": Expectation(),
    "minimum": Minimum(),
    "total variation": TotalVariation(0.4),
    "wasserstein": Wasserstein(0.1),
    "lipschitz": WassersteinLipschitz(0.2),
}
BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)


def uniform(*size: int, seed: int) -> Tensor:
    return torch.rand(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def data(n: int = 14, d: int = 3, seed: int = 3) -> tuple[Tensor, Tensor]:
    inputs = uniform(n, d, seed=seed)
    return inputs, 10.0 + 3.0 * (torch.sin(6.0 * inputs).sum(-1) + inputs[:, 0] * inputs[:, -1])


def context_distribution(support: int = 5) -> ContextPoints:
    weights, zero = uniform(5, seed=3) + 0.1, torch.zeros(1, dtype=torch.float64)
    return ContextPoints(uniform(5, 1, seed=4), weights / weights.sum(), box_points(zero, zero + 1.0, support))


def stock_model() -> SingleTaskGP:
    inputs, y = data(10, seed=14)
    return SingleTaskGP(inputs, y[:, None]).eval()


def test_it_keeps_botorchs_contract() -> None:
    acquisition = RobustAcquisition(Surrogate().fit(*data()), BarycenterUCB(), context_distribution(0), Expectation())
    assert edrbo.RobustAcquisition is RobustAcquisition
    assert isinstance(acquisition.model, Ensemble)
    x = uniform(2, 5, 1, 2, seed=11)
    with torch.no_grad():
        values = acquisition(x)
        assert values.shape == (2, 5)
        torch.testing.assert_close(values.reshape(-1), acquisition.engine.evaluate(x.reshape(-1, 2)))
        assert acquisition(x[0, 0]).shape == (1,)
    with pytest.raises(AssertionError, match="q=1"):
        acquisition(uniform(3, 2, 2, seed=12))


def test_botorch_optimizes_it() -> None:
    acquisition = RobustAcquisition(
        Ensemble(Surrogate().fit(*data())), BarycenterUCB(), context_distribution(0), Expectation()
    )
    torch.manual_seed(0)
    _, value = optimize_acqf(acquisition, BOUNDS, q=1, num_restarts=2, raw_samples=32, options={"seed": 0})
    with torch.no_grad():
        assert float(value) >= float(acquisition(uniform(500, 1, 2, seed=16)).max()) - 1e-6


# ---------------------------------------------------------------- stock models


@pytest.mark.parametrize("name", FUNCTIONALS)
def test_gradients_on_a_stock_model(name: str) -> None:
    acquisition = RobustAcquisition(stock_model(), UCB(), context_distribution(), FUNCTIONALS[name])
    x = uniform(3, 2, seed=15)
    at = x.clone().requires_grad_()
    values = acquisition(at.unsqueeze(1))
    (gradient,) = torch.autograd.grad(values.sum(), at)
    value, by_pullback = acquisition.engine.value_and_gradient(x)
    torch.testing.assert_close(value, values.detach(), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(by_pullback, gradient, rtol=1e-7, atol=1e-8)
    step = 1e-5
    for k in range(2):
        moved = x.repeat(2, 1, 1)
        moved[0, 1, k] += step
        moved[1, 1, k] -= step
        with torch.no_grad():
            up, down = (float(acquisition(part.unsqueeze(1)).sum()) for part in moved)
        assert float(gradient[1, k]) == pytest.approx((up - down) / (2 * step), rel=1e-4, abs=1e-4)


def test_a_stock_model_gives_the_expected_score() -> None:
    model, points, x = stock_model(), context_distribution(0), uniform(3, 2, seed=15)
    with torch.no_grad():
        values = RobustAcquisition(model, UCB(), points, Expectation())(x.unsqueeze(1))
        for i in range(3):
            posterior = model.posterior(torch.cat([x[i].expand(5, 2), points.atoms], dim=-1))
            scores = posterior.mean.squeeze(-1) + 1.5 * posterior.variance.squeeze(-1).sqrt()
            assert float(values[i]) == pytest.approx(float(scores @ points.weights), rel=1e-6)


def test_a_stock_model_gives_the_integrated_score() -> None:
    model, points, x = stock_model().requires_grad_(False), context_distribution(0), uniform(6, 2, seed=9)
    acquisition = RobustAcquisition(model, UCB(1.5, integrated=True), points, Expectation())
    found, gradient = acquisition.engine.value_and_gradient(x)
    for i, row in enumerate(x):
        posterior = model.posterior(torch.cat([row.expand(len(points.atoms), -1), points.atoms], dim=-1))
        mean = points.weights @ posterior.mean.squeeze(-1)
        variance = points.weights @ posterior.covariance_matrix @ points.weights
        assert float(found[i]) == pytest.approx(float(mean + 1.5 * variance.sqrt()), abs=1e-8)
    step = 1e-5 * torch.eye(2, dtype=torch.float64)
    for k in range(2):
        up, down = (acquisition.engine.evaluate(x + sign * step[k]) for sign in (1.0, -1.0))
        torch.testing.assert_close(gradient[:, k], (up - down) / 2e-5, rtol=1e-4, atol=1e-5)
    mean, worst = (
        RobustAcquisition(model, UCB(0.0, integrated=True), points, functional)(x.unsqueeze(1))
        for functional in (Expectation(), CVaRFunctional(0.5))
    )
    assert bool((worst < mean).all())


@pytest.mark.parametrize(
    ("name", "integrated"),
    [(name, integrated) for name, f in FUNCTIONALS.items() for integrated in (False, True)[: 1 + f.locally_linear]],
)
def test_both_ways_to_one_gp_agree(name: str, integrated: bool) -> None:
    """One expert through the engine, and the same expert seen from outside as some BoTorch model."""
    functional, x = FUNCTIONALS[name], uniform(4, 2, seed=17)
    experts = single_gp().fit(*data())
    score: Score = UCB(integrated=integrated)
    inside, outside = (
        engine.RobustAcquisition(posteriors, score, context_distribution(), functional)
        for posteriors in (experts, StockModel(Ensemble(experts)))
    )
    for a, b in zip(inside.value_and_gradient(x), outside.value_and_gradient(x), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_our_maximizer_takes_a_stock_model_too() -> None:
    acquisition = RobustAcquisition(stock_model(), UCB(), context_distribution(0), Expectation())
    space = Space(design={"a": (0, 1), "b": (0, 1)})
    found = maximize(acquisition.engine.approximations(), space, seed=0)
    with torch.no_grad():
        assert found.value >= float(acquisition(uniform(2000, 1, 2, seed=18)).max()) - 1e-3


def test_a_model_of_several_outcomes_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="2"):
        RobustAcquisition(ModelListGP(stock_model(), stock_model()), UCB(), context_distribution(0), Expectation())


# ---------------------------------------------------------------- without BoTorch


def test_without_botorch_all_else_works_and_the_error_says_what_to_install() -> None:
    code = """
import sys
sys.modules["botorch"] = sys.modules["gpytorch"] = None
import edrbo
space = edrbo.Space({"x": (0, 1)}, {"c": (0, 1)})
result = edrbo.maximize(lambda design: ({"c": 0.5}, -(design["x"] - 0.3) ** 2), space, 7)
assert abs(result.recommendation.design["x"] - 0.3) < 0.2
for missing, there in (("botorch", "gpytorch"), ("gpytorch", "botorch")):
    sys.modules[missing] = None
    sys.modules.pop(there, None)
    for name in ("Ensemble", "RobustAcquisition"):
        try:
            getattr(edrbo, name)
        except edrbo.errors.MissingExtraError as problem:
            assert "edrbo[botorch]" in str(problem)
        else:
            raise AssertionError(f"{name} without {missing}")
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
