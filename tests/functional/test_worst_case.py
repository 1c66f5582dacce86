"""What every worst case must satisfy, and that each one is the optimum a convex solver finds."""

from __future__ import annotations

from collections.abc import Callable

import convex
import numpy as np
import pytest
import torch
from convex import random_points, random_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from edrbo.acquisition.risk import (
    KL,
    MMD,
    ChiSquare,
    CVaRFunctional,
    Expectation,
    Minimum,
    TotalVariation,
    Wasserstein,
    WorstCaseFunctional,
)
from edrbo.contexts.distributions import ContextPoints
from edrbo.errors import InvalidValueError

pytestmark = [pytest.mark.torch_numeric, pytest.mark.numpy_numeric]

Case = tuple[Callable[[float], WorstCaseFunctional], Callable[[float], convex.Constraints], bool]

# name: (functional of the radius, constraints of the radius, may mass go anywhere?)
BALLS: dict[str, Case] = {
    "tv": (TotalVariation, convex.total_variation, True),
    "kl": (KL, convex.kullback_leibler, False),
    "chi2": (ChiSquare, convex.chi_square, False),
    "mmd": (MMD, lambda r: convex.discrepancy(r, 0.2), True),
    "w1": (lambda r: Wasserstein(r, order=1), lambda r: convex.transport(r, 1), True),
    "w2": (lambda r: Wasserstein(r, order=2), lambda r: convex.transport(r, 2), True),
}
balls = pytest.mark.parametrize("ball", BALLS)


def least(values: torch.Tensor, points: ContextPoints, anywhere: bool) -> torch.Tensor:
    """The minimum over all points, or over the atoms with mass."""
    return values.amin(-1) if anywhere else values[..., points.mass > 0].amin(-1)


def assert_distribution(worst: torch.Tensor) -> None:
    assert bool((worst >= 0).all())
    torch.testing.assert_close(worst.sum(-1), torch.ones(worst.shape[:-1], dtype=worst.dtype), rtol=0, atol=1e-12)
    assert not worst.requires_grad


@balls
@pytest.mark.parametrize("radius", [1e-3, 0.05, 0.3, 0.9, 1.7])
@pytest.mark.parametrize(("dim", "zeros"), [(1, 0), (2, 3)])
def test_agrees_with_a_convex_solver(ball: str, radius: float, dim: int, zeros: int) -> None:
    functional, constraints, _ = BALLS[ball]
    points = random_points(7 + dim, atoms=9, support=5, dim=dim, zeros=zeros)
    values = random_rows(dim, 4, 14)
    expected = convex.solve(values, points, constraints(radius))
    np.testing.assert_allclose(functional(radius)(values, points).numpy(), expected, rtol=0, atol=1e-6)


@balls
@pytest.mark.parametrize("radius", [0.05, 0.4])
def test_degenerate_rows_agree_with_a_convex_solver(ball: str, radius: float) -> None:
    functional, constraints, _ = BALLS[ball]
    points = random_points(3, atoms=6, support=2, zeros=1)
    values = torch.tensor(
        [
            [2.0] * 8,  # constant
            [1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0],  # two values
            [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],  # the minimum is where there is no mass
            [5.0, 4.0, -1.0, 3.0, -1.0, 2.0, -1.0, 0.0],  # tied minimum
            [0.0, 1e-13, 0.0, 1.0, 1e-13, 1.0, 1.0, 1.0],  # nearly tied
        ],
        dtype=torch.float64,
    )
    expected = convex.solve(values, points, constraints(radius))
    np.testing.assert_allclose(functional(radius)(values, points).numpy(), expected, rtol=0, atol=1e-6)


@balls
def test_distribution_on_a_single_atom(ball: str) -> None:
    functional, constraints, _ = BALLS[ball]
    spread = random_points(5, atoms=6, support=0)
    points = ContextPoints(spread.atoms, torch.eye(6, dtype=torch.float64)[2], spread.support)
    values = random_rows(1, 3, 6)
    expected = convex.solve(values, points, constraints(0.3))
    np.testing.assert_allclose(functional(0.3)(values, points).numpy(), expected, rtol=0, atol=1e-6)


