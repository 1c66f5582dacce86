"""Tails and minima without kinks: their definitions solved by SciPy, their weights as gradients, their hard limits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from convex import random_points, random_rows
from scipy.optimize import brentq
from scipy.special import expit, logsumexp

from edrbo.acquisition.risk import CVaRFunctional, Functional, Minimum, SoftCVaR, SoftMinimum, SoftVaR, VaR
from edrbo.errors import InvalidValueError

pytestmark = [pytest.mark.torch_numeric, pytest.mark.numpy_numeric]

SOFT = [SoftCVaR(0.1), SoftCVaR(0.6, 0.3), SoftVaR(0.1), SoftVaR(0.9, 0.2), SoftMinimum(0.05)]
POINTS = random_points(2, atoms=20, support=4, zeros=2)


def by_definition(functional: Functional, row: np.ndarray) -> float:
    w = POINTS.mass.numpy()
    tau = functional.softness * np.sqrt(w @ (row - w @ row) ** 2)
    if isinstance(functional, SoftMinimum):
        return -tau * logsumexp(-row / tau)
    t = brentq(lambda t: w @ expit((t - row) / tau) - functional.alpha, row.min() - 60 * tau, row.max() + 60 * tau)
    if isinstance(functional, SoftVaR):
        return t
    return t - w @ (tau * np.logaddexp(0, (t - row) / tau)) / functional.alpha


@pytest.mark.parametrize("functional", SOFT, ids=str)
def test_value_is_the_definition(functional: Functional) -> None:
    rows = 3.0 + 10.0 * random_rows(4, 8, 24)
    expected = [by_definition(functional, row) for row in rows.numpy()]
    np.testing.assert_allclose(functional(rows, POINTS).numpy(), expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("functional", SOFT, ids=str)
def test_weights_are_the_gradient_and_sum_to_one(functional: Functional) -> None:
    rows = random_rows(5, 6, 24)
    weights = functional.worst_case(rows, POINTS)
    torch.testing.assert_close(weights.sum(-1), torch.ones(6, dtype=torch.float64), rtol=0, atol=1e-9)
    for j in range(0, 24, 3):
        step = torch.zeros(24, dtype=torch.float64)
        step[j] = 1e-6
        slope = (functional(rows + step, POINTS) - functional(rows - step, POINTS)) / 2e-6
        torch.testing.assert_close(weights[:, j], slope, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("soft", "hard"),
    [(SoftCVaR(0.3, 1e-5), CVaRFunctional(0.3)), (SoftVaR(0.33, 1e-5), VaR(0.33)), (SoftMinimum(1e-5), Minimum())],
    ids=["cvar", "var", "minimum"],
)
def test_with_little_softness_it_is_the_hard_one(soft: Functional, hard: Functional) -> None:
    rows = random_rows(6, 10, 24)
    torch.testing.assert_close(soft(rows, POINTS), hard(rows, POINTS), rtol=0, atol=3e-4)


@pytest.mark.parametrize("functional", SOFT, ids=str)
def test_shift_and_scale_pass_through(functional: Functional) -> None:
    rows = random_rows(7, 5, 24)
    torch.testing.assert_close(
        functional(1e3 + 50.0 * rows, POINTS), 1e3 + 50.0 * functional(rows, POINTS), rtol=1e-10, atol=1e-6
    )


@pytest.mark.parametrize("functional", SOFT, ids=str)
def test_rows_without_spread(functional: Functional) -> None:
    constant = torch.full((2, 24), 4.0, dtype=torch.float64)
    torch.testing.assert_close(functional(constant, POINTS), constant[:, 0], rtol=1e-9, atol=0)
    lonely = constant.clone()
    lonely[:, -1] = 3.0  # only where there is no mass
    assert bool(functional(lonely, POINTS).isfinite().all())
    assert functional(constant[:0], POINTS).shape == (0,)


def test_a_tail_of_everything_is_the_mean() -> None:
    rows = random_rows(8, 5, 24)
    torch.testing.assert_close(SoftCVaR(1.0)(rows, POINTS), rows @ POINTS.mass)


def test_nonsense_is_refused() -> None:
    for make in (lambda: SoftVaR(1.0), lambda: SoftCVaR(0.0), lambda: SoftMinimum(0.0), lambda: SoftCVaR(0.1, -1.0)):
        with pytest.raises(InvalidValueError):
            make()
