"""The two functionals that bound a worst case instead of solving it: Lipschitz and MMD midpoint."""

from __future__ import annotations

import math

import pytest
import torch
from convex import random_points, random_rows
from torch import Tensor

from edrbo.acquisition.risk import Expectation, MMDMidpoint, Wasserstein, WassersteinLipschitz
from edrbo.contexts.distributions import ContextPoints
from edrbo.errors import InvalidValueError

pytestmark = [pytest.mark.torch_numeric, pytest.mark.numpy_numeric]


def midpoint_by_hand(row: list[float], points: ContextPoints, radius: float) -> float:
    """The formula of one row in plain Python."""
    w, c = points.mass.tolist(), points.all.tolist()
    kernel = [
        [math.exp(-sum((a - b) ** 2 for a, b in zip(p, q, strict=True)) / (2 * 0.2**2)) + 1e-8 * (p is q) for q in c]
        for p in c
    ]
    low = min(row)
    k = row.index(low)
    d = [float(i == k) - w[i] for i in range(len(w))]
    reach = math.sqrt(sum(d[i] * kernel[i][j] * d[j] for i in range(len(w)) for j in range(len(w))))
    mean = sum(a * b for a, b in zip(w, row, strict=True))
    if radius >= reach:
        return low
    spread = math.sqrt(max(sum(v * v for v in row) - sum(row) ** 2 / len(row), 0.0))
    rate = (low - mean) / reach
    if radius * spread <= mean - low:
        return mean + radius * (rate - spread) / 2
    return (mean + radius * rate + low) / 2


@pytest.mark.parametrize("radius", [0.0, 0.01, 0.05, 0.2, 0.6, 0.9, 1.3, 5.0])
def test_midpoint_formula_row_by_row(radius: float) -> None:
    points = random_points(4, atoms=12, support=3, dim=2, zeros=2)
    values = torch.cat([random_rows(1, 20, 15), torch.full((1, 15), 2.5, dtype=torch.float64)])
    expected = [midpoint_by_hand(row, points, radius) for row in values.tolist()]
    found = MMDMidpoint(radius)(values, points)
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-9)


def test_midpoint_covers_all_three_cases_in_one_batch() -> None:
    """A batch whose rows fall on different sides of ε′ and ε*, each as when it is alone."""
    grid = torch.linspace(0, 1, 20, dtype=torch.float64)[:, None]
    points = ContextPoints(grid, torch.softmax(-20 * (grid[:, 0] - 0.3).abs(), 0), grid[:0])
    rows = torch.stack([-torch.exp(-(((grid[:, 0] - a) / b) ** 2)) for a, b in [(0.3, 0.1), (0.9, 0.02), (0.9, 9.0)]])
    rows[2] = rows[2] + 1e-3 * torch.arange(20)
    radius = 0.6
    batch = MMDMidpoint(radius)(rows, points)
    torch.testing.assert_close(batch, torch.stack([MMDMidpoint(radius)(row, points) for row in rows]))
    at_minimum = batch == rows.amin(-1)
    assert at_minimum.tolist() == [True, False, False]


def test_midpoint_gradient_and_constant_rows() -> None:
    points = random_points(4, atoms=12, support=0)
    values = random_rows(1, 8, 12)
    values[0], values[1] = 1.0, values[1] * 1e-3
    for radius in (0.0, 0.05, 0.4, 3.0):
        functional = MMDMidpoint(radius)
        leaf = values.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(functional(leaf, points).sum(), leaf)
        assert bool(gradient.isfinite().all())
        assert torch.autograd.gradcheck(lambda v, f=functional: f(v, points), leaf[2:].detach().requires_grad_())


