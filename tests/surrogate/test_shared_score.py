"""The fused score of several experts against the general way, which is tested against autograd and differences."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from edrbo.surrogate.condensed import CondensedGP
from edrbo.surrogate.ensemble import Ensemble, Surrogate, barycenter
from edrbo.surrogate.paired_ensemble import CondensedEnsemble, PairedEnsemble
from edrbo.surrogate.warped import WarpedSurrogate


def uniform(*shape: int, seed: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def fitted(n: int, d: int, seed: int, surrogate: Surrogate | None = None) -> Ensemble:
    X = uniform(n, d, seed=seed)
    Y = 40.0 + 7.0 * (torch.sin(5.0 * X).sum(-1) + X[:, 0] * X[:, -1])
    return (surrogate or Surrogate()).fit(X, Y)


def condensed(model: Ensemble, rows: int, contexts: Tensor) -> PairedEnsemble:
    return CondensedEnsemble(CondensedGP.of(model.gp, torch.arange(rows)), model.scaling, None).paired_with(contexts)


@settings(max_examples=20, deadline=None)
@given(
    n=st.integers(3, 40),
    d_x=st.integers(1, 3),
    d_c=st.integers(0, 2),
    designs=st.integers(1, 6),
    contexts=st.integers(1, 9),
    beta=st.sampled_from([0.0, 0.7, 1.5]),
    used=st.sampled_from([0.0, 0.2, 1.0]),
    weighted=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_value_and_gradient_are_those_of_the_moments(
    n: int, d_x: int, d_c: int, designs: int, contexts: int, beta: float, used: float, weighted: bool, seed: int
) -> None:
    paired = condensed(fitted(n, d_x + d_c, seed), max(1, n // 3), uniform(contexts, d_c, seed=seed + 1))
    weights = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64) if weighted else None
    shared = paired.upper(beta, weights)
    assert shared is not None
    x, pairs = uniform(designs, d_x, seed=seed + 2), designs * contexts
    mass = torch.where(uniform(pairs, seed=seed + 4) < used, uniform(pairs, seed=seed + 3), 0.0)
    value, pullback = shared.value_and_pullback(x)
    mean, sd, by_moments = paired.moments_and_pullback(x)
    center, spread = barycenter(mean, sd, weights)
    assert torch.allclose(value, center + beta * spread, rtol=1e-9, atol=1e-9)
    share = torch.full((4, 1), 0.25, dtype=torch.float64) if weights is None else weights[:, None]
    expected, found = by_moments(share * mass, beta * share * mass), pullback(mass)
    assert torch.allclose(found, expected, rtol=1e-7, atol=1e-7 * max(1.0, float(expected.abs().max())))
    for moments in zip(paired.moments(x), (mean, sd), strict=True):  # those without a gradient take another way
        assert torch.allclose(*moments, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("surrogate", [Surrogate(), WarpedSurrogate()], ids=["all rows", "bent"])
def test_where_all_rows_tell_the_variance_or_outcomes_are_bent_there_is_none(surrogate: Surrogate) -> None:
    model, contexts = fitted(20, 2, 1, surrogate), uniform(3, 1, seed=2)
    assert model.paired_with(contexts).upper(1.0, None) is None
    assert (condensed(model, 9, contexts).upper(1.0, None) is None) is isinstance(surrogate, WarpedSurrogate)
