"""Several rows of one run as they are reported, of one outcome or of several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import InvalidContextError, InvalidValueError
from edrbo.records.outcomes import Outcomes
from edrbo.records.series import ONE_BY_ONE, Series, checked
from edrbo.records.settings import Settings
from edrbo.records.validation import read_noise, read_value

Array = NDArray[np.float64]

HOW = "give a list, as in tell(s, contexts=[…], values=[…])"
HOW_SEVERAL = 'give lists by name, as in values={"gloss": […], "haze": […]}, or a list of dictionaries'


def reported_series(settings: Settings, contexts: Any, values: Any, noise_variance: Any) -> dict[str, Any]:
    """The fields of an event: rows of contexts and values, and a variance for each or for all.

    Of several outcomes, values and variances are lists by name, or one dictionary a row; None: not measured.
    """
    if values is None or isinstance(values, str | bytes) or not np.iterable(values):
        raise InvalidValueError(f"the values are {values!r}", HOW)
    outcomes = settings.outcomes
    series = _one(values, noise_variance) if outcomes is None else _several(outcomes, values, noise_variance)
    return checked(_with_contexts(settings, series, contexts)).fields()


def _one(values: Any, noise_variance: Any) -> Series:
    if isinstance(values, Mapping):
        raise InvalidValueError(f"the values are {values!r}", HOW)
    numbers = np.array([read_value(value) for value in values], dtype=np.float64)
    return Series(np.empty((len(numbers), 0)), numbers, _variances(noise_variance, len(numbers)))


def _several(outcomes: Outcomes, values: Any, noise_variance: Any) -> Series:
    columns = _columns(outcomes, values, "the values")
    (count, *more) = {len(column) for column in columns.values()} or {0}
    if more:
        lengths = ", ".join(f"{len(column)} of {name}" for name, column in columns.items())
        raise InvalidValueError(
            f"the rows are {lengths}", "give one entry for each row, None where nothing was measured"
        )
    variances = {} if noise_variance is None else _noises(outcomes, noise_variance, count)
    stray = [name for name in variances if name not in columns]
    if stray:
        raise InvalidValueError(f"{stray[0]!r} has a noise and no value", "give both, or leave the noise out")
    nothing = np.full(count, np.nan)
    found = {name: (_numbers(column), variances.get(name, nothing)) for name, column in columns.items()}
    for name in found if isinstance(noise_variance, Mapping) else ():
        if not np.iterable(noise_variance.get(name)):  # one for all rows in which it was measured
            found[name] = (found[name][0], np.where(np.isnan(found[name][0]), np.nan, found[name][1]))
    values_of_main, noises_of_main = found.pop(outcomes.main, (nothing, nothing))
    return Series(np.empty((count, 0)), values_of_main, noises_of_main, found)


def _numbers(column: list[Any]) -> Array:
    return np.array([np.nan if value is None else read_value(value) for value in column], dtype=np.float64)


def _columns(outcomes: Outcomes, given: Any, what: str) -> dict[str, list[Any]]:
    """Entries by outcome, from lists by name or from a dictionary a row."""
    if isinstance(given, Mapping):
        for name, column in given.items():
            if isinstance(column, str | bytes | Mapping) or not np.iterable(column):
                raise InvalidValueError(f"{what} of {name!r} are {column!r}", HOW_SEVERAL)
        return {outcomes.known(name): list(column) for name, column in given.items()}
    rows = list(given)
    if not all(isinstance(row, Mapping) for row in rows):
        raise InvalidValueError(f"{what} are {rows[:3]!r}, and there are several outcomes", HOW_SEVERAL)
    names = dict.fromkeys(outcomes.known(name) for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _noises(outcomes: Outcomes, noise_variance: Any, count: int) -> dict[str, Array]:
    if isinstance(noise_variance, Mapping):
        return {
            outcomes.known(name): _variances(part, count) for name, part in noise_variance.items() if part is not None
        }
    if isinstance(noise_variance, str | bytes) or not isinstance(noise_variance, Iterable):
        raise InvalidValueError(f"the noise is {noise_variance!r}, and there are several outcomes", HOW_SEVERAL)
    return {
        name: _variances(column, count) for name, column in _columns(outcomes, noise_variance, "the noises").items()
    }


def _with_contexts(settings: Settings, series: Series, contexts: Any) -> Series:
    space, count = settings.space, len(series)
    if not count:
        raise InvalidValueError("there is no value", "give at least one row")
    if contexts is None and space.d_c:
        raise InvalidContextError("there are values and no contexts", ONE_BY_ONE)
    if contexts is not None and not space.d_c:
        raise InvalidContextError("this space has no context variables", "tell(s, values=[…])")
    rows = space.read_contexts(contexts, partial=True) if space.d_c else np.empty((count, 0))
    if len(rows) != count:
        raise InvalidContextError(f"{len(rows)} contexts for {count} values", ONE_BY_ONE)
    return Series(rows, series.values, series.noise_variances, series.others)


def _variances(noise_variance: Any, count: int) -> Array:
    given = (
        list(noise_variance)
        if np.iterable(noise_variance) and not isinstance(noise_variance, str | bytes)
        else [noise_variance] * count
    )
    if len(given) != count:
        raise InvalidValueError(f"{len(given)} noise variances for {count} values", "give one for each row, or one")
    return np.array([np.nan if (one := read_noise(part)) is None else one for part in given], dtype=np.float64)
