"""The model is a function of the data in their order, however it was reached."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import random_data, uniform
from torch import Tensor

from edrbo.surrogate import ensemble
from edrbo.surrogate.ensemble import FittedModel, Surrogate, advance, fit_sizes
from edrbo.surrogate.kernels import Hyperparameters

pytestmark = pytest.mark.torch_numeric

SURROGATE = Surrogate(("rq", "matern32"))
N = 21
X, Y = random_data(N, 2, seed=0)
YVAR = torch.where(uniform(N, seed=1) < 0.5, uniform(N, seed=2, high=0.1), torch.nan)


def inputs(size: int) -> Tensor:
    """A coding that depends on the fit, as that of an unbounded context does."""
    return torch.cat([X[:, :1], X[:, 1:] / X[:size, 1].max()], dim=-1)


def first(noise_variance: Tensor | None) -> Callable[[int], Tensor | None]:
    return lambda size: None if noise_variance is None else noise_variance[:size]


@pytest.fixture(scope="module")
def sparse_fits() -> Iterator[None]:
    """Fits at 1 to 7, 9, 11, 14 and 18 observations: small data that still grow by rows between fits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ensemble, "GROWTH", 1.3)
        assert fit_sizes(N) == [1, 2, 3, 4, 5, 6, 7, 9, 11, 14, 18]
        yield


def step_by_step(n: int, noise_variance: Tensor | None) -> list[FittedModel]:
    models: list[FittedModel] = []
    for rows in range(1, n + 1):
        previous = models[-1] if models else None
        models.append(advance(SURROGATE, previous, rows, inputs, Y, first(noise_variance)))
    return models


def assert_identical(a: FittedModel, b: FittedModel) -> None:
    assert (a.fitted, a.rows) == (b.fitted, b.rows)
    assert a.model.scaling == b.model.scaling
    for name in ("lengthscale", "outputscale", "noise_variance", "mean", "shape"):
        assert torch.equal(getattr(a.hyper, name), getattr(b.hyper, name)), name
    for name in ("x", "y", "noise_variance", "chol", "alpha"):
        assert torch.equal(getattr(a.model.gp, name), getattr(b.model.gp, name)), name


@given(n=st.integers(1, 3000))
def test_fit_sizes(n: int) -> None:
    sizes = fit_sizes(n)
    assert sizes[0] == 1
    assert sizes[-1] <= n
    assert all(a < b <= max(a + 1, ensemble.GROWTH * a) for a, b in itertools.pairwise(sizes))
    assert fit_sizes(n + 500)[: len(sizes)] == sizes  # more data do not move earlier fits
    assert n < max(sizes[-1] + 1, int(ensemble.GROWTH * sizes[-1]))  # and the last one is not long ago


@pytest.mark.parametrize("noise_variance", [None, YVAR], ids=["learnt noise", "known noise"])
@pytest.mark.usefixtures("sparse_fits")
def test_every_path_to_a_model_gives_the_same_bits(noise_variance: Tensor | None) -> None:
    models = step_by_step(N, noise_variance)
    # at once, from nothing
    for n in (1, 12, N):
        assert_identical(advance(SURROGATE, None, n, inputs, Y, first(noise_variance)), models[n - 1])
    # in one jump from a model of fewer rows
    assert_identical(advance(SURROGATE, models[9], N, inputs, Y, first(noise_variance)), models[-1])
    # from stored hyper-parameters, whose factors are gone
    for stored in (models[9], models[13], models[-1]):
        start = (stored.fitted, stored.hyper)
        assert_identical(advance(SURROGATE, None, N, inputs, Y, first(noise_variance), start=start), models[-1])


@pytest.mark.usefixtures("sparse_fits")
def test_every_fit_starts_from_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """And, for small data and each time the data have doubled, from the priors' modes as well."""
    fit = Surrogate._hyperparameters
    starts: list[Hyperparameters | None] = []
    results: list[Hyperparameters] = []
    cold: dict[int, bool] = {}

    def watched(self: Surrogate, X: Tensor, *rest: Any) -> Hyperparameters:
        hyper = fit(self, X, *rest)
        *_, start, is_cold = rest
        starts.append(start)
        results.append(hyper)
        cold[len(X)] = is_cold
        return hyper

    monkeypatch.setattr(Surrogate, "_hyperparameters", watched)
    advance(SURROGATE, None, N, inputs, Y, first(None))
    assert starts[0] is None
    for start, before in zip(starts[1:], results, strict=False):
        assert start is not None
        assert torch.equal(start.lengthscale, before.lengthscale)
    assert [size for size, too in cold.items() if not too] == [11, 14]  # 18 is the first above 16


@pytest.mark.usefixtures("sparse_fits")
def test_hyperparameters_stay_between_fits() -> None:
    models = step_by_step(N, None)
    assert [m.rows for m in models] == list(range(1, N + 1))
    assert sorted({m.fitted for m in models}) == fit_sizes(N)
    for before, after in itertools.pairwise(models):
        if after.fitted == before.fitted:
            assert torch.equal(after.hyper.lengthscale, before.hyper.lengthscale)


@pytest.mark.usefixtures("sparse_fits")
def test_a_stored_fit_on_more_data_than_there_are_is_passed_over() -> None:
    models = step_by_step(9, None)
    late = (models[-1].fitted, models[-1].hyper)
    assert late[0] == 9
    assert_identical(advance(SURROGATE, None, 5, inputs, Y, first(None), start=late), models[4])


@pytest.mark.usefixtures("sparse_fits")
def test_the_model_of_an_extended_data_set_is_conditioned_on_all_of_it() -> None:
    model = advance(SURROGATE, None, N, inputs, Y, first(None))
    assert model.fitted < model.rows
    fresh = SURROGATE.at(inputs(model.fitted), Y, None, model.hyper)
    points = uniform(6, 2, seed=3)
    torch.testing.assert_close(model.model.joint(points)[0], fresh.joint(points)[0], rtol=0, atol=1e-9)


@pytest.mark.usefixtures("sparse_fits")
@settings(max_examples=5, deadline=None)
@given(cuts=st.lists(st.integers(1, N), min_size=1, max_size=4, unique=True).map(sorted))
def test_any_way_of_cutting_a_run(cuts: list[int]) -> None:
    model = None
    for n in cuts:
        model = advance(SURROGATE, model, n, inputs, Y, first(None))
    assert model is not None
    assert_identical(model, advance(SURROGATE, None, cuts[-1], inputs, Y, first(None)))
