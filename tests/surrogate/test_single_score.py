"""The fused score of one expert against the general way, which is tested against autograd and finite differences."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from edrbo.surrogate.ensemble import Ensemble, Surrogate, single_gp
from edrbo.surrogate.paired_ensemble import PairedEnsemble
from edrbo.surrogate.warped import WarpedSurrogate


def uniform(*shape: int, seed: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def fitted(n: int, d: int, seed: int, surrogate: Surrogate | None = None) -> Ensemble:
    X = uniform(n, d, seed=seed)
    Y = 40.0 + 7.0 * (torch.sin(5.0 * X).sum(-1) + X[:, 0] * X[:, -1])
    return (surrogate or single_gp()).fit(X, Y)


def general(paired: PairedEnsemble, x: Tensor, beta: float, mass: Tensor) -> tuple[Tensor, Tensor]:
    mean, sd, pullback = paired.moments_and_pullback(x)
    return (mean + beta * sd)[0], pullback(mass[None], beta * mass[None])


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 40),
    d_x=st.integers(1, 3),
    d_c=st.integers(0, 2),
    designs=st.integers(1, 6),
    contexts=st.integers(1, 9),
    beta=st.sampled_from([0.0, 0.7, 1.5]),
    used=st.sampled_from([0.0, 0.2, 0.9, 1.0]),
    seed=st.integers(0, 10**6),
)
def test_value_and_gradient_are_those_of_the_moments(
    n: int, d_x: int, d_c: int, designs: int, contexts: int, beta: float, used: float, seed: int
) -> None:
    paired = fitted(n, d_x + d_c, seed).paired_with(uniform(contexts, d_c, seed=seed + 1))
    single = paired.single(beta)
    assert single is not None
    x = uniform(designs, d_x, seed=seed + 2)
    mass = uniform(designs * contexts, seed=seed + 3)
    mass = torch.where(uniform(designs * contexts, seed=seed + 4) < used, mass, 0.0)
    value, pullback = single.value_and_pullback(x)
    expected, gradient = general(paired, x, beta, mass)
    assert torch.allclose(value, expected, rtol=1e-9, atol=1e-9)
    found = pullback(mass)
    assert torch.allclose(found, gradient, rtol=1e-7, atol=1e-7 * max(1.0, float(gradient.abs().max())))


def test_the_gradient_is_that_of_autograd() -> None:
    model, contexts, x = fitted(25, 3, 5), uniform(4, 1, seed=1), uniform(3, 2, seed=2).requires_grad_()
    single = model.paired_with(contexts).single(1.5)
    assert single is not None
    value, pullback = single.value_and_pullback(x)
    joint = torch.cat([x.repeat_interleave(4, dim=0), contexts.repeat(3, 1)], dim=-1)
    mean, sd = model.expert_moments(joint[:, None])
    scores = (mean + 1.5 * sd).flatten()
    (by_autograd,) = torch.autograd.grad(scores.sum(), x)
    assert torch.allclose(value, scores.detach(), rtol=1e-7)
    assert torch.allclose(pullback(torch.ones(12, dtype=torch.float64)), by_autograd, rtol=1e-5, atol=1e-6)


def test_at_the_data_a_standard_deviation_that_is_at_its_floor_has_no_slope() -> None:
    model = fitted(12, 2, 3)
    paired = model.paired_with(model.gp.x[:1, 1:])
    single = paired.single(1.5)
    assert single is not None
    value, pullback = single.value_and_pullback(model.gp.x[:1, :1])
    expected, _ = general(paired, model.gp.x[:1, :1], 1.5, torch.ones(1, dtype=torch.float64))
    assert torch.allclose(value, expected, rtol=1e-6)
    assert bool(pullback(torch.ones(1, dtype=torch.float64)).isfinite().all())


@pytest.mark.parametrize(
    "surrogate",
    [Surrogate(), Surrogate(experts=("matern52",)), WarpedSurrogate(experts=("se",))],
    ids=["four", "matern", "warped"],
)
def test_anything_else_has_none(surrogate: Surrogate) -> None:
    paired = fitted(12, 2, 0, surrogate).paired_with(uniform(3, 1, seed=1))
    assert paired.single(1.5) is None
