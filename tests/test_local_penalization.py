"""Suggestions keep away from what is being evaluated."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import edrbo
from edrbo import Optimizer, Space
from edrbo.acquisition.penalties import WIDTH, LocalPenalization
from edrbo.bench import problems
from edrbo.streams import stream


class Bowl:
    """−|x − ½|², with its gradient."""

    def __call__(self, x: Tensor) -> Tensor:
        return -(x - 0.5).square().sum(-1)

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self(x), -2.0 * (x - 0.5)


@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 20))
def test_the_gradient_is_that_of_the_value(d: int, pending: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    objective = LocalPenalization(
        Bowl(), torch.from_numpy(rng.random((pending, d))), torch.from_numpy(0.3 + rng.random(d)), 2.0
    )
    x = objective.pending[:1] + 0.03 * torch.from_numpy(rng.standard_normal((5, d)))
    value, gradient = objective.value_and_gradient(x)
    by_autograd = x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(objective(by_autograd).sum(), by_autograd)
    torch.testing.assert_close(value, objective(x))
    torch.testing.assert_close(gradient, expected)


def test_a_hill_is_as_high_as_the_cost_and_a_few_widths_wide() -> None:
    objective = LocalPenalization(
        Bowl(), torch.full((1, 1), 0.5, dtype=torch.float64), torch.ones(1, dtype=torch.float64), 3.0
    )
    x = torch.tensor([[0.5], [0.5 + WIDTH], [0.5 + 6 * WIDTH]], dtype=torch.float64)
    taken = (Bowl()(x) - objective(x)).tolist()
    np.testing.assert_allclose(taken, [3.0, 3.0 * np.exp(-0.5), 3.0 * np.exp(-18.0)], rtol=0, atol=1e-12)


def test_without_anything_pending_the_approximations_are_as_they_were() -> None:
    levels = [Bowl(), Bowl()]
    model = reported("ackley", 6)._main
    posterior = model.posterior(model.data(), (None, None), pending=[], asking=True)
    assert posterior.penalize_pending(levels) == levels


def reported(problem: str, n: int, **options: object) -> Optimizer:
    world, rng = problems.get(problem), stream(3, "apart", problem)
    space = Space(design={"x1": (0, 1), "x2": (0, 1)}, context={"c1": (0, 1)})
    optimizer = Optimizer(space, seed=3, **options)  # type: ignore[arg-type]
    x, c = np.clip(0.5 + 0.1 * rng.standard_normal((n, 2)), 0, 1), world.sample_contexts(n, rng)
    for design, context, y in zip(x, c, world.evaluate(x, c), strict=True):
        optimizer.tell(dict(zip(("x1", "x2"), design, strict=True)), {"c1": float(context[0])}, float(y))
    return optimizer


def test_of_eight_designs_no_two_are_within_a_hundredth() -> None:
    # without the hills all of these eight have another as near
    optimizer = reported("ackley", 40)
    designs = np.array([[s["x1"], s["x2"]] for s in optimizer.ask(8)])
    gaps = np.abs(designs[:, None] - designs).max(-1) + np.eye(8)
    assert gaps.min() > 0.01
    asked_later = optimizer.ask()  # as another worker would
    assert np.abs(designs - [asked_later["x1"], asked_later["x2"]]).max(-1).min() > 0.01


@pytest.mark.parametrize(
    ("goal", "power"),
    [(edrbo.CVaR(0.1), 1.0), (edrbo.ProbabilityBetterThan(-16.0), 0.0), (edrbo.TargetLoss(-16.0), 2.0)],
)
def test_a_hill_is_as_high_as_the_goals_values_are_apart(goal: edrbo.Goal, power: float) -> None:
    """Powers of the range of outcomes; a probability's range is one."""
    optimizer = reported("ackley", 6, goal=goal)
    training_data = optimizer._main.data()
    posterior = optimizer._main.posterior(training_data, (None, None), pending=[], asking=True)
    np.testing.assert_allclose(posterior.worth, posterior.outcome_range**power)
