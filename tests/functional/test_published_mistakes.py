"""One test per mistake of the published programs that concerns distributions and functionals.

Each first shows that the mistaken formula really gives something else on the data at hand.
"""

from __future__ import annotations

import convex
import numpy as np
import pytest
import torch
from convex import random_points, random_rows

from edrbo.acquisition.risk import MMD, Minimum, MMDMidpoint, TotalVariation
from edrbo.contexts.distributions import KDE, Box, ContextDistribution, ContextHistory, ContextPoints, Grid

pytestmark = [pytest.mark.torch_numeric, pytest.mark.numpy_numeric]


def history(n: int, dim: int, lower: float = 0.0, upper: float = 1.0) -> ContextHistory:
    unit = torch.rand(n, dim, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    ends = torch.full((dim,), lower, dtype=torch.float64), torch.full((dim,), upper, dtype=torch.float64)
    return ContextHistory(lower + (upper - lower) * unit, torch.ones(n, dtype=torch.float64), *ends)


def test_contexts_below_the_box() -> None:
    """u·(lo − hi) + lo lies below the box."""
    seen = history(30, 2, lower=-3.0, upper=5.0)
    assert float((0.5 * (seen.lower - seen.upper) + seen.lower).max()) < -3.0
    distributions: list[ContextDistribution] = [Box(), KDE(), Grid()]
    for context_distribution in distributions:
        for known in (seen, history(0, 2, lower=-3.0, upper=5.0)):
            points = context_distribution.points(known, 32, seed=3).all
            assert bool((points >= known.lower).all())
            assert bool((points <= known.upper).all())
            assert float(points.amin()) < 0 < float(points.amax())  # and not collapsed onto an end either


def test_set_redrawn_inside_every_evaluation() -> None:
    """Points do not depend on how often, or after what, they are asked for; nor does a functional draw."""
    seen = history(30, 2)
    distributions: list[ContextDistribution] = [Box(), KDE(), Grid()]
    for context_distribution in distributions:
        first = context_distribution.points(seen, 32, seed=3)
        torch.manual_seed(99)
        torch.rand(5)
        np.random.default_rng().random(5)
        again = context_distribution.points(seen, 32, seed=3)
        assert torch.equal(first.all, again.all)
        assert torch.equal(first.weights, again.weights)
    state = torch.get_rng_state()
    points = random_points(0, atoms=20, support=10)
    for functional in (Minimum(), TotalVariation(0.3), MMD(0.3), MMDMidpoint(0.3)):
        functional(random_rows(0, 4, 30), points)
    assert torch.equal(state, torch.get_rng_state())


def test_diagonal_grid() -> None:
    """A grid over two contexts is a product, not pairs of equal coordinates."""
    points = Grid(size=100).points(history(40, 2), 0, seed=0)
    assert points.atoms.shape == (100, 2)
    assert int((points.atoms[:, 0] == points.atoms[:, 1]).sum()) == 10
    corner = torch.tensor([0.0, 1.0], dtype=torch.float64)
    assert bool((points.atoms == corner).all(-1).any())
    assert len({tuple(row) for row in points.atoms.tolist()}) == 100


def midpoint_parts() -> tuple[torch.Tensor, ContextPoints]:
    points = Grid(size=30).points(history(12, 1), 0, seed=0)
    return random_rows(3, 40, 30), points


def test_uniform_instead_of_empirical_mean() -> None:
    values, points = midpoint_parts()
    empirical = values @ points.weights
    assert float((empirical - values.mean(-1)).abs().min()) > 1e-4
    torch.testing.assert_close(MMDMidpoint(0.0)(values, points), empirical)


def test_wrong_sign_of_S() -> None:
    """With −S a larger ball lowers the value faster; with +S it would raise it where S > |τ|."""
    values, points = midpoint_parts()
    mean, low = values @ points.weights, values.amin(-1)
    spread = (values - values.mean(-1, keepdim=True)).square().sum(-1).sqrt()
    radius = 0.5 * float(((mean - low) / spread).min())  # ε ≤ ε′ in all rows
    value = MMDMidpoint(radius)(values, points)
    rate = 2.0 * (value - mean) / radius + spread  # τ, if the sign is right
    reach = (low - mean) / rate
    kernel = torch.exp(-0.5 * ((points.atoms - points.atoms.T) / 0.2).square())
    away = torch.eye(30, dtype=torch.float64)[values.argmin(-1)] - points.weights
    torch.testing.assert_close(reach, ((away @ kernel) * away).sum(-1).sqrt(), rtol=1e-5, atol=1e-6)
    assert bool((value < mean).all())


def test_misbound_else_returns_zero_for_part_of_a_batch() -> None:
    """Rows of all three cases together: each gets its own case's value and none is left at zero."""
    values, points = midpoint_parts()
    values = values + 50.0
    for radius in (0.05, 0.3, 0.6, 0.8):
        batch = MMDMidpoint(radius)(values, points)
        alone = torch.stack([MMDMidpoint(radius)(row, points) for row in values])
        torch.testing.assert_close(batch, alone, rtol=0, atol=1e-10)
        assert float(batch.min()) > 30.0


def test_missing_envelope_term_of_drbo_kde() -> None:
    """The mass moved to the minimum brings that context's gradient with it."""
    points = random_points(1, atoms=30, support=20)
    radius = 0.5

    def scores(x: torch.Tensor) -> torch.Tensor:
        c = points.all[:, 0]
        return torch.sin(3.0 * x[:, None]) * c + (c - x[:, None] / 2).square() * 4.0

    x = torch.tensor([0.3, 0.8, 1.4], dtype=torch.float64, requires_grad=True)
    functional = TotalVariation(radius)
    (gradient,) = torch.autograd.grad(functional(scores(x), points).sum(), x)
    step = 1e-6
    with torch.no_grad():
        numeric = (functional(scores(x + step), points) - functional(scores(x - step), points)) / (2 * step)
    torch.testing.assert_close(gradient, numeric, rtol=1e-6, atol=1e-6)
    # Without the term: only the mass that stayed at the atoms is differentiated.
    values = scores(x)
    stayed = torch.minimum(functional.worst_case(values.detach(), points), points.mass)
    (mistaken,) = torch.autograd.grad((stayed * values).sum(), x)
    assert float((mistaken - numeric).abs().min()) > 1e-2


def test_first_order_cone_solver() -> None:
    """The MMD worst case on a grid of the published size agrees with an interior-point solver to 1e-6."""
    points = Grid(size=100).points(history(25, 1), 0, seed=0)
    c = points.atoms[:, 0]
    values = torch.stack([torch.sin(9 * c + a) + a * c for a in (0.0, 1.0, 2.0)])
    for radius in (0.1, 0.4):
        expected = convex.solve(values, points, convex.discrepancy(radius, 0.2))
        np.testing.assert_allclose(MMD(radius)(values, points).numpy(), expected, rtol=0, atol=1e-6)
