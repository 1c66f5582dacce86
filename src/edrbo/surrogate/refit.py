"""When hyper-parameters are refitted, and how the model is updated in between.

Hyper-parameters are refitted at fixed numbers of observations only (every one at first, then in steps of a few per
cent), each fit warm-started from the one before; in between, the factors of the last fit grow by the rows that came
since, all at once. So the model is a function of the data in their order: a run that was interrupted and one that was
not hold the same numbers, bit for bit, whether a step was taken in this process or replayed; and a model whose last fit
was stored costs a factorization, not a replay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate
from edrbo.surrogate.kernels import Hyperparameters

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


def _is_recoded(before: Tensor, after: Tensor) -> bool:
    """Whether an input (n × d) is spread twice as far as before, or half: then old lengthscales say little."""
    old, new = (X.amax(0) - X.amin(0) for X in (before, after))
    return bool(((new > 2.0 * old) | (old > 2.0 * new)).any())


@dataclass(frozen=True)
class FittedModel:
    """An ensemble on ``rows`` observations, and ``base``, that on the first ``fitted`` of them, which was fitted."""

    base: ExpertEnsemble
    model: ExpertEnsemble
    fitted: int
    rows: int

    @property
    def hyper(self) -> Hyperparameters:
        return self.base.gp.hyper


def advance(
    surrogate: Surrogate,
    previous: FittedModel | None,
    n: int,
    inputs: Callable[[int], Tensor],
    Y: Tensor,
    noise_variance: Callable[[int], Tensor | None],
    start: tuple[int, Hyperparameters] | None = None,
) -> FittedModel:
    """The model of all ``n`` ≥ 1 observations, from a model of fewer, from stored hyper-parameters, or from nothing.

    ``inputs(size)`` gives the n × d inputs in the coding that belongs to a fit on ``size`` observations,
    ``noise_variance(size)`` what is known of the noise of the first ``size``, from these alone. ``start`` is (size,
    hyper-parameters) of an earlier fit whose factors are gone, say after loading from a file.
    """
    sizes = fit_sizes(n)
    base, fitted, hyper = None, 0, None
    if previous is not None:
        base, fitted, hyper = previous.base, previous.fitted, previous.hyper
    elif start is not None and start[0] <= sizes[-1]:
        fitted, hyper = start
    for size in sizes if surrogate.warm else sizes[-1:]:
        if size > fitted:
            X = inputs(size)[:size]
            cold = _is_new_scale(size) or (fitted > 0 and _is_recoded(inputs(fitted)[:fitted], X[:fitted]))
            base = surrogate.fit(X, Y[:size], noise_variance(size), start=hyper, cold=cold)
            fitted, hyper = size, base.gp.hyper
    X = inputs(fitted)
    if base is None:
        assert hyper is not None
        base = surrogate.at(X[:fitted], Y[:fitted], noise_variance(fitted), hyper)
    model = base if n == fitted else surrogate.extend(base, X[:n], Y[:n], noise_variance(n))
    return FittedModel(base, model, fitted, n)