@balls
@pytest.mark.parametrize("radius", [0.0, 1e-9, 0.2, 1.0, 1e6])
def test_worst_case_is_a_distribution_that_gives_the_value(ball: str, radius: float) -> None:
    functional = BALLS[ball][0](radius)
    points = random_points(11, atoms=20, support=8, dim=2, zeros=4)
    values = torch.cat([random_rows(2, 30, 28), torch.zeros(1, 28, dtype=torch.float64)])
    worst = functional.worst_case(values, points)
    assert_distribution(worst)
    torch.testing.assert_close(functional(values, points), (worst * values).sum(-1), rtol=0, atol=0)


@pytest.mark.parametrize("radius", [0.03, 0.3, 1.1])
def test_worst_case_lies_in_its_ball(radius: float) -> None:
    points = random_points(4, atoms=15, support=0, zeros=2)
    values, w = random_rows(8, 50, 15), points.weights
    some = w > 0
    tv = TotalVariation(radius).worst_case(values, points)
    assert float((tv - w).abs().sum(-1).max()) <= radius + 1e-12
    kl = KL(radius).worst_case(values, points)[:, some]
    assert float(torch.special.xlogy(kl, kl / w[some]).sum(-1).max()) <= radius + 1e-9
    chi = ChiSquare(radius).worst_case(values, points)[:, some]
    assert float(((chi - w[some]).square() / w[some]).sum(-1).max()) <= radius + 1e-9
    away = MMD(radius).worst_case(values, points) - w
    kernel = torch.exp(-0.5 * ((points.atoms - points.atoms.T) / 0.2).square())
    assert float((away @ kernel * away).sum(-1).max()) <= radius**2 + 1e-9


@balls
def test_radius_zero_is_the_expectation_and_a_large_one_the_minimum(ball: str) -> None:
    functional, _, anywhere = BALLS[ball]
    points = random_points(6, atoms=12, support=6, dim=2, zeros=2)
    values = random_rows(5, 40, 18)
    torch.testing.assert_close(functional(0.0)(values, points), Expectation()(values, points), rtol=0, atol=1e-12)
    torch.testing.assert_close(functional(1e9)(values, points), least(values, points, anywhere), rtol=0, atol=1e-12)


@balls
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), scale=st.floats(1e-3, 1e4), shift=st.floats(-1e3, 1e3))
def test_properties(ball: str, seed: int, scale: float, shift: float) -> None:
    functional, _, anywhere = BALLS[ball]
    points = random_points(seed, atoms=10, support=4, dim=1 + seed % 2, zeros=seed % 4)
    rows = random_rows(seed + 1, 6, 14)
    radii = [0.0, 1e-4, 0.02, 0.1, 0.5, 1.0, 1.9, 4.0, 1e3]
    by_radius = torch.stack([functional(r)(rows, points) for r in radii])
    assert float(by_radius.diff(dim=0).max()) <= 1e-8  # monotone in the radius
    assert bool((by_radius >= least(rows, points, anywhere) - 1e-12).all())
    at = functional(0.1)
    values = at(rows, points)
    moved = at(shift + scale * rows, points)
    torch.testing.assert_close(moved, shift + scale * values, rtol=1e-9, atol=1e-7 * scale)
    middle = at((rows[:3] + rows[3:]) / 2, points)  # concave in the scores
    assert bool((middle >= (values[:3] + values[3:]) / 2 - 1e-9).all())


@balls
def test_batched_is_looped(ball: str) -> None:
    functional = BALLS[ball][0](0.25)
    points = random_points(9, atoms=16, support=5, zeros=3)
    values = random_rows(3, 24, 21)
    values[5], values[11, :4] = 1.0, values[11].min()
    looped = torch.stack([functional(row, points) for row in values])
    torch.testing.assert_close(functional(values, points), looped, rtol=0, atol=1e-11)
    torch.testing.assert_close(functional(values.reshape(2, 3, 4, 21), points).reshape(-1), looped, rtol=0, atol=1e-11)


