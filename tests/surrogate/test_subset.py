"""Fits to some of very many observations: which, and what it costs."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from edrbo.surrogate import ensemble, fit
from edrbo.surrogate.ensemble import Surrogate
from edrbo.surrogate.fit import representative


@given(st.integers(1, 60), st.integers(2, 40), st.integers(0, 5))
def test_rows_are_distinct_ordered_and_as_many_as_wanted(n: int, size: int, seed: int) -> None:
    rows = representative(torch.from_numpy(np.random.default_rng(seed).random((n, 2))), size)
    assert rows.tolist() == sorted(set(rows.tolist()))
    assert len(rows) == min(n, size)


def test_a_cluster_does_not_crowd_out_the_rest() -> None:
    rng = np.random.default_rng(0)
    spread, cluster = rng.random((50, 2)), 0.5 + 1e-3 * rng.standard_normal((950, 2))
    rows = representative(torch.from_numpy(np.vstack([cluster, spread])), 100)
    assert int((rows >= 950).sum()) >= 49  # all but perhaps one that falls into the cluster


def test_the_posterior_is_of_all_the_data(monkeypatch: object) -> None:
    rng = np.random.default_rng(1)
    X = torch.from_numpy(rng.random((120, 2)))
    Y = torch.sin(5.0 * X[:, 0]) * X[:, 1]
    whole = Surrogate().fit(X, Y)
    monkeypatch.setattr(fit.representative, "__defaults__", (60,))  # type: ignore[attr-defined]
    monkeypatch.setattr(ensemble, "MOST_FITTED", 60)  # type: ignore[attr-defined]
    some = Surrogate().fit(X, Y)
    assert some.observations == 120
    rows = representative(X)
    assert len(rows) == 60
    alone = Surrogate().fit(X[rows], Y[rows])
    # standardized by all outcomes, so near, not equal
    assert float((some.gp.hyper.lengthscale.log() - alone.gp.hyper.lengthscale.log()).abs().max()) < 0.1
    test = torch.from_numpy(rng.random((200, 2)))
    truth = torch.sin(5.0 * test[:, 0]) * test[:, 1]
    errors = [(model.moments(test)[0].mean(0) - truth).square().mean().sqrt() for model in (whole, some, alone)]
    assert float(errors[1]) < 1.5 * float(errors[0])
    assert float(errors[1]) < float(errors[2])


def test_of_repeated_inputs_all_outcomes_count(monkeypatch: object) -> None:
    rng = np.random.default_rng(2)
    X = torch.from_numpy(np.repeat(rng.random((30, 2)), 4, axis=0))  # 120 observations at 30 inputs
    assert len(ensemble.fitted_rows(X)) == 120
    monkeypatch.setattr(ensemble, "MOST_FITTED", 20)  # type: ignore[attr-defined]
    monkeypatch.setattr(fit.representative, "__defaults__", (20,))  # type: ignore[attr-defined]
    rows = ensemble.fitted_rows(X)
    assert len(rows) == 80  # twenty inputs, each with its four
    assert len(torch.unique(X[rows], dim=0)) == 20
