"""What a state holds: runs, contexts, changes of mind and the history that led to them; what is handed out to be
evaluated; and series, the several rows of one run: an hour at one design with a row each minute, every one in a context
of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import InvalidEventError, InvalidValueError
from edrbo.records import events as e
from edrbo.records.context_log import ContextBatch
from edrbo.records.events import Corrected, Event
from edrbo.records.settings import Settings
from edrbo.records.validation import read_contexts, read_value
from edrbo.space import Space

Array = NDArray[np.float64]
Column = tuple[Array, Array]  # values and known variances of their noise (n each), NaN where not measured or not known

MOST_ROWS = 10_000
ONE_BY_ONE = "give one context and one value for each row"


@dataclass(frozen=True, eq=False)
class Series:
    """Contexts n × d_c, NaN where not known; values and noises n; of several outcomes those of the main one, and the
    columns of the ``others`` by name."""

    contexts: Array
    values: Array
    noise_variances: Array
    others: Mapping[str, Column] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def complete(self) -> NDArray[np.bool_]:
        """The rows (n) whose context is known."""
        return np.asarray(~np.isnan(self.contexts).any(axis=1), dtype=np.bool_)

    @property
    def measured(self) -> NDArray[np.bool_]:
        """The rows (n) that have a value."""
        return np.asarray(~np.isnan(self.values), dtype=np.bool_)

    @property
    def mean(self) -> float | None:
        return mean_of(self.values)

    @property
    def means(self) -> dict[str, float]:
        """Of the outcomes besides the main one that were measured."""
        found = {name: mean_of(values) for name, (values, _) in self.others.items()}
        return {name: mean for name, mean in found.items() if mean is not None}

    def of(self, name: str) -> Series:
        """The same rows with the values of one of the others alone."""
        nothing = np.full(len(self), np.nan)
        values, noise_variances = self.others.get(name, (nothing, nothing))
        return Series(self.contexts, values, noise_variances)

    def rows(self) -> Iterator[dict[str, tuple[float, float]]]:
        """Value and noise by outcome, "" for the main one, of those that were measured in each row."""
        columns: dict[str, Column] = {"": (self.values, self.noise_variances), **self.others}
        for k in range(len(self)):
            row = {name: (float(y[k]), float(s[k])) for name, (y, s) in columns.items()}
            yield {name: pair for name, pair in row.items() if not math.isnan(pair[0])}

    def same(self, other: Series) -> bool:
        mine, theirs = self._arrays(), other._arrays()
        return mine.keys() == theirs.keys() and all(
            np.array_equal(part, theirs[name], equal_nan=True) for name, part in mine.items()
        )

    def _arrays(self) -> dict[tuple[str, str], Array]:
        found = {
            ("contexts", ""): self.contexts,
            ("values", ""): self.values,
            ("noise_variances", ""): self.noise_variances,
        }
        for name, (values, noise_variances) in self.others.items():
            found |= {("values", name): values, ("noise_variances", name): noise_variances}
        return found

    def with_row(self, event: e.Corrected, context: Array | None) -> Series:
        """With what ``event`` says in one row; of a context what is NaN stays."""
        row = event.row
        assert row is not None
        if not 0 <= row < len(self):
            raise InvalidValueError(f"there is no row {row}", f"the rows are 0 to {len(self) - 1}")
        contexts = self.contexts.copy()
        if context is not None:
            contexts[row] = np.where(np.isnan(context), self.contexts[row], context)
        values, noise_variances = _changed((self.values, self.noise_variances), row, event.value, event.noise_variance)
        others, variances = dict(self.others), event.others_noise_variance or {}
        nothing = np.full(len(self), np.nan)
        for name in {**(event.others or {}), **variances}:
            column = others.get(name, (nothing, nothing))
            others[name] = _changed(column, row, (event.others or {}).get(name), variances.get(name))
        return checked(replace(self, contexts=contexts, values=values, noise_variances=noise_variances, others=others))

    def fields(self) -> dict[str, Any]:
        """As an event has them."""
        others = {name: _listed(values) for name, (values, _) in self.others.items()}
        variances = {
            name: _listed(noise_variances)
            for name, (_, noise_variances) in self.others.items()
            if not np.isnan(noise_variances).all()
        }
        return {
            "value": self.mean,
            "others": self.means or None,
            "contexts": self.contexts,
            "values": self.values,
            "noise_variances": None if np.isnan(self.noise_variances).all() else self.noise_variances,
            "others_values": others or None,
            "others_noise_variances": variances or None,
        }


def _changed(column: Column, row: int, value: float | None, noise_variance: float | None) -> Column:
    values, noise_variances = (part.copy() for part in column)
    values[row] = values[row] if value is None else value
    noise_variances[row] = noise_variances[row] if noise_variance is None else noise_variance
    return values, noise_variances


def _listed(values: Array) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]


def mean_of(values: Array) -> float | None:
    """Of those that are there: the same on every machine, and a number wherever they are; None of none."""
    known = values[~np.isnan(values)].tolist()
    return math.fsum(value / len(known) for value in known) if known else None


def checked(series: Series) -> Series:
    """Every row has an outcome, and every noise a value."""
    empty = ~np.stack([series.measured, *(~np.isnan(values) for values, _ in series.others.values())]).any(axis=0)
    if empty.any():
        hint = "leave the row out; contexts alone are reported by observe_context"
        raise InvalidValueError(f"row {int(empty.argmax())} has no value", hint)
    for name, (values, noise_variances) in {"": (series.values, series.noise_variances), **series.others}.items():
        if not (np.isnan(noise_variances) | (np.isfinite(noise_variances) & (noise_variances >= 0))).all():
            raise InvalidValueError("a noise variance is negative or infinite", "it is zero or more")
        if (np.isnan(values) & ~np.isnan(noise_variances)).any():
            what = f"of {name!r} " if name else ""
            raise InvalidValueError(f"a row has a noise {what}and no value", "give both, or leave the noise out")
    return series


# -------------------------------------------------------------------- from events


def series_of(event: e.Reported, space: Space, settings: Settings) -> Series | None:
    """The rows of an event, checked, in the terms of ``space``; None if it tells one outcome."""
    if event.values is None:
        if any(
            part is not None
            for part in (event.contexts, event.noise_variances, event.others_values, event.others_noise_variances)
        ):
            raise InvalidEventError("rows without values", ONE_BY_ONE)
        return None
    values, contexts = np.atleast_1d(event.values), event.contexts
    if any(part is not None for part in (event.context, event.noise_variance, event.others_noise_variance)):
        raise InvalidEventError("both one outcome and several rows are reported", "tell one or the other")
    if values.ndim != 1 or not 0 < len(values) <= MOST_ROWS:
        raise InvalidEventError(f"values of shape {values.shape}", f"a run has 1 to {MOST_ROWS} rows")
    if space.d_c:
        contexts = read_contexts(np.empty((0, 0)) if contexts is None else contexts, space)
    else:
        contexts = np.empty((len(values), 0))
    noise_variances = (
        np.full(len(values), np.nan) if event.noise_variances is None else np.atleast_1d(event.noise_variances)
    )
    if len(contexts) != len(values) or noise_variances.shape != values.shape:
        raise InvalidEventError(
            f"{len(contexts)} contexts and {len(noise_variances)} variances for {len(values)} values"
        )
    series = checked(Series(contexts, values, noise_variances, _others(event, len(values), settings)))
    for column in (values, *(one for one, _ in series.others.values())):
        for value in column[~np.isnan(column)].tolist() if settings.outcomes is not None else column.tolist():
            read_value(value)
    return series


def _others(event: e.Reported, count: int, settings: Settings) -> dict[str, Column]:
    variances, outcomes = event.others_noise_variances or {}, settings.outcomes
    for name in event.others_values or ():
        if outcomes is None:
            raise InvalidValueError(f"{name!r} was reported, and this study has one outcome", "give lists of numbers")
        if outcomes.known(name) == outcomes.main:
            raise InvalidEventError(f"{name!r} is the main outcome", "its rows are the event's values")
    stray = [name for name in variances if name not in (event.others_values or {})]
    if stray:
        raise InvalidValueError(f"{stray[0]!r} has a noise and no value", "give both, or leave the noise out")
    found = {}
    for name, given in (event.others_values or {}).items():
        column = [_column(name, part, count) for part in (given, variances.get(name, [None] * count))]
        if not np.isnan(column[0]).all():
            found[name] = (column[0], column[1])
    return found


def _column(name: str, given: Any, count: int) -> Array:
    column = np.array([np.nan if part is None else part for part in given], dtype=np.float64)
    if column.shape != (count,):
        raise InvalidEventError(f"{len(column)} entries of {name!r} for {count} rows", ONE_BY_ONE)
    return column


@dataclass(frozen=True)
class Suggestion(Mapping[str, Any]):
    """A design to evaluate, as a mapping of names to values. ``id`` names it until it is reported.

    ``outcome_forecast`` is what is believed of its outcome, if a model chose it (``records/outcome_forecast.py``);
    ``cost`` what its run will cost, as far as that is known.

    Args:
        id: Its number, by which it is reported.
        design: Names to values.
        outcome_forecast: What was believed of its outcome; None if no model chose it.
        cost: What the run is expected to cost, where that is known.
    """

    id: int
    design: dict[str, Any]
    outcome_forecast: Mapping[str, Any] | None = field(default=None, compare=False)
    cost: float | None = field(default=None, compare=False)

    def __getitem__(self, name: str) -> Any:
        return self.design[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.design)

    def __len__(self) -> int:
        return len(self.design)


Status = Literal["pending", "reported", "failed", "cancelled"]


@dataclass(frozen=True, eq=False)
class Run:
    """One evaluation and what is known of it.

    ``x`` is coded (d_x), ``context`` in the user's units (d_c), NaN where it is not known.
    """

    id: int
    x: Array
    status: Status = "pending"
    context: Array | None = None
    value: float | None = None  # less what the control run gave, if there was one
    control: float | None = None  # what it gave, and …
    measured: float | None = None  # … the value as it was measured beside it
    noise_variance: float | None = None
    suggested: bool = True  # asked for, or a design of the user's own
    dropped: bool = False
    why: str | None = None  # it failed, was cancelled or was dropped
    outcome_forecast: Mapping[str, Any] | None = None
    others: Mapping[str, float] = field(default_factory=dict)  # outcomes besides the main one, and …
    others_noise_variance: Mapping[str, float] = field(default_factory=dict)  # … the variances that are known of them
    series: Series | None = None  # several rows; then ``value`` is their mean and ``context`` None
    cost: float | None = None  # as it was reported
    cost_expected: float | None = None  # as it was believed when the design was asked for

    @property
    def known(self) -> bool:
        """Whether its context is known, all of it."""
        if self.series is not None:
            return bool(self.series.complete.all())
        return self.context is not None and not np.isnan(self.context).any()

    @property
    def complete(self) -> bool:
        """Whether a surrogate of (x, c) can learn from it."""
        return self.status == "reported" and self.known and not self.dropped

    @property
    def late(self) -> bool:
        """Whether its outcome waits for its context, or for some of it."""
        return self.status == "reported" and self.series is None and not self.known

    @property
    def contexts(self) -> Array:
        """All that is known of the contexts it met (n × d_c)."""
        if self.series is not None:
            return self.series.contexts
        return np.empty((0, 0)) if self.context is None else self.context[None]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class NamedRun(Run):
    """A run as people read it: ``design`` and ``met`` by name, beside the codes."""

    space: Space

    @property
    def design(self) -> dict[str, Any]:
        """What was set, by name."""
        return self.space.decode_designs(self.x)[0]

    @property
    def met(self) -> dict[str, Any]:
        """What is known of the context it met, by name; of several rows nothing, see ``series``."""
        return {} if self.context is None else dict(self.space.name_contexts(self.context[None])[0])

    def __repr__(self) -> str:
        words = [f"NamedRun({self.id}, {self.status}", f"design={self.design!r}"]
        words += [f"met={self.met!r}"] * bool(self.met)
        words += [f"value={self.value!r}"] * (self.value is not None)
        words += [f"others={dict(self.others)!r}"] * bool(self.others)
        words += [f"{len(self.series)} rows"] if self.series is not None else []
        words += ["dropped"] * self.dropped + [f"why={self.why!r}"] * (self.why is not None)
        return ", ".join(words) + ")"


def set_to(run: Run, x: Array | None) -> Run:
    """``run`` with the design that was really set; what was expected was expected of the other."""
    return (
        run if x is None or np.array_equal(x, run.x) else replace(run, x=x, outcome_forecast=None, cost_expected=None)
    )


def merged(known: Array | None, more: Array | None) -> Array | None:
    """A context (d_c) of which ``more`` is known, or something else."""
    if known is None or more is None:
        return known if more is None else more
    return np.where(np.isnan(more), known, more)


def corrected_row(run: Run, event: Corrected, context: Array | None) -> Run:
    """``run`` with something else in one of its rows, or in all of them where only its design was other."""
    if run.series is None:
        raise InvalidEventError(f"run {run.id} has no rows", "leave the row out")
    if event.row is None:
        if any(
            part is not None
            for part in (event.value, event.noise_variance, event.others, event.others_noise_variance, context)
        ):
            raise InvalidEventError(f"run {run.id} has {len(run.series)} rows", "say which row is corrected")
        return run
    series = run.series.with_row(event, context)
    return replace(run, series=series, value=series.mean, others=series.means)


@dataclass(frozen=True, eq=False)
class Amendment:
    """The settings ``before`` a change of mind, and the values that older runs had of variables it brought."""

    before: Settings
    defaults: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Contents:
    """``runs`` by id in the order of their first event; ``history`` holds every event that was applied."""

    settings: Settings
    runs: Mapping[int, Run] = field(default_factory=dict)
    reported_order: tuple[int, ...] = ()  # ids in the order in which their outcomes came
    complete_order: tuple[int, ...] = ()  # ids in the order in which outcome and context were both known
    seen: tuple[int | ContextBatch, ...] = ()  # contexts in order of arrival: those of a run by its id
    suggested: int = 0  # how many numbers were taken for suggestions
    next_id: int = 0
    amendments: tuple[Amendment, ...] = ()
    history: tuple[Event, ...] = ()
    refs: Set[str] = frozenset()  # the names of all events
    checkpoints: tuple[Checkpoint, ...] = field(default=(), repr=False)  # earlier contents, for what is taken back


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What was known earlier; ``gone`` are the names of events that had been taken back by then."""

    contents: Contents
    gone: Set[str]

    @property
    def count(self) -> int:
        return len(self.contents.history)