@balls
def test_the_same_call_gives_the_same_bits(ball: str) -> None:
    functional = BALLS[ball][0](0.25)
    points, values = random_points(9, atoms=16, support=5), random_rows(3, 24, 21)
    assert torch.equal(functional(values, points), functional(values.clone(), points))


@pytest.mark.parametrize("name", [*BALLS, "cvar"])
@pytest.mark.parametrize("radius", [0.02, 0.3])
def test_gradient_is_that_of_the_value(name: str, radius: float) -> None:
    functional = CVaRFunctional(radius) if name == "cvar" else BALLS[name][0](radius)
    points = random_points(12, atoms=10, support=4)
    values = random_rows(6, 5, 14).requires_grad_()
    (gradient,) = torch.autograd.grad(functional(values, points).sum(), values)
    step = 1e-5
    numeric = torch.zeros_like(values)
    for k in range(values.shape[1]):
        bump = step * torch.eye(values.shape[1], dtype=torch.float64)[k]
        with torch.no_grad():
            numeric[:, k] = (functional(values + bump, points) - functional(values - bump, points)) / (2 * step)
    torch.testing.assert_close(gradient, numeric, rtol=0, atol=2e-5)


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("radius", [0.02, 0.3, 0.8])
def test_mmd_does_not_depend_on_the_rows_solved_before(dim: int, radius: float) -> None:
    """A walk from row to row, warm-started, against a solver without memory for every row."""
    axis = torch.linspace(0, 1, 60 if dim == 1 else 8, dtype=torch.float64)
    grid = torch.cartesian_prod(*[axis] * dim).reshape(-1, dim)
    points = ContextPoints(grid, torch.softmax(-8 * (grid - 0.4).abs().sum(-1), 0), grid[:0])
    functional = MMD(radius)
    for k in range(12):
        shift = torch.tensor([0.0, 0.5, 1.0])[:, None, None] + 0.03 * k**2  # steps from small to large
        values = (torch.sin(7 * (grid + shift)) + (grid - shift / 4).square()).sum(-1)
        fresh = ContextPoints(points.atoms, points.weights, points.support)
        expected = functional.worst_case(values, fresh)
        torch.testing.assert_close(functional.worst_case(values, points), expected, rtol=0, atol=1e-7)
        torch.testing.assert_close(functional(values, points), functional(values, fresh), rtol=0, atol=1e-10)


def test_minimum_and_expectation() -> None:
    points = random_points(1, atoms=4, support=2)
    values = random_rows(0, 3, 6)
    torch.testing.assert_close(Minimum()(values, points), values.amin(-1), rtol=0, atol=0)
    torch.testing.assert_close(Expectation()(values, points), values[:, :4] @ points.weights)
    for functional in (Minimum(), Expectation()):
        assert_distribution(functional.worst_case(values, points))


def test_wasserstein_uses_the_support_only_within_reach() -> None:
    points = ContextPoints(*(torch.tensor(t, dtype=torch.float64) for t in ([[0.0]], [1.0], [[0.1], [0.5]])))
    values = torch.tensor([[1.0, 0.9, -9.0]], dtype=torch.float64)
    # W1: one fifth of the mass reaches 0.5; W2: (0.1/0.5)² of it
    torch.testing.assert_close(Wasserstein(0.1, 1)(values, points), torch.tensor([0.8 - 1.8], dtype=torch.float64))
    torch.testing.assert_close(Wasserstein(0.1, 2)(values, points), torch.tensor([0.96 - 0.36], dtype=torch.float64))


@balls
@pytest.mark.parametrize("radius", [-0.1, float("nan"), float("inf")])
def test_bad_radius(ball: str, radius: float) -> None:
    with pytest.raises(InvalidValueError, match="radius"):
        BALLS[ball][0](radius)


def test_bad_settings() -> None:
    with pytest.raises(InvalidValueError, match="order"):
        Wasserstein(0.1, order=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="lengthscale"):
        MMD(0.1, lengthscale=0.0)