def test_midpoint_of_a_distribution_on_its_minimum() -> None:
    points = ContextPoints(
        torch.tensor([[0.2], [0.7]], dtype=torch.float64),
        torch.tensor([1.0, 0.0], dtype=torch.float64),
        torch.zeros(0, 1, dtype=torch.float64),
    )
    values = torch.tensor([[1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    out = MMDMidpoint(0.0)(values, points)
    (gradient,) = torch.autograd.grad(out.sum(), values)
    assert out.tolist() == [1.0]
    assert gradient.tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("grid_points", [None, 1024])
@pytest.mark.parametrize("radius", [0.0, 0.01, 0.05, 0.2, 0.6, 0.9, 5.0])
def test_midpoint_slopes_are_those_of_autograd(radius: float, grid_points: int | None) -> None:
    points = random_points(4, atoms=12, support=3, dim=2, zeros=2)
    functional, values = MMDMidpoint(radius, grid_points=grid_points), random_rows(1, 20, 15).requires_grad_()
    expected = functional(values, points)
    (by_values,) = torch.autograd.grad(expected.sum(), values)
    value, slopes, none = functional.value_and_slopes(values.detach(), points)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(slopes, by_values, rtol=1e-12, atol=1e-12)
    assert none is None
    assert MMDMidpoint(radius).value_and_slopes(torch.ones(15, dtype=torch.float64), points)[0].shape == ()


def test_midpoint_slopes_cover_all_three_cases() -> None:
    """Else the test above says little: rows below ε′, between ε′ and ε₁, and beyond."""
    points = random_points(4, atoms=12, support=3, dim=2, zeros=2)
    values = random_rows(1, 20, 15)
    slopes = [MMDMidpoint(radius).value_and_slopes(values, points)[1] for radius in (0.01, 0.6, 5.0)]
    sizes = {int(size) for some in slopes for size in (some != 0).sum(-1)}
    assert {1, 15} < sizes  # m hangs on one score, S on all of them, and V₀ on those with mass


def test_a_constant_row_has_finite_slopes() -> None:
    points = random_points(4, atoms=12, support=0)
    row = torch.ones(1, 12, dtype=torch.float64)
    for radius in (0.0, 0.05, 3.0):
        value, slopes, _ = MMDMidpoint(radius).value_and_slopes(row, points)
        assert value.tolist() == pytest.approx([1.0])
        assert float(slopes.sum()) == pytest.approx(1.0)


def test_lipschitz_slopes_are_those_of_autograd() -> None:
    points, functional = random_points(8, atoms=10, support=5), WassersteinLipschitz(0.2)
    values, slope = random_rows(1, 6, 15).requires_grad_(), torch.ones(6, dtype=torch.float64, requires_grad=True)
    expected = functional(values, points, slope)
    by_values, by_slope = torch.autograd.grad(expected.sum(), [values, slope])
    found = functional.value_and_slopes(values.detach(), points, slope.detach())
    for one, other in zip(found, (expected.detach(), by_values, by_slope), strict=True):
        assert one is not None
        torch.testing.assert_close(one, other)


def lipschitz_score(x: Tensor, contexts: Tensor) -> Tensor:
    """A score (b × m) with slope |x| in its only context."""
    return x[:, None].abs() * (contexts[:, 0] - 0.4).abs()


def test_lipschitz_is_a_lower_bound_of_the_exact_worst_case() -> None:
    points = random_points(8, atoms=10, support=64)
    x = torch.tensor([0.5, 1.0, -3.0], dtype=torch.float64)
    values = lipschitz_score(x, points.all)
    for radius in (0.0, 0.05, 0.2):
        bound = WassersteinLipschitz(radius)(values, points, x.abs())
        torch.testing.assert_close(bound, Expectation()(values, points) - radius * x.abs())
        assert bool((bound <= Wasserstein(radius, order=1)(values, points) + 1e-12).all())


def test_lipschitz_needs_its_slope() -> None:
    assert WassersteinLipschitz.needs_slope
    with pytest.raises(InvalidValueError, match="slope"):
        WassersteinLipschitz(0.1)(random_rows(0, 2, 4), random_points(0, atoms=4, support=0))
