"""The best design where some variables are whole numbers or choices.

From each of several designs: exchanges of one level as long as they pay; L-BFGS-B in the real variables; then every
exchange of one level with a climb of its own, since a level may be better only once the real variables have followed;
then every exchange of two levels. It ends where none of these improves. With an E f that is concave between levels, as
the registered problems have it, what is left to chance is the levels alone, and tests go through all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from edrbo.bench.problems.oracle.distributions import Array
from edrbo.bench.problems.oracle.maximum import quasi_random_designs
from edrbo.space import Space

STARTS = 2
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
    starts = list(designs[np.argsort(-value(designs), kind="stable")[:STARTS]])
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
