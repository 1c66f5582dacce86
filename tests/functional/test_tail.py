"""CVaR and VaR."""

from __future__ import annotations

import convex
import numpy as np
import pytest
import torch
from convex import random_points, random_rows

from edrbo.acquisition.risk import CVaRFunctional, Expectation, VaR
from edrbo.contexts.distributions import ContextPoints
from edrbo.errors import InvalidValueError

pytestmark = [pytest.mark.torch_numeric, pytest.mark.numpy_numeric]


@pytest.mark.parametrize("alpha", [1e-6, 0.05, 0.3, 0.75, 1.0])
def test_cvar_agrees_with_a_convex_solver(alpha: float) -> None:
    points = random_points(2, atoms=11, support=3, zeros=2)
    values = torch.cat([random_rows(4, 5, 14), torch.ones(1, 14, dtype=torch.float64)])
    expected = convex.solve(values, points, convex.conditional_tail(alpha))
    np.testing.assert_allclose(CVaRFunctional(alpha)(values, points).numpy(), expected, rtol=0, atol=1e-6)
    worst = CVaRFunctional(alpha).worst_case(values, points)
    assert bool((worst >= 0).all())
    torch.testing.assert_close(worst.sum(-1), torch.ones(6, dtype=torch.float64))


def test_cvar_extremes_and_monotonicity() -> None:
    points, values = random_points(2, atoms=11, support=3, zeros=2), random_rows(4, 20, 14)
    by_alpha = torch.stack([CVaRFunctional(a)(values, points) for a in (1e-9, 0.1, 0.4, 0.8, 1.0)])
    assert float(by_alpha.diff(dim=0).min()) >= -1e-12
    torch.testing.assert_close(by_alpha[0], values[:, points.mass > 0].amin(-1))
    torch.testing.assert_close(by_alpha[-1], Expectation()(values, points))


@pytest.mark.parametrize(
    ("alpha", "expected"), [(0.05, 1.0), (0.1, 1.0), (0.3, 3.0), (0.31, 4.0), (0.8, 8.0), (1.0, 10.0)]
)
def test_var_is_the_lower_quantile(alpha: float, expected: float) -> None:
    """Eight weights of 0.1 add up to less than 0.8 in floating point: it must not cost an atom."""
    atoms = torch.linspace(0, 1, 10, dtype=torch.float64)[:, None]
    points = ContextPoints(atoms, torch.full((10,), 0.1, dtype=torch.float64), atoms[:2])
    values = torch.tensor([7.0, 3, 10, 1, 8, 2, 9, 5, 4, 6, -5, 99], dtype=torch.float64)
    assert float(VaR(alpha)(values, points)) == expected


def test_var_agrees_with_a_definition_by_counting() -> None:
    points, values = random_points(3, atoms=12, support=2, zeros=3), random_rows(5, 30, 14)
    for alpha in (0.01, 0.2, 0.5, 0.99):
        for row, found in zip(values, VaR(alpha)(values, points), strict=True):
            reached = [v for v in row[points.mass > 0] if float(points.mass[row <= v].sum()) >= alpha]
            assert float(found) == float(min(reached))


def test_var_gradient_is_one_at_its_atom() -> None:
    points = random_points(3, atoms=12, support=0)
    values = random_rows(5, 4, 12).requires_grad_()
    out = VaR(0.3)(values, points)
    (gradient,) = torch.autograd.grad(out.sum(), values)
    assert torch.equal(gradient, (values == out[:, None]).double())


@pytest.mark.parametrize("functional", [CVaRFunctional, VaR])
@pytest.mark.parametrize("alpha", [0.0, -0.5, 1.1, float("nan")])
def test_bad_alpha(functional: type, alpha: float) -> None:
    with pytest.raises(InvalidValueError, match="alpha"):
        functional(alpha)
