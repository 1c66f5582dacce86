"""What has been observed: designs, contexts and outcomes, frozen and checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import EdrboError, InvalidContextError, InvalidDesignError, InvalidValueError
from edrbo.space.point_tables import Array


@dataclass(frozen=True, eq=False)
class Observations:
    """n evaluations y_i = f(x_i, c_i) + noise.

    x: (n, d_x) designs, coded in the unit cube.
    c: (n, d_c) contexts in the user's units; NaN is what is not known of them.
    y: (n,) outcomes, finite.
    noise: (n,) known variances of the outcomes' noise; NaN where it is not known.

    The arrays are read-only copies.
    """

    x: Array
    c: Array
    y: Array
    noise_variance: Array

    def __post_init__(self) -> None:
        shapes: tuple[tuple[str, int, type[EdrboError]], ...] = (
            ("x", 2, InvalidDesignError),
            ("c", 2, InvalidContextError),
            ("y", 1, InvalidValueError),
            ("noise_variance", 1, InvalidValueError),
        )
        for name, ndim, error in shapes:
            object.__setattr__(self, name, _frozen(name, getattr(self, name), ndim, error))
        lengths = {name: len(getattr(self, name)) for name, _, _ in shapes}
        if len(set(lengths.values())) != 1:
            raise InvalidValueError(f"the observations differ in length: {lengths}", "one row of each per outcome")
        self._check_values()

    def _check_values(self) -> None:
        if not ((self.x >= 0) & (self.x <= 1)).all():
            raise InvalidDesignError("a coded design leaves the unit cube", "use Space.encode_designs")
        known = np.isfinite(self.c)
        if not (known | np.isnan(self.c)).all():
            raise InvalidContextError("a context is infinite", "give a finite number, or no context at all")
        if not np.isfinite(self.y).all():
            value = float(self.y[np.argmin(np.isfinite(self.y))])
            raise InvalidValueError(f"an outcome is {value!r}", "tell a failed evaluation as failed")
        if not (np.isnan(self.noise_variance) | ((self.noise_variance >= 0) & np.isfinite(self.noise_variance))).all():
            raise InvalidValueError(
                "a noise variance is negative or infinite", "give a variance of zero or more, or leave it out"
            )

    @classmethod
    def empty(cls, d_x: int, d_c: int) -> Observations:
        """No observation yet."""
        return cls(np.empty((0, d_x)), np.empty((0, d_c)), np.empty(0), np.empty(0))

    def append(self, x: Any, c: Any, y: Any, noise_variance: Any = None) -> Observations:
        """These observations and one or more after them.

        x: (d_x,) or (m, d_x); c: (d_c,) or (m, d_c), or None if not known; y: a number or (m,);
        noise: a number or (m,), or None if not known.
        """
        more_y = np.atleast_1d(_floats("y", y, InvalidValueError))
        rows = len(more_y)
        more_x = np.atleast_2d(_floats("x", x, InvalidDesignError))
        unknown = np.full((rows, self.c.shape[1]), np.nan)
        more_c = unknown if c is None else np.atleast_2d(_floats("c", c, InvalidContextError))
        variances = np.nan if noise_variance is None else _floats("noise_variance", noise_variance, InvalidValueError)
        more_noise = np.full(rows, variances) if np.ndim(variances) == 0 else np.asarray(variances)
        _check_width("design", more_x, self.x.shape[1], InvalidDesignError)
        _check_width("context", more_c, self.c.shape[1], InvalidContextError)
        return self.followed_by(Observations(more_x, more_c, more_y, more_noise))

    def followed_by(self, more: Observations) -> Observations:
        """These observations and those of ``more`` after them."""
        return Observations(
            np.concatenate([self.x, more.x]),
            np.concatenate([self.c, more.c]),
            np.concatenate([self.y, more.y]),
            np.concatenate([self.noise_variance, more.noise_variance]),
        )

    def __len__(self) -> int:
        return len(self.y)

    @property
    def complete(self) -> NDArray[np.bool_]:
        """(n,) whether the context is known."""
        return np.asarray(np.isfinite(self.c).all(axis=1), dtype=np.bool_)

    def __repr__(self) -> str:
        missing = int((~self.complete).sum())
        note = f", {missing} without a context" if missing else ""
        return f"Observations({len(self)} of {self.x.shape[1]} + {self.c.shape[1]} inputs{note})"


def _floats(name: str, values: Any, error: type[EdrboError]) -> Array:
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "iufb":
        raise error(f"{name} is {values!r}", "it must be made of numbers")
    with np.errstate(over="ignore"):  # what float64 cannot hold becomes infinite and is refused as such
        return array.astype(np.float64)


def _frozen(name: str, values: Any, ndim: int, error: type[EdrboError]) -> Array:
    array = _floats(name, values, error)
    if array.ndim != ndim:
        raise error(f"{name} has shape {array.shape}", f"it must have {ndim} dimension{'s' * (ndim != 1)}")
    array.setflags(write=False)
    return array


def _check_width(what: str, rows: Array, width: int, error: type[EdrboError]) -> None:
    if rows.ndim != 2 or rows.shape[1] != width:
        raise error(f"the {what}s have shape {rows.shape}", f"a row must hold {width} coded values")
