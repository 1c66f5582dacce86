"""What an ask costs in fits: one at most, also after a late context or a restart; and the numbers stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edrbo.optimizer.optimizer import Optimizer
from edrbo.space import Space
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate

SPACE = Space({"x": (0, 1)}, {"c": (0, 1), "price": None})


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the fits made since, as a list that grows."""
    sizes: list[int] = []
    fit = Surrogate.fit

    def counted(self: Surrogate, X: Any, Y: Any, Yvar: Any = None, **search: Any) -> ExpertEnsemble:
        sizes.append(len(Y))
        return fit(self, X, Y, Yvar, **search)

    monkeypatch.setattr(Surrogate, "fit", counted)
    return sizes


def world(i: int, x: float) -> tuple[dict[str, float], float]:
    rng = np.random.default_rng(i)
    context = {"c": float(rng.random()), "price": float(rng.normal(3.0, 1.0))}
    return context, -((x - 0.3 - 0.4 * context["c"]) ** 2) + 0.01 * context["price"]


def reported(n: int) -> Optimizer:
    optimizer = Optimizer(SPACE, seed=3)
    for i in range(n):
        x = float(np.random.default_rng(1000 + i).random())
        optimizer.tell({"x": x}, *world(i, x))
    return optimizer


def test_a_late_context_costs_no_more_than_a_fit(fits: list[int]) -> None:
    optimizer = reported(43)
    suggestion = optimizer.ask()
    context, value = world(99, suggestion["x"])
    optimizer.tell(suggestion, None, value)
    for i in range(100, 103):  # others come in between
        optimizer.tell({"x": 0.1 * (i - 99)}, *world(i, 0.1 * (i - 99)))
    optimizer.ask()
    del fits[:]
    optimizer.tell_context(suggestion, context)
    warm = optimizer.ask()
    assert len(fits) <= 1
    del fits[:]
    resumed = Optimizer.from_json(optimizer.to_json())
    assert resumed.model is not None
    assert fits == []
    # and from the record alone, with every fit made again
    replayed = Optimizer.of(resumed.state)
    assert replayed.ask().design == resumed.ask().design == optimizer.ask().design != warm.design
    assert len(fits) > 30


def test_a_cold_ask_with_a_stored_fit_makes_none(fits: list[int]) -> None:
    optimizer = reported(47)  # the last fit is on 46
    optimizer.ask()
    assert fits[-1] == 46
    text = optimizer.to_json()
    del fits[:]
    cold, warm = Optimizer.from_json(text).ask(), optimizer.ask()
    assert fits == []
    assert cold == warm
    later = Optimizer.from_json(text)
    later.tell({"x": 0.77}, *world(7, 0.77))
    later.ask()
    assert fits == [48]


@pytest.mark.parametrize("change", ["method", "bounds", "title"])
def test_a_fit_made_before_an_amendment_is_used_only_where_it_still_holds(change: str, fits: list[int]) -> None:
    optimizer = reported(12)
    optimizer.ask()
    wider = Space({"x": (0, 1)}, {"c": (-1, 3), "price": None})
    changes = {"method": {"method": "ucb"}, "bounds": {"space": wider.to_dict()}, "title": {"title": "coating"}}
    optimizer.amend(changes[change])
    del fits[:]
    text = optimizer.to_json()
    resumed = Optimizer.from_json(text).ask().design
    if change == "title":
        assert fits == []
    replayed = Optimizer.of(Optimizer.from_json(text).state).ask().design
    assert optimizer.ask().design == resumed == replayed
