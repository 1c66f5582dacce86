"""When to refit, and how to get from one data set to the next.

Hyper-parameters are refitted at fixed numbers of observations only (every one at first, then in steps of a few per
cent), each fit warm-started from the one before; in between, the factors grow by one row per observation. So the model
is a function of the data in their order: a run that was interrupted and one that was not hold the same numbers, bit
for bit, whether a step was taken in this process or replayed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from edrbo.surrogate.ensemble import Ensemble, Surrogate
from edrbo.surrogate.exact_gp import Hyperparameters

GROWTH = 1.05  # the next fit comes when the data have grown by this factor


def fit_sizes(n: int) -> list[int]:
    """The numbers of observations, up to n, at which hyper-parameters are fitted: 1, 2, 3, …"""
    sizes, size = [], 1
    while size <= n:
        sizes.append(size)
        size = max(size + 1, int(size * GROWTH))
    return sizes


def _is_new_scale(size: int) -> bool:
    """Whether to search from the priors' modes as well: for small data, and each time the data have doubled."""
    sizes = fit_sizes(size)
    return size <= 10 or size.bit_length() > sizes[-2].bit_length()


@dataclass(frozen=True)
class FittedModel:
    """An ensemble on ``rows`` observations whose hyper-parameters were fitted on the first ``fitted`` of them."""

    model: Ensemble
    fitted: int
    rows: int

    @property
    def hyper(self) -> Hyperparameters:
        return self.model.gp.hyper


def advance(
    surrogate: Surrogate,
    previous: FittedModel | None,
    n: int,
    inputs: Callable[[int], Tensor],
    Y: Tensor,
    Yvar: Tensor | None,
    start: tuple[int, Hyperparameters] | None = None,
) -> FittedModel:
    """The model of all ``n`` ≥ 1 observations, from a model of fewer, from stored hyper-parameters, or from nothing.

    ``inputs(size)`` gives the n × d inputs in the coding that belongs to a fit on ``size`` observations. ``start`` is
    (size, hyper-parameters) of an earlier fit whose factors are gone, say after loading from a file.
    """
    target = fit_sizes(n)[-1]
    noise = (lambda size: None) if Yvar is None else (lambda size: Yvar[:size])
    if previous is None and start is not None and start[0] <= target:
        size, hyper = start
        previous = FittedModel(surrogate.at(inputs(size)[:size], Y[:size], noise(size), hyper), size, size)
    fitted = 0 if previous is None else previous.fitted
    for size in fit_sizes(n):
        if size > fitted:
            warm = None if previous is None else previous.hyper
            model = surrogate.fit(inputs(size)[:size], Y[:size], noise(size), start=warm, cold=_is_new_scale(size))
            previous = FittedModel(model, size, size)
    assert previous is not None
    X = inputs(previous.fitted)
    while previous.rows < n:
        rows = previous.rows + 1
        model = surrogate.extend(previous.model, X[:rows], Y[:rows], noise(rows))
        previous = FittedModel(model, previous.fitted, rows)
    return previous
