"""Maximizers over the unit cube: quasi-random search, then L-BFGS-B where there are gradients or Nelder–Mead.

The best design where some variables are whole numbers or choices.

From each of several designs: exchanges of one level as long as they pay; L-BFGS-B in the real variables; then every
exchange of one level with a climb of its own, since a level may be better only once the real variables have followed;
then every exchange of two levels. It ends where none of these improves. With an E f that is concave between levels, as
the registered problems have it, what is left to chance is the levels alone, and tests go through all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from edrbo.bench.problems.oracle.distributions import Array
from edrbo.space import Space

SEARCH_SIZE_LOG2 = 12
STARTS = 8
ROUGH_STARTS = 2
SECOND_LOOK = 32


@lru_cache(maxsize=16)
def quasi_random_designs(d_x: int, log2_size: int = SEARCH_SIZE_LOG2, seed: int = 0) -> Array:
    """2^log2_size scrambled Sobol points of the unit cube, shape (n, d_x)."""
    from scipy.stats import qmc

    designs = np.asarray(qmc.Sobol(d_x, rng=np.random.default_rng(seed)).random_base2(log2_size))
    designs.flags.writeable = False
    return designs


def maximize_smooth(
    value: Callable[[Array], Array],
    value_and_gradient: Callable[[Array], tuple[Array, Array]],
    d_x: int,
    landmark: Sequence[float] | None = None,
) -> Array:
    """argmax of a smooth function of one design, shape (d_x,); ``landmark`` is a design to start from as well."""
    designs = quasi_random_designs(d_x)
    best = np.argsort(-value(designs), kind="stable")[:STARTS]
    starts = list(designs[best])
    if landmark is not None:
        starts.insert(0, np.array(landmark))
    ends = [climb(value_and_gradient, start) for start in starts]
    winner = max(ends, key=lambda end: end[1])[0]
    winner.flags.writeable = False
    return winner


def climb(value_and_gradient: Callable[[Array], tuple[Array, Array]], start: Array) -> tuple[Array, float]:
    """argmax and max near ``start`` (d_x,) by L-BFGS-B."""
    from scipy.optimize import minimize

    def loss(x: Array) -> tuple[float, Array]:
        found, gradient = value_and_gradient(x)
        return -float(found), -gradient

    end = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * len(start),
        options={"ftol": 0.0, "gtol": 1e-10, "maxiter": 500},
    )
    return np.asarray(end.x), -float(end.fun)


def maximize_rough(
    value: Callable[[Array], Array], known: Array, log2_size: int, quick: Callable[[Array], Array] | None = None
) -> tuple[Array, float]:
    """argmax and max of a function with kinks, from a ``known`` good design (d_x,) and the best quasi-random ones.

    ``quick`` is nearly ``value`` and cheaper: what it likes best is looked at exactly.
    """
    d_x = len(known)
    designs = np.vstack([quasi_random_designs(d_x, log2_size), known])
    if quick is not None:
        designs = designs[np.argsort(-quick(designs), kind="stable")[:SECOND_LOOK]]
    starts = [known, *designs[np.argsort(-value(designs), kind="stable")[:ROUGH_STARTS]]]
    ends = [polish(value, start, 120 * d_x) for start in starts]
    return max(ends, key=lambda end: end[1])


def polish(value: Callable[[Array], Array], start: Array, evaluations: int, size: float = 0.05) -> tuple[Array, float]:
    """argmax and max near ``start`` by Nelder and Mead's simplex, whose first edges are ``size`` long."""
    from scipy.optimize import minimize

    inward = np.where(start > 0.5, -size, size)
    simplex = np.vstack([start, start + np.diag(inward)])

    def loss(x: Array) -> float:
        return -float(value(x))

    end = minimize(
        loss,
        start,
        method="Nelder-Mead",
        bounds=[(0.0, 1.0)] * len(start),
        options={"xatol": 1e-6, "fatol": 1e-9, "maxfev": evaluations, "initial_simplex": simplex},
    )
    return np.asarray(end.x), -float(end.fun)


