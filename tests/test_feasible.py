"""Objectives with the risk of failing taken off: slopes, gradients, approximations, and the best design that may be
used."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from edrbo.acquisition.acquisition import RobustAcquisition
from edrbo.acquisition.objective import FunctionObjective, Objective
from edrbo.acquisition.penalties import Bar, FailurePenalty, LimitPenalty, LogRisk, Risk, penalize_failure
from edrbo.acquisition.risk import Expectation
from edrbo.acquisition.scores import BarycenterUCB
from edrbo.contexts.distributions import ContextPoints
from edrbo.surrogate.ensemble import Surrogate
from edrbo.surrogate.feasibility import Feasibility, fit_feasibility

RISKS: dict[str, Risk] = {"log": LogRisk(0.7, optimism=1.0), "bar": Bar(0.8, 0.3, 5.0), "sure": Bar(1.0, 0.3, 5.0)}


def uniform(*size: int, seed: int) -> Tensor:
    return torch.rand(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def acquisition() -> RobustAcquisition:
    inputs = uniform(14, 3, seed=0)
    model = Surrogate().fit(inputs, torch.sin(6.0 * inputs).sum(-1))
    atoms = uniform(30, 1, seed=1)
    points = ContextPoints(atoms, torch.full((30,), 1 / 30, dtype=torch.float64), atoms[:0])
    return RobustAcquisition(model, BarycenterUCB(), points, Expectation())


def wall() -> Feasibility:
    x = uniform(25, 2, seed=2)
    none = torch.zeros(1, 0, dtype=torch.float64)
    return fit_feasibility(x, x[:, :0], x.sum(-1) < 1.0, none, none.new_ones(1))


@pytest.mark.parametrize("name", RISKS)
def test_a_risk_knows_its_slope(name: str) -> None:
    risk = RISKS[name]
    p = torch.linspace(0.01, 0.99, 99, dtype=torch.float64)[torch.arange(99) != 79]  # without the kink at 0.8
    slope = (risk.penalty(p + 1e-7) - risk.penalty(p - 1e-7)) / 2e-7
    assert torch.allclose(slope, risk.slope(p), rtol=1e-5)
    assert bool((risk.slope(p) > 0).all())
    assert float(risk.penalty(p).max()) <= 0.0


@pytest.mark.parametrize("name", RISKS)
def test_both_ways_to_the_gradient_agree_on_every_approximation(name: str) -> None:
    x = uniform(10, 2, seed=3)
    for level in penalize_failure(acquisition().approximations(), wall(), RISKS[name]):
        assert isinstance(level, FailurePenalty)
        value, gradient = level.value_and_gradient(x)
        leaf = x.clone().requires_grad_()
        by_graph = level(leaf)
        (automatic,) = torch.autograd.grad(by_graph.sum(), leaf)
        assert torch.allclose(value, by_graph.detach(), atol=1e-10)
        assert torch.allclose(gradient, automatic, atol=1e-8)
        step = torch.tensor([1e-6, 0.0], dtype=torch.float64)
        with torch.no_grad():
            apart = (level(x + step) - level(x - step)) / 2e-6
        assert torch.allclose(apart, gradient[:, 0], atol=1e-4)


def test_approximations_that_are_one_stay_one() -> None:
    """The maximizer climbs a approximation twice unless it can see that two are the same."""
    bottom, top = acquisition().approximations()[0], acquisition().approximations()[-1]
    rough, fair, best = penalize_failure([bottom, top, top], wall(), LogRisk(1.0))
    assert fair is best
    assert rough is not best


def test_contexts_are_refined_under_a_risk_too() -> None:
    class Refined(Objective):
        expensive = True
        needs_context_grid = True

        def __init__(self, near: Objective | None = None) -> None:
            self.nearer = near or self

        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return x.sum(-1)

        def near(self, x: torch.Tensor) -> Objective:
            return self.nearer

    plain, refined = Refined(), Refined(Refined())
    x = torch.zeros(1, 2, dtype=torch.float64)
    same, other = (FailurePenalty(one, wall(), LogRisk(1.0)) for one in (plain, refined))
    assert same.needs_context_grid
    assert same.expensive
    assert not FailurePenalty(FunctionObjective(torch.sum), wall(), LogRisk(1.0)).expensive
    several = LimitPenalty(((1.0, FunctionObjective(torch.sum)),), ((2.0, refined),))
    assert several.expensive
    assert several.needs_context_grid
    assert same.near(x) is same
    assert other.near(x).objective is refined.nearer
