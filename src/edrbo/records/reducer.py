"""The reducer: what each event does to a state, and when it cannot be.

A ``Draft`` is a state being written; ``State.apply`` makes one, applies events and freezes it, and so does the plan
of a table, whose rows go on from one another.

From one version of a space to the next runs keep their settings, and new variables have the value old runs had.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import (
    EdrboError,
    InvalidContextError,
    InvalidEventError,
    InvalidSpaceError,
    InvalidValueError,
    UnknownSuggestionError,
)
from edrbo.records import events as e
from edrbo.records.context_log import ContextBatch, read_weights
from edrbo.records.reported import check_control, keep_outcomes, measured
from edrbo.records.run import Amendment, Checkpoint, Contents, Run, corrected_row, merged, series_of, set_to
from edrbo.records.validation import plain, read_context, read_contexts, read_design, read_id, read_version
from edrbo.space import Space
from edrbo.space.point_tables import close_match

Array = NDArray[np.float64]
Step = tuple[Space, Space, Mapping[str, Any]]  # the space before, after, and the values of what is new


def recode_design(x: Array, steps: Sequence[Step]) -> Array:
    """The same design (d_x) as a point of the last space."""
    for old, new, defaults in steps:
        if old._design == new._design:
            continue
        (design,) = old.decode_designs(x)
        gone = [name for name in design if name not in new.design]
        if gone:
            raise InvalidSpaceError(f"the design variable {gone[0]!r} is gone", "variables cannot be taken away")
        before = {name: variable.default for name, variable in new.design.items() if variable.default is not None}
        values = {**before, **defaults, **design}
        missing = [name for name in new.design if name not in values]
        if missing:
            raise InvalidSpaceError(f"{missing[0]!r} is new", _hint_for_new(missing[0], old.design_names))
        values = {name: values[name] for name in new.design}
        try:
            x = new.encode_designs(values)[0]
        except EdrboError as problem:
            raise InvalidSpaceError(f"a run would leave the space: {problem.message}", problem.hint) from None
    return x


def recode_contexts(rows: Array, steps: Sequence[Step]) -> Array:
    """The same contexts (n × d_c) with the variables of the last space."""
    for old, new, defaults in steps:
        if old._context == new._context:
            continue
        gone = [name for name in old.context_names if name not in new.context]
        if gone:
            raise InvalidSpaceError(f"the context variable {gone[0]!r} is gone", "variables cannot be taken away")
        columns = []
        for name in new.context_names:
            if name in old.context:
                columns.append(_moved(name, old, new, rows[:, old.context_names.index(name)]))
                continue
            value = defaults[name] if defaults.get(name) is not None else new.context[name].default
            if value is None:
                raise InvalidContextError(f"{name!r} is new", _hint_for_new(name, old.context_names))
            columns.append(np.full(len(rows), new.context_numbers({name: value})[name]))
        rows = np.stack(columns, axis=1)
    return rows


def _hint_for_new(name: str, known: Sequence[str]) -> str:
    was = f"say which value the runs so far had, its default: --was {name}=…"
    alike = close_match(name, known, "")
    return f"{alike} Otherwise {was}" if alike else was


def same_positions(old: Space, new: Space) -> bool:
    """Whether the numbers by which contexts of the old space are held mean the same in the new one."""
    return all(was.same_numbers(new.context.get(name)) for name, was in old.context.items())


def _moved(name: str, old: Space, new: Space, numbers: Array) -> Array:
    """The same values (n) of a context variable as the new space holds them: choices may stand elsewhere."""
    was, now = old.context[name], new.context[name]
    if was == now or (was.numeric and not now.size):
        return numbers
    moved = np.full(len(numbers), np.nan)
    for number in np.unique(numbers[~np.isnan(numbers)]).tolist():
        try:
            place = new.context_numbers({name: was.value_of(number)})[name]
        except EdrboError as problem:
            raise InvalidSpaceError(f"a context would leave the space: {problem.message}", problem.hint) from None
        moved[numbers == number] = place
    return moved


FURTHEST = 10**9  # how far the number of a run may be ahead of the next


class Draft:
    """A mutable copy of ``state``."""

    def __init__(self, state: Contents) -> None:
        self.settings = state.settings
        self.runs = dict(state.runs)
        self.reported_order = list(state.reported_order)
        self.complete_order = list(state.complete_order)
        self.seen = list(state.seen)
        self.suggested, self.next_id = state.suggested, state.next_id
        self.amendments = list(state.amendments)
        self.history = list(state.history)
        self.refs = set(state.refs)
        self.checkpoints = list(state.checkpoints)

    def fields(self) -> dict[str, Any]:
        """What it came to, as the fields of a state."""
        parts = {name: part for name, part in vars(self).items() if not name.startswith("_")}
        return {name: tuple(part) if isinstance(part, list) else part for name, part in parts.items()}

    def checkpoint(self, gone: set[str]) -> Checkpoint:
        """What it came to so far, without the events ``gone``."""
        copied = {"runs": dict(self.runs), "refs": frozenset(self.refs), "checkpoints": ()}
        return Checkpoint(Contents(**{**self.fields(), **copied}), frozenset(gone & self.refs))

    def apply(self, event: e.Event) -> None:
        """Check ``event`` and take it in; if it cannot be, an error and the draft is as it was."""
        event = plain(event)
        if event.ref and event.ref in self.refs:
            raise InvalidEventError(f"there is an event {event.ref!r} already", "every event has a name of its own")
        HANDLERS[type(event)](self, event)
        self.history.append(event)
        self.refs.add(event.ref)

    def replay(self, event: e.Event, gone: set[str]) -> None:
        """As ``apply``, for an event that was accepted before; of those that are ``gone`` only the numbers that they
        gave out remain."""
        if event.ref in gone or isinstance(event, e.Undone):
            self.history.append(event)
            self.refs.add(event.ref)
            if isinstance(event, e.Asked | e.Reported | e.Failed):
                self.next_id = max(self.next_id, event.id + 1)
            self.suggested += isinstance(event, e.Asked)
        else:  # it was made plain when it was accepted
            HANDLERS[type(event)](self, event)
            self.history.append(event)
            self.refs.add(event.ref)

    def _asked(self, event: e.Asked) -> None:
        x = self._design(event)
        if x is None:
            raise InvalidEventError("a suggestion has no design", None)
        self._context(event)  # one that cannot be is refused
        key = self._new_id(event.id)
        self.runs[key] = Run(key, x, outcome_forecast=event.outcome_forecast, cost_expected=event.cost)
        self.suggested += 1

    def _reported(self, event: e.Reported) -> None:
        series = series_of(event, self._space(event.version), self.settings)
        run = replace(self._evaluated(event), status="reported", **measured(self.settings, event, None))
        if series is not None:
            contexts = recode_contexts(series.contexts, self._steps(event.version))
            series = replace(series, contexts=contexts)
            if event.control is not None:
                raise InvalidValueError("a run of several rows has a control", "tell one run for each pair")
            run = replace(run, context=None, series=series, value=series.mean, others=series.means)
        check_control(self.settings, run, self.runs)
        self.reported_order.append(run.id)
        self._meet(run, before=False)

    def _failed(self, event: e.Failed) -> None:
        self._meet(replace(self._evaluated(event), status="failed", why=event.why or None), before=False)

    def _meet(self, run: Run, *, before: bool) -> None:
        """Keep ``run``, of whose context more is known than ``before``, if anything was."""
        self.runs[run.id] = run
        if self.settings.space.d_c and len(run.contexts):
            if before:
                self.seen.remove(run.id)
            self.seen.append(run.id)
        if run.status == "reported" and (run.known or run.series is not None):
            self.complete_order.append(run.id)

    def _evaluated(self, event: e.Reported | e.Failed) -> Run:
        """The run that ended, with its design and context but not yet its outcome."""
        context, x = self._context(event), self._design(event)
        if context is None and not self.settings.space.d_c:
            context = np.empty(0)  # there is nothing to know
        if read_id(event.id) in self.runs:
            run = self._pending(event.id)
        elif x is None:
            raise UnknownSuggestionError(
                f"suggestion {event.id!r} was never asked",
                "look at the list of runs, or say what was set",
            )
        else:
            run = Run(self._new_id(event.id), x, suggested=False)
        return set_to(replace(run, context=context, cost=event.cost), x)

    def _context_reported(self, event: e.ContextReported) -> None:
        run = self.runs.get(read_id(event.id))
        if run is None or run.status != "reported":
            raise UnknownSuggestionError(f"suggestion {event.id!r} has no reported value", "tell its value first")
        context = self._context(event)
        if context is None:
            raise InvalidContextError("no context was reported", "give one")
        before = run.context
        if not run.late or (before is not None and (~np.isnan(context) & ~np.isnan(before)).any()):
            raise InvalidContextError(f"the context of suggestion {run.id} is known already", "correct it instead")
        self._meet(replace(run, context=merged(before, context)), before=before is not None)

    def _cancelled(self, event: e.Cancelled) -> None:
        run = self._pending(event.id)
        self.runs[run.id] = replace(run, status="cancelled", why=event.why or None)

    def _seen(self, event: e.Seen) -> None:
        rows = read_contexts(event.rows, self._space(event.version))
        weights = read_weights(event.weights, len(rows))
        weights.setflags(write=False)
        count = event.count
        if not len(rows) or count < len(rows) or not (event.summary or count == len(rows)):
            raise InvalidEventError(f"{len(rows)} contexts cannot stand for {count}")
        rows = recode_contexts(rows, self._steps(event.version))
        self.seen.append(ContextBatch(rows, weights, count, event.summary))

    def _corrected(self, event: e.Corrected) -> None:
        run = self._known(event.id)
        reported = (event.value, event.control, event.noise_variance, event.others, event.others_noise_variance)
        if all(part is None for part in (*reported, event.context, event.x, event.cost)):
            raise InvalidEventError("nothing is corrected", "give a value, a context, a noise, a cost or a design")
        if run.status != "reported" and any(part is not None for part in reported):
            raise InvalidValueError(f"run {run.id} is {run.status} and has no value to correct", "tell its value")
        if run.status in ("pending", "cancelled") and (event.context is not None or event.cost is not None):
            raise InvalidContextError(f"run {run.id} is {run.status}", "its context and cost come with its value")
        context, before = self._context(event), run
        run = set_to(run, self._design(event))
        run = run if event.cost is None else replace(run, cost=event.cost)
        if run.series is not None or event.row is not None:
            if event.control is not None:
                raise InvalidValueError("a run of several rows has a control", "tell one run for each pair")
            # checks the names
            measured(self.settings, replace(event, noise_variance=None, others_noise_variance=None), run)
            self.runs[run.id] = corrected_row(run, event, context)
            return
        run = replace(
            run,
            context=merged(run.context, context),
            **(measured(self.settings, event, run) if run.status == "reported" else {}),
        )
        if run.status == "reported" and not run.dropped:
            check_control(self.settings, run, self.runs)
        if not before.known and (run.known or before.context is None) and context is not None:
            self._meet(run, before=before.context is not None)
        else:
            self.runs[run.id] = run

    def _dropped(self, event: e.Dropped) -> None:
        run = self._known(event.id)
        if run.status not in ("reported", "failed"):
            raise InvalidEventError(f"run {run.id} is {run.status}: there is nothing to leave out", "cancel it")
        if run.dropped:
            raise InvalidEventError(f"run {run.id} is left out already", "nothing needs to be done")
        self.runs[run.id] = replace(run, dropped=True, why=event.why or None)

    def _restored(self, event: e.Restored) -> None:
        run = self._known(event.id)
        if not run.dropped:
            raise InvalidEventError(f"run {run.id} is not left out", "nothing needs to be done")
        if run.status == "reported":
            check_control(self.settings, run, self.runs)
        self.runs[run.id] = replace(run, dropped=False, why=None)

    def _noted(self, event: e.Noted) -> None:
        if event.id is not None:
            self._known(event.id)
        if not event.note:
            raise InvalidEventError("the note is empty", "say something, or nothing at all")

    def _undone(self, event: e.Undone) -> None:
        self._take_back([event])

    def take_back(self, events: Sequence[e.Undone]) -> None:
        """Take in several events that take others back: the rest is gone through once and not once for each."""
        kept: list[Any] = [plain(event) for event in events]
        self._take_back(kept)
        self.history += kept
        self.refs |= {event.ref for event in kept}

    def _take_back(self, events: Sequence[e.Undone]) -> None:
        """Everything again without what is taken back, from the last checkpoint before it. Numbers that were given out
        are not given out again."""
        known, before = {past.ref for past in self.history}, undone(self.history)
        for event in events:
            if not isinstance(event.of, str) or not event.of or event.of not in known:
                raise InvalidEventError("there is no such event to undo", "look at the history")
            if event.of in before:
                raise InvalidEventError("this was undone already", "nothing needs to be done")
            before.add(event.of)
        gone = undone([*self.history, *events])
        kept = [point for point in self.checkpoints if gone & point.contents.refs == point.gone]
        first = self.amendments[0].before if self.amendments else self.settings
        fresh = Draft(kept[-1].contents if kept else Contents(first))
        try:
            for past in self.history[len(fresh.history) :]:
                if past.ref not in gone and not isinstance(past, e.Undone):
                    HANDLERS[type(past)](fresh, past)
        except EdrboError as problem:
            hint = "undo what came after it first"
            raise InvalidEventError(f"it cannot be undone: without it, {problem.message}", hint) from None
        fresh.history, fresh.refs, fresh.checkpoints = self.history, self.refs, kept
        fresh.next_id, fresh.suggested = self.next_id, self.suggested
        vars(self).update(vars(fresh))

    def _amended(self, event: e.Amended) -> None:
        if not event.settings:
            raise InvalidEventError("nothing is amended", "say what changes")
        settings = self.settings.changed(event.settings)
        if settings.direction != self.settings.direction:
            raise InvalidEventError("the direction of a study cannot change", "make a new study")
        keep_outcomes(self.settings, settings)
        step = (self.settings.space, settings.space, dict(event.defaults))
        runs = {}
        for key, run in self.runs.items():
            context = None if run.context is None else recode_contexts(run.context[None], [step])[0]
            outcome_forecast = run.outcome_forecast if same_positions(*step[:2]) else None
            series = run.series
            if series is not None:
                series = replace(series, contexts=recode_contexts(series.contexts, [step]))
            x = recode_design(run.x, [step])
            runs[key] = replace(run, x=x, context=context, outcome_forecast=outcome_forecast, series=series)
        self.seen = [
            replace(part, rows=recode_contexts(part.rows, [step])) if isinstance(part, ContextBatch) else part
            for part in self.seen
        ]
        self.amendments.append(Amendment(self.settings, dict(event.defaults)))
        self.settings, self.runs = settings, runs

    # ---------------------------------------------------------------- fields of events

    def _new_id(self, given: Any) -> int:
        key = read_id(given)
        if key in self.runs:
            raise InvalidEventError(f"{key} is the number of another run", "every run has a number of its own")
        if not 0 <= key <= self.next_id + FURTHEST:  # one nonsensical number must not leave none for later runs
            raise InvalidEventError(f"{key} is no number for a run", f"the next is {self.next_id}")
        self.next_id = max(self.next_id, key + 1)
        return key

    def _known(self, given: Any) -> Run:
        key = read_id(given)
        if key not in self.runs:
            raise UnknownSuggestionError(f"there is no run {key}", "look at the list of runs")
        return self.runs[key]

    def _pending(self, given: Any) -> Run:
        key = read_id(given)
        run = self.runs.get(key)
        if run is None or run.status != "pending":
            words = {"reported": "was reported already", "failed": "was reported already", "cancelled": "was cancelled"}
            raise UnknownSuggestionError(
                f"suggestion {key!r} {'was never asked' if run is None else words[run.status]}",
                "look at the list of runs, or say what was set"
                if run is None
                else f"correct it (edrbo edit {key}), or undo that first",
            )
        return run

    def _space(self, version: Any) -> Space:
        """The space after ``version`` amendments."""
        number = read_version(version, len(self.amendments))
        before = [amendment.before.space for amendment in self.amendments]
        return [*before, self.settings.space][number]

    def _steps(self, version: int) -> list[tuple[Space, Space, dict[str, Any]]]:
        """From the space after ``version`` amendments to the present one."""
        spaces = [*(amendment.before.space for amendment in self.amendments), self.settings.space]
        return [
            (spaces[i], spaces[i + 1], dict(self.amendments[i].defaults)) for i in range(version, len(self.amendments))
        ]

    def _design(self, event: e.Asked | e.Reported | e.Failed | e.Corrected) -> Array | None:
        if event.x is None:
            return None
        x = read_design(event.x, self._space(event.version))
        return recode_design(x, self._steps(event.version))

    def _context(self, event: e.Asked | e.Reported | e.Failed | e.ContextReported | e.Corrected) -> Array | None:
        if event.context is None:
            return None
        row = read_context(event.context, self._space(event.version))
        context: Array = recode_contexts(row[None], self._steps(event.version))[0]
        return context


def undone(history: Sequence[e.Event]) -> set[str]:
    """The refs of events that are undone; undoing an ``Undone`` brings its event back."""
    gone: set[str] = set()
    for past in reversed(history):
        if isinstance(past, e.Undone) and past.ref not in gone:
            gone.add(past.of)
    return gone


HANDLERS: dict[type[e.Event], Callable[[Draft, Any], None]] = {
    e.Asked: Draft._asked,
    e.Reported: Draft._reported,
    e.Failed: Draft._failed,
    e.ContextReported: Draft._context_reported,
    e.Seen: Draft._seen,
    e.Cancelled: Draft._cancelled,
    e.Corrected: Draft._corrected,
    e.Dropped: Draft._dropped,
    e.Restored: Draft._restored,
    e.Noted: Draft._noted,
    e.Undone: Draft._undone,
    e.Amended: Draft._amended,
}