def evolve(value: Callable[[Array], Array], d_x: int, population: int) -> Array:
    """A good design (d_x,) by differential evolution, which asks for many values (n, d_x) → (n,) at once."""
    from scipy.optimize import Bounds, differential_evolution

    def losses(x: Array, /) -> Any:  # an array, which the stubs of SciPy do not expect of a vectorized function
        return -value(x.T)

    end = differential_evolution(
        losses,
        Bounds(np.zeros(d_x), np.ones(d_x)),
        maxiter=60,
        popsize=max(1, population // d_x),
        polish=False,
        vectorized=True,
        updating="deferred",
        rng=np.random.default_rng(0),
    )
    return np.asarray(end.x)


LEVEL_STARTS = 2
LEAST_GAIN = 1e-9  # of an exchange, relative to the value

Value = Callable[[Array], Array]
ValueAndGradient = Callable[[Array], tuple[Array, Array]]


def real_columns(space: Space) -> Array:
    """One for a coded column (d_x) of a real variable, zero for others."""
    mask = np.zeros(space.d_x)
    mask[[column.start for column in space.columns if column.kind == "real"]] = 1.0
    return mask


def maximize_over_levels(
    value: Value, value_and_gradient: ValueAndGradient, space: Space, landmark: Sequence[float] | None = None
) -> Array:
    """argmax (d_x,) over the designs of ``space`` of a function that is smooth in its real variables."""
    designs = space.snap(quasi_random_designs(space.d_x))
    starts = list(designs[np.argsort(-value(designs), kind="stable")[:LEVEL_STARTS]])
    if landmark is not None:
        starts.insert(0, space.snap(np.array(landmark)))
    search = _Search(value, value_and_gradient, space)
    ends = [search.from_design(start) for start in starts]
    winner = max(ends, key=lambda x: float(value(x)))
    winner.flags.writeable = False
    return winner


class _Search:
    def __init__(self, value: Value, value_and_gradient: ValueAndGradient, space: Space) -> None:
        self._value, self._value_and_gradient, self._space = value, value_and_gradient, space
        self._real = real_columns(space) > 0

    def from_design(self, x: Array) -> Array:
        while True:
            x = self._settled(x)
            nearby = self._exchanged(x)
            best = max(map(self._climbed, nearby), key=lambda one: float(self._value(one)))
            if not self._better(best, x):
                best = self._climbed(self._best(np.concatenate([self._exchanged(one) for one in nearby])))
                if not self._better(best, x):
                    return x
            x = best

    def _settled(self, x: Array) -> Array:
        """Where exchanges of one level and climbs, in turn, lead from ``x``."""
        x = self._climbed(x)
        while self._better(best := self._best(self._exchanged(x)), x):
            x = self._climbed(best)
        return x

    def _best(self, designs: Array) -> Array:
        best: Array = designs[int(self._value(designs).argmax())]
        return best

    def _better(self, new: Array, old: Array) -> bool:
        before = float(self._value(old))
        return float(self._value(new)) > before + LEAST_GAIN * max(1.0, abs(before))

    def _exchanged(self, x: Array) -> Array:
        """Every design (n, d_x) with another level of one variable."""
        found = []
        for column in self._space.columns:
            if column.kind == "real":
                continue
            place = slice(column.start, column.stop)
            for level in self._space.levels(column.name):
                if not np.array_equal(level, x[place]):
                    other = x.copy()
                    other[place] = level
                    found.append(other)
        return np.array(found)

    def _climbed(self, x: Array) -> Array:
        """The best design (d_x,) with the same levels, as far as a local search goes."""
        from scipy.optimize import minimize

        real = self._real
        if not real.any():
            return x

        def loss(part: Array) -> tuple[float, Array]:
            design = x.copy()
            design[real] = part
            found, gradient = self._value_and_gradient(design)
            return -float(found), -gradient[real]

        end = minimize(
            loss,
            x[real],
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, 1.0)] * int(real.sum()),
            options={"ftol": 0.0, "gtol": 1e-10, "maxiter": 500},
        )
        best = x.copy()
        best[real] = np.clip(end.x, 0.0, 1.0)
        return best
