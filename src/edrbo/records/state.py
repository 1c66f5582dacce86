"""Everything known of an experiment, as one immutable value, and the only way from one to the next: ``apply``.

``apply`` checks an event and gives the state after it; an event that cannot be is an error and leaves nothing behind.
Whatever writes (Optimizer, Study, tables, Optuna's trials, JSON) makes events and passes them through here, so what was
accepted once can always be read again. Tables are derived when first read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import EdrboError, InvalidContextError, InvalidDesignError, InvalidValueError
from edrbo.records import events as e
from edrbo.records.context_log import ContextBatch, ContextLog
from edrbo.records.events import Event, Undone
from edrbo.records.goals import as_goal
from edrbo.records.reducer import Draft, undone
from edrbo.records.run import Checkpoint, Contents, Run, Status
from edrbo.records.settings import Settings
from edrbo.space import Space
from edrbo.space.cost_function import Cost

Array = NDArray[np.float64]

GROWING = (e.Asked, e.Reported, e.Failed, e.Cancelled, e.Seen)  # they change nothing of what was reported before them


class DerivedTables:
    """The runs of ``contents``, as ``State`` describes each. The numbers taken for suggestions play no part."""

    def __init__(self, contents: Contents) -> None:
        # Not the contents as a whole: a state holds its tables, and a circle would be kept until it is looked for.
        self._space, self._runs, self._seen = contents.settings.space, contents.runs, contents.seen
        self._reported_order, self._complete_order = contents.reported_order, contents.complete_order

    def followed_by(self, contents: Contents, events: Sequence[e.Event]) -> DerivedTables:
        """The tables of ``contents``, to which ``events`` led from here.

        Most events only add: then what was worked out is gone on from, so that a step of a long study costs hardly
        more than one of a short one.
        """
        after = DerivedTables(contents)
        if all(isinstance(event, GROWING) for event in events):
            vars(after).update(self._grown(contents, events))
        return after

    def _grown(self, after: Contents, events: Sequence[e.Event]) -> Iterator[tuple[str, object]]:
        """Name and value of what is known here and holds of ``after``, with what ``events`` add."""
        known, runs = vars(self), after.runs
        new = [key for key in after.reported_order[len(self._reported_order) :] if _counts(runs[key])]
        if "reported" in known:
            last = next(reversed(self.reported), None)
            first = 0 if last is None else self.reported[last] + count_of(self._runs[last])
            yield "reported", self.reported | _first_rows(new, runs, first)
        if "owners" in known:
            yield "owners", np.concatenate([self.owners, _owners(new, runs)]) if new else self.owners
        if "training_order" in known and (order := self._grown_order(after, new)) is not None:
            yield "training_order", order
        if "observations" in known:
            more = _observations([runs[key] for key in new], self._space)
            yield "observations", self.observations.followed_by(more) if new else self.observations
        if "pending" in known:
            asked = (event.id for event in events if isinstance(event, e.Asked))
            keys = dict.fromkeys((*self.pending, *asked))
            yield "pending", {key: runs[key].x for key in keys if _is(runs[key], "pending")}
        # a context of which more is reported goes to the end
        if "log" in known and after.seen[: len(self._seen)] == self._seen:
            met = tuple(_batches(after.seen[len(self._seen) :], runs))
            yield "log", self.log.followed_by(met)
        if "failed" in known and not any(isinstance(event, e.Failed) for event in events):
            yield "failed", self.failed

    def _grown_order(self, after: Contents, new: Sequence[int]) -> NDArray[np.intp] | None:
        """``training_order`` with the runs that are complete since, where these are the ``new`` ones; else None."""
        complete = after.complete_order[len(self._complete_order) :]
        grown = after.complete_order[: len(self._complete_order)] == self._complete_order
        if not grown or not set(complete) <= set(new):
            return None
        if not complete:
            return self.training_order
        rows = _first_rows(new, after.runs, len(self.owners))
        order = [rows[key] + k for key in complete for k in range(count_of(after.runs[key]))]
        contexts = _observations([after.runs[key] for key in new], self._space).complete
        first = len(self.owners)
        return np.concatenate([self.training_order, [row for row in order if contexts[row - first]]]).astype(np.intp)

    @cached_property
    def owners(self) -> NDArray[np.intp]:
        return _owners(self.reported, self._runs)

    @cached_property
    def observations(self) -> Observations:
        return _observations([self._runs[key] for key in self.reported], self._space)

    @cached_property
    def reported(self) -> dict[int, int]:
        return _first_rows([key for key in self._reported_order if _counts(self._runs[key])], self._runs, 0)

    @cached_property
    def training_order(self) -> NDArray[np.intp]:
        kept = [key for key in self._complete_order if key in self.reported]
        rows = [self.reported[key] + k for key in kept for k in range(count_of(self._runs[key]))]
        order = np.array(rows, dtype=np.intp)
        return order[self.observations.complete[order]]

    @cached_property
    def pending(self) -> dict[int, Array]:
        return {key: run.x for key, run in self._runs.items() if _is(run, "pending")}

    @cached_property
    def failed(self) -> dict[int, Array]:
        return {key: run.x for key, run in self._runs.items() if _is(run, "failed")}

    @cached_property
    def log(self) -> ContextLog:
        return ContextLog(tuple(_batches(self._seen, self._runs)))


def count_of(run: Run) -> int:
    """How many rows a run that was reported has among the observations."""
    return 1 if run.series is None else int(run.series.measured.sum())


def _first_rows(keys: Sequence[int], runs: Mapping[int, Run], first: int) -> dict[int, int]:
    """Id → the first row of each run, the first of them at ``first``."""
    found = {}
    for key in keys:
        found[key] = first
        first += count_of(runs[key])
    return found


def _owners(keys: Iterable[int], runs: Mapping[int, Run]) -> NDArray[np.intp]:
    """The run of each row of the observations of ``keys``."""
    found = np.array([key for key in keys for _ in range(count_of(runs[key]))], dtype=np.intp)
    found.setflags(write=False)
    return found


def _observations(runs: Sequence[Run], space: Space) -> Observations:
    rows = [row for run in runs for row in _rows(run, space)]
    return Observations(
        np.array([row[0] for row in rows]).reshape(len(rows), space.d_x),
        np.array([row[1] for row in rows]).reshape(len(rows), space.d_c),
        np.array([row[2] for row in rows], dtype=np.float64),
        np.array([row[3] for row in rows], dtype=np.float64),
    )


def _counts(run: Run) -> bool:
    """Whether there is something to learn from it; of several outcomes the main one may be missing."""
    return not run.dropped and run.value is not None


def _rows(run: Run, space: Space) -> Iterator[tuple[Array, Array, float | None, float]]:
    """Design, context, value and noise of each row of a run; NaN for what is not known."""
    if run.series is not None:
        some = run.series.measured
        contexts, values, noise_variances = (
            part[some] for part in (run.series.contexts, run.series.values, run.series.noise_variances)
        )
        yield from (
            (run.x, c, y, s) for c, y, s in zip(contexts, values.tolist(), noise_variances.tolist(), strict=True)
        )
        return
    context = np.full(space.d_c, np.nan) if run.context is None else run.context
    yield run.x, context, run.value, np.nan if run.noise_variance is None else run.noise_variance


def _is(run: Run, status: Status) -> bool:
    return run.status == status and not run.dropped


def _batches(seen: Iterable[int | ContextBatch], runs: Mapping[int, Run]) -> Iterator[ContextBatch]:
    for entry in seen:
        if isinstance(entry, ContextBatch):
            yield entry
        elif not runs[entry].dropped and len(contexts := runs[entry].contexts):
            yield ContextBatch(contexts, np.ones(len(contexts)), len(contexts), one_run=True)


AGES = (4096, 512, 64)  # checkpoints lie about so many events back


@dataclass(frozen=True, eq=False)
class State(Contents):
    """See ``Contents`` for what it holds."""

    _tables: DerivedTables = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tables", DerivedTables(self))

    @classmethod
    def start(cls, settings: Settings) -> State:
        """Nothing has happened yet."""
        return cls(settings)

    @property
    def space(self) -> Space:
        return self.settings.space

    @property
    def version(self) -> int:
        """How often the settings were amended."""
        return len(self.amendments)

    def apply(self, *events: Event) -> State:
        """The state after ``events``; if one of them cannot be, an error and no change."""
        draft = Draft(self)
        taking_back = [event for event in events if isinstance(event, Undone)]
        if 1 < len(taking_back) == len(events):
            draft.take_back(taking_back)
            return self.after(draft, events)
        for event in events:
            draft.apply(event)
        return self.after(draft, events)

    def replay(self, events: Sequence[Event]) -> State:
        """The state after ``events`` that were accepted once, one after the other. What is taken back among them is not
        applied first, so that reading a long history takes one step an event."""
        gone = undone(events)
        if not gone <= {event.ref for event in events}:
            return self.apply(*events)
        draft = Draft(self)
        for index, event in enumerate(events):
            if index and len(events) - index in AGES:  # what happened last is taken back most often
                draft.checkpoints.append(draft.checkpoint(gone))
            draft.replay(event, gone)
        return self.after(draft, events)

    def after(self, draft: Draft, events: Sequence[Event] | None = None) -> State:
        """What a draft of this state came to; ``events`` are those it took, if that is known."""
        if len(draft.history) - (draft.checkpoints[-1].count if draft.checkpoints else 0) >= AGES[-1]:
            point = Draft(self).checkpoint(undone(self.history))
            draft.checkpoints = [*_thinned(draft.checkpoints, len(draft.history)), point]
        after = replace(self, **draft.fields())
        taken = after.history[len(self.history) :] if events is None else events
        object.__setattr__(after, "_tables", self._tables.followed_by(after, taken))
        return after

    @property
    def last(self) -> Event | None:
        """The last event that was not undone, None if there is none."""
        gone = undone(self.history)
        past = (event for event in reversed(self.history) if not isinstance(event, Undone) and event.ref not in gone)
        return next(past, None)

    @property
    def free_ref(self) -> str:
        """A name for the next event: how many there were, or the next number that no event has."""
        number = len(self.history)
        while str(number) in self.refs:
            number += 1
        return str(number)

    # ---------------------------------------------------------------- what a model wants to know

    @property
    def observations(self) -> Observations:
        """Outcomes in the order in which they came, without those that were dropped."""
        return self._tables.observations

    @property
    def reported(self) -> Mapping[int, int]:
        """Id → row of the observations, the first one of a run that has several."""
        return self._tables.reported

    def of_outcome(self, name: str) -> State:
        """The same experiment as if ``name`` were its only outcome: its values, direction and goal; all runs, all
        contexts."""
        outcomes = self.settings.outcomes
        assert outcomes is not None
        part = outcomes[outcomes.known(name)]
        main, goal = name == outcomes.main, self.settings.goal if part.goal is None else as_goal(part.goal)
        terms: dict[str, Any] = {"outcome": name, "unit": part.unit or self.settings.unit * main, "goal": goal}
        terms["outcome_range"] = self.settings.outcome_range if main else None
        settings = replace(self.settings, outcomes=None, direction=part.direction, **terms)
        if main:
            return replace(self, settings=settings)
        runs = {
            key: replace(
                run,
                value=run.others.get(name),
                control=None,
                measured=None,
                noise_variance=run.others_noise_variance.get(name),
                outcome_forecast=None,
                series=None if run.series is None else run.series.of(name),
            )
            for key, run in self.runs.items()
        }
        return replace(self, settings=settings, runs=runs)

    @property
    def owners(self) -> NDArray[np.intp]:
        """The run of each row of the observations (n)."""
        return self._tables.owners

    def rows_of(self, key: int) -> range:
        """The rows of a run among the observations; none if it is not there."""
        first = self.reported.get(key)
        return range(0) if first is None else range(first, first + count_of(self.runs[key]))

    @property
    def training_order(self) -> NDArray[np.intp]:
        """Rows of the observations with a known context, in the order in which they became so.

        A context that comes late does not change the order of what was known before it.
        """
        return self._tables.training_order

    @property
    def pending(self) -> Mapping[int, Array]:
        """Id → design of what is being tried."""
        return self._tables.pending

    @property
    def failed(self) -> Mapping[int, Array]:
        """Id → design of what gave no outcome."""
        return self._tables.failed

    @property
    def log(self) -> ContextLog:
        """All contexts in order of arrival, without those of dropped runs."""
        return self._tables.log


def _thinned(points: Sequence[Checkpoint], count: int) -> list[Checkpoint]:
    """Of the checkpoints before event ``count`` the newest of each age."""
    newest = [next((point for point in reversed(points) if count - point.count >= age), None) for age in AGES]
    return list(dict.fromkeys(point for point in newest if point is not None))


@dataclass(frozen=True, eq=False)
class Observations:
    """n evaluations y_i = f(x_i, c_i) + noise.

    x: (n, d_x) designs, coded in the unit cube.
    c: (n, d_c) contexts in the user's units; NaN is what is not known of them.
    y: (n,) outcomes, finite.
    noise_variance: (n,) known variances of the outcomes' noise; NaN where it is not known.

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


@dataclass(frozen=True)
class Spending:
    """``costs`` by run, of those that have ended and whose cost is known, in order; left out ones are paid too."""

    costs: Mapping[int, float]
    unknown: int  # runs that have ended and whose cost nobody said

    @property
    def total(self) -> float:
        return float(sum(self.costs.values()))


def spending(state: State) -> Spending | None:
    """None where nothing is known of costs at all."""
    cost, ended = state.settings.cost, [run for run in state.runs.values() if run.status in ("reported", "failed")]
    if cost is None and all(run.cost is None for run in ended):
        return None
    costs = {run.id: known for run in ended if (known := _cost(run, cost)) is not None}
    return Spending(costs, len(ended) - len(costs))


def _cost(run: Run, cost: Cost | None) -> float | None:
    if run.cost is not None or cost is None:
        return run.cost
    return float(cost.of(np.asarray(run.x)[None])[0])
