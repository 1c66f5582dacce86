"""Several rows of one run: an hour at one design with a row each minute, every one in a context of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import InvalidContextError, InvalidEventError, InvalidValueError
from edrbo.records import events as e
from edrbo.records.checks import read_contexts, read_noise, read_value
from edrbo.records.settings import Settings
from edrbo.space import Space

Array = NDArray[np.float64]

MOST_ROWS = 10_000
ONE_BY_ONE = "give one context and one value for each row"


@dataclass(frozen=True, eq=False)
class Series:
    """Contexts n × d_c, NaN where not known; values n; known variances of their noise n, NaN where not known."""

    contexts: Array
    values: Array
    noises: Array

    def __len__(self) -> int:
        return len(self.values)

    @property
    def complete(self) -> NDArray[np.bool_]:
        """The rows (n) whose context is known."""
        return np.asarray(~np.isnan(self.contexts).any(axis=1), dtype=np.bool_)

    def same(self, other: Series) -> bool:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return all(np.array_equal(one, two, equal_nan=True) for one, two in pairs)

    def with_row(self, row: int, context: Array | None, value: float | None, noise: float | None) -> Series:
        """With something else in one row; of a context what is NaN stays."""
        if not 0 <= row < len(self):
            raise InvalidValueError(f"there is no row {row}", f"the rows are 0 to {len(self) - 1}")
        parts = {"contexts": self.contexts.copy(), "values": self.values.copy(), "noises": self.noises.copy()}
        if context is not None:
            parts["contexts"][row] = np.where(np.isnan(context), self.contexts[row], context)
        parts["values"][row] = self.values[row] if value is None else value
        parts["noises"][row] = self.noises[row] if noise is None else noise
        return replace(self, **parts)

    def fields(self) -> dict[str, Any]:
        """As an event has them."""
        return {
            "value": mean_of(self.values.tolist()),
            "contexts": self.contexts,
            "values": self.values,
            "noises": None if np.isnan(self.noises).all() else self.noises,
        }


def mean_of(values: Sequence[float]) -> float:
    """The same on every machine, and a number wherever the values are."""
    return math.fsum(value / len(values) for value in values)


def told_series(settings: Settings, contexts: Any, values: Any, noise: Any) -> dict[str, Any]:
    """The fields of an event from what people tell: rows of contexts and values, and a variance for each or for all."""
    space = settings.space
    need_one_outcome(settings)
    if values is None or isinstance(values, str | bytes | Mapping) or not np.iterable(values):
        raise InvalidValueError(f"the values are {values!r}", "give a list, as in tell(s, contexts=[…], values=[…])")
    numbers = np.array([read_value(value) for value in values], dtype=np.float64)
    if not len(numbers):
        raise InvalidValueError("there is no value", "give at least one row")
    if contexts is None and space.d_c:
        raise InvalidContextError("there are values and no contexts", ONE_BY_ONE)
    if contexts is not None and not space.d_c:
        raise InvalidContextError("this space has no context variables", "tell(s, values=[…])")
    rows = space.read_contexts(contexts, partial=True) if space.d_c else np.empty((len(numbers), 0))
    if len(rows) != len(numbers):
        raise InvalidContextError(f"{len(rows)} contexts for {len(numbers)} values", ONE_BY_ONE)
    return Series(rows, numbers, _variances(noise, len(numbers))).fields()


def need_one_outcome(settings: Settings) -> None:
    if settings.outcomes is not None:
        raise InvalidValueError("several rows are told, and there are several outcomes", "tell the rows one by one")


def _variances(noise: Any, count: int) -> Array:
    given = list(noise) if np.iterable(noise) and not isinstance(noise, str | bytes) else [noise] * count
    if len(given) != count:
        raise InvalidValueError(f"{len(given)} noise variances for {count} values", "give one for each row, or one")
    return np.array([np.nan if (one := read_noise(part)) is None else one for part in given], dtype=np.float64)


def series_of(event: e.Told, space: Space, settings: Settings) -> Series | None:
    """The rows of an event, checked, in the terms of ``space``; None if it tells one outcome."""
    if event.values is None:
        if event.contexts is not None or event.noises is not None:
            raise InvalidEventError("rows without values", ONE_BY_ONE)
        return None
    need_one_outcome(settings)
    values, contexts = np.atleast_1d(event.values), event.contexts
    if event.context is not None or event.noise is not None:
        raise InvalidEventError("both one outcome and several rows are told", "tell one or the other")
    if values.ndim != 1 or not 0 < len(values) <= MOST_ROWS:
        raise InvalidEventError(f"values of shape {values.shape}", f"a run has 1 to {MOST_ROWS} rows")
    for value in values.tolist():
        read_value(value)
    if space.d_c:
        contexts = read_contexts(np.empty((0, 0)) if contexts is None else contexts, space)
    else:
        contexts = np.empty((len(values), 0))
    noises = np.full(len(values), np.nan) if event.noises is None else np.atleast_1d(event.noises)
    if len(contexts) != len(values) or noises.shape != values.shape:
        raise InvalidEventError(f"{len(contexts)} contexts and {len(noises)} variances for {len(values)} values")
    if not (np.isnan(noises) | (np.isfinite(noises) & (noises >= 0))).all():
        raise InvalidValueError("a noise variance is negative or infinite", "it is zero or more")
    return Series(contexts, values, noises)
