"""``tell``, ``correct``, ``undo`` and all else that records: what ``Optimizer`` and ``Study`` share.

Each method makes an event from its arguments and hands it to ``_record``, which passes it through ``State.apply`` and,
in a study, writes it down.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edrbo.charts import Axis, Chart, Line, Points, chart_image, span
from edrbo.errors import ImplausibleWarning, InvalidContextError, InvalidEventError, InvalidValueError
from edrbo.html_table import html_table
from edrbo.records import events as e
from edrbo.records.change_point import ProcessChange, process_change
from edrbo.records.context_log import ContextBatch, ContextLog, read_weights, summarized
from edrbo.records.descriptions import heading
from edrbo.records.input_reading import (
    Reported,
    identify,
    need_contexts,
    number_of,
    pending_of,
    read_one_context,
    read_some_context,
    really_set,
)
from edrbo.records.known_distribution import KnownDistribution
from edrbo.records.reported import is_empty, relative, reported, reported_series
from edrbo.records.run import NamedRun, Suggestion
from edrbo.records.sanity import (
    ImplausibleRun,
    exact_conflict,
    implausible,
    input_warnings,
    other_input_warnings,
    series_input_warnings,
    warn,
)
from edrbo.records.scipy_distributions import check_distribution
from edrbo.records.state import Observations, Spending, State, spending
from edrbo.space import Space

if TYPE_CHECKING:
    from pandas import DataFrame

    from edrbo.records.frame import Columns

Array = NDArray[np.float64]
Make = Callable[[State], e.Event]
MOST_NAMED = 5  # runs that a summary names


class Recorder(ABC):
    """Keeps the events of one experiment."""

    @property
    @abstractmethod
    def state(self) -> State:
        """Everything asked, reported and observed: an immutable value."""

    @abstractmethod
    def _record(self, make: Make) -> e.Event:
        """Apply the event that ``make`` gives for the present state, and keep it; gives the event."""

    @abstractmethod
    def record_all(self, make: Callable[[State], Sequence[e.Event]]) -> Sequence[e.Event]:
        """Record the events that ``make`` gives for the present state, all of them or none.

        Args:
            make: From the state to the events that follow it, in order.
        """

    # ---------------------------------------------------------------- what is known

    @property
    def space(self) -> Space:
        """What is set and what the world sets."""
        return self.state.space

    @property
    def observations(self) -> Observations:
        """Outcomes in the order in which they came, with designs and contexts, without those that were dropped."""
        return self.state.observations

    @property
    def runs(self) -> list[NamedRun]:
        """Every run, also those that failed, wait, were cancelled or are left out."""
        state = self.state
        return [NamedRun(**vars(run), space=state.space) for run in state.runs.values()]

    @property
    def pending(self) -> list[Suggestion]:
        """Asked and not yet reported."""
        return pending_of(self.state)

    @property
    def context_log(self) -> ContextLog:
        """All contexts in the order in which they came, with or without an outcome."""
        return self.state.log

    @property
    def spending(self) -> Spending | None:
        """What the runs have cost; None where nothing is known of costs."""
        return spending(self.state)

    def __len__(self) -> int:
        return len(self.state.reported)

    def to_frame(self) -> DataFrame:
        """Every run as a row of a pandas data frame."""
        from edrbo.records.frame import frame_of

        return frame_of(self.state)

    def __str__(self) -> str:
        """What it is about and how far it is."""
        return "\n".join([self._caption, *(f"{label}: {text}" for label, text in self._facts)])

    def _repr_html_(self) -> str:
        """The same with a picture of the results, for notebooks."""
        chart = results_chart(self.state)
        return html_table(self._caption, (), self._facts, picture="" if chart is None else chart_image(chart))

    @property
    def _caption(self) -> str:
        return " ".join(filter(None, [type(self).__name__, self.state.settings.title]))

    @property
    def _facts(self) -> list[tuple[str, str]]:
        state, settings = self.state, self.state.settings
        counts = [(len(state.reported), "reported"), (len(state.pending), "pending"), (len(state.failed), "failed")]
        return [
            ("outcome", f"{heading(settings.outcome, settings.unit)}, {settings.direction}"),
            ("goal", settings.goal.title(settings.direction, settings.outcome)),
            ("set", ", ".join(self.space.design_names)),
            ("met", ", ".join(self.space.context_names) or "no contexts"),
            ("runs", ", ".join(f"{count} {word}" for count, word in counts)),
        ]

    def implausible(self) -> list[ImplausibleRun]:
        """Runs reported that look wrong beside the others or beside what was expected of them, with the reasons."""
        return implausible(self.state)

    def process_change(self) -> ProcessChange | None:
        """Since which run outcomes come otherwise than before, by forecasts one step ahead; None if there is no sign
        of it."""
        return process_change(self.state)

    # ---------------------------------------------------------------- tell

    def tell(
        self,
        suggestion: Reported | DataFrame,
        context: Any = None,
        value: float | Mapping[str, float | None] | None = None,
        *,
        contexts: Any = None,
        values: Any = None,
        control: float | Mapping[str, float] | None = None,
        noise_variance: Any = None,
        cost: float | None = None,
        failed: bool = False,
        design: Mapping[str, Any] | None = None,
        why: str | None = None,
        note: str | None = None,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> None:
        """Report an evaluation of a suggestion (or of a design of your own).

        A pandas data frame reports as many designs of your own as it has rows, all or none: columns are the variables,
        ``value`` or the names of the outcomes, and if you like ``noise_variance``, ``cost`` and ``why``, as
        ``to_frame`` names them. A row without an outcome failed; a context that is missing is not known.

        Args:
            suggestion: What was evaluated: a suggestion, its id, a design by name, or a data frame.
            context: The context it met. It may be left out and reported later with ``tell_context``, or never; so may
                some of it: ``{"humidity": 50}``, with None for the rest.
            value: The outcome; of several outcomes numbers by name, of those that were measured (``correct`` tells of
                others later).
            contexts: Of a run with several rows: the context of each, in place of ``context``.
            values: Of a run with several rows: the outcome of each; of several outcomes lists by name, or one
                dictionary a row.
            control: What a reference run gave in the same context: the outcome counts relative to it, ``value`` less
                ``control``. Either all outcomes of a study have one, or none has.
            noise_variance: The known variance of ``value``, in its form; of a run with several rows also one number for
                all; with a control that of the difference.
            cost: What the run cost, in a unit of your own.
            failed: Whether the evaluation gave no value.
            design: What was really set, where that differs from the suggestion: some of its variables, or all.
            why: The reason of a failure.
            note: Words to keep with the record.
            by: Who says so.
            at: When, in seconds since 1970.
            key: Your own name for the record, by which it is recognized if it is sent twice.
        """
        columns = _columns_of_frame(suggestion)
        if columns is not None and set(columns) != set(self.space.design_names):
            if any(part is not None for part in (context, value, contexts, values, noise_variance, cost, design, why)):
                hint = "tell(frame) reads contexts and outcomes from its columns"
                raise InvalidValueError("a data frame of runs is reported with something beside it", hint)
            self._tell_frame(columns, {"note": note, "by": by, "at": at, "key": key})
            return
        given: Reported = _only_design(columns, suggestion)
        stamp: dict[str, Any] = {"cost": cost, "note": note, "by": by, "at": at, "key": key}
        found: list[Warning] = []

        def make(state: State) -> e.Event:
            several = contexts is not None or values is not None
            parts = reported(state.settings, value, None if several else noise_variance, control)
            if context is not None and not state.space.d_c:
                hint = "tell(suggestion, value=…); contexts are named in Space(context=...)"
                raise InvalidContextError("this space has no context variables", hint)
            key, x = identify(state, given)
            if design is not None:
                x = really_set(state, key, x, design)
            if several:
                if context is not None or value is not None or failed:
                    raise InvalidValueError("both one outcome and several rows are reported", "tell one or the other")
                if control is not None:
                    raise InvalidValueError("a run of several rows has a control", "tell one run for each pair")
                parts = reported_series(state.settings, contexts, values, noise_variance)
                found[:] = series_input_warnings(state, None if design else state.runs.get(key), parts)
                return e.Reported(id=key, x=x, version=state.version, **parts, **stamp)
            row = read_some_context(state.space, context)
            common: dict[str, Any] = {"id": key, "x": x, "context": row, "version": state.version, **stamp}
            if failed:
                if not is_empty(parts) or control is not None:
                    raise InvalidValueError("a failed evaluation has no value", "leave the value or `failed` out")
                return e.Failed(why=why, **common)
            if is_empty(parts):
                hint = "give a number, tell(suggestion, context, value), or failed=True"
                raise InvalidValueError("the value is None", hint)
            counts = relative(parts["value"], parts.get("control"))
            found[:] = input_warnings(state, None if design else state.runs.get(key), counts, row)
            found.extend(other_input_warnings(state, parts.get("others")))
            found.extend(exact_conflict(state, key, x, row, counts, parts["noise_variance"]))
            return e.Reported(**parts, **common)

        self._record(make)
        warn(found)

    def _tell_frame(self, columns: Columns, stamp: Mapping[str, Any]) -> None:
        """Every row at once; what looks odd is said once."""
        from edrbo.records.frame import reported_by_frame

        events = self.record_all(lambda state: reported_by_frame(state, columns, stamp))
        numbers = {event.id for event in events if isinstance(event, e.Reported)}
        odd = [str(one.run) for one in self.implausible() if one.run in numbers]
        if odd:
            words = f"{len(odd)} of {len(events)} rows look odd beside the others: {', '.join(odd[:MOST_NAMED])}"
            more = ", …" * (len(odd) > MOST_NAMED)
            warn([ImplausibleWarning(f"{words}{more}; `implausible()` says why")], deeper=1)

    def tell_context(
        self,
        suggestion: Suggestion | int,
        context: Any,
        *,
        note: str | None = None,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> None:
        """The context of an evaluation that was reported without one.

        Args:
            suggestion: The run, or its id.
            context: The context it met, or some of it.
            note: Words to keep with the record.
            by: Who says so.
            at: When, in seconds since 1970.
            key: Your own name for the record, by which it is recognized if it is sent twice.
        """
        number = number_of(suggestion)
        found: list[Warning] = []

        def make(state: State) -> e.Event:
            row = read_one_context(state.space, context, partial=True)
            found[:] = input_warnings(state, None, None, row)
            return e.ContextReported(id=number, context=row, version=state.version, note=note, by=by, at=at, key=key)

        self._record(make)
        warn(found)

    def observe_context(
        self,
        samples: Any,
        weights: Any = None,
        *,
        note: str | None = None,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> None:
        """Contexts that were seen without an outcome.

        Args:
            samples: Contexts, or some of each: a dict, dicts, rows, or a data frame.
            weights: What each of them counts, by default one.
            note: Words to keep with the record.
            by: Who says so.
            at: When, in seconds since 1970.
            key: Your own name for the record, by which it is recognized if it is sent twice.
        """
        need_contexts(self.space)
        rows = self.space.read_contexts(samples, partial=True)
        given = ContextBatch(rows, read_weights(weights, len(rows)), len(rows))
        if not given.count:
            return

        def make(state: State) -> e.Event:
            batch = summarized(state.space, given, state.settings.context_half_life)
            return e.Seen(
                rows=batch.rows,
                weights=batch.weights,
                count=batch.count,
                summary=batch.summary,
                version=state.version,
                note=note,
                by=by,
                at=at,
                key=key,
            )

        self._record(make)

    # ---------------------------------------------------------------- second thoughts

    def correct(
        self,
        run: Suggestion | int,
        *,
        value: float | Mapping[str, float | None] | None = None,
        context: Any = None,
        control: float | Mapping[str, float] | None = None,
        noise_variance: float | Mapping[str, float | None] | None = None,
        cost: float | None = None,
        design: Mapping[str, Any] | None = None,
        row: int | None = None,
        why: str | None = None,
        note: str | None = None,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> None:
        """Something of a run was other than was reported; what is left out stays. The history keeps what was reported.

        Args:
            run: The run, or its id.
            value: The outcome; of several outcomes numbers by name.
            context: The context it met, or some of it.
            control: What the reference run gave.
            noise_variance: The variance of the value, in its form.
            cost: What the run cost.
            design: What was really set: some of its variables, or all.
            row: Which row of a run that has several, counted from 0.
            why: The reason.
            note: Words to keep with the record.
            by: Who says so.
            at: When, in seconds since 1970.
            key: Your own name for the record, by which it is recognized if it is sent twice.
        """
        number = number_of(run)

        def make(state: State) -> e.Event:
            met = read_some_context(state.space, context)
            x = None if design is None else really_set(state, number, None, design)
            parts = {
                "id": number,
                "context": met,
                "x": x,
                "row": row,
                **reported(state.settings, value, noise_variance, control),
            }
            stamp: dict[str, Any] = {"note": note, "by": by, "at": at, "key": key}
            return e.Corrected(cost=cost, why=why, version=state.version, **parts, **stamp)

        self._record(make)

    def drop(
        self,
        run: Suggestion | int,
        why: str | None = None,
        *,
        note: str | None = None,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> None:
        """Leave a run out: it stays on record and nothing is learned from it. ``restore`` takes it in again.

        Args:
            run: The run, or its id.
            why: The reason.
            note: Words to keep with the record.
            by: Who says so.
            at: When, in seconds since 1970.
            key: Your own name for the record, by which it is recognized if it is sent twice.
        """
        number = number_of(run)
        self._record(lambda state: e.Dropped(id=number, why=why, note=note, by=by, at=at, key=key))

    def restore(
        self,
        run: Suggestion | int,
        *,
        note: str | None = None,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> None:
        """Learn from a run again that was dropped.

        Args:
            run: The run, or its id.
            note: Words to keep with the record.
            by: Who says so.
            at: When, in seconds since 1970.
            key: Your own name for the record, by which it is recognized if it is sent twice.
        """
        number = number_of(run)
        self._record(lambda state: e.Restored(id=number, note=note, by=by, at=at, key=key))

    def cancel(
        self,
        suggestion: Suggestion | int,
        why: str | None = None,
        *,
        note: str | None = None,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> None:
        """A suggestion will not be run; it says nothing about its design.

        Args:
            suggestion: The suggestion, or its id.
            why: The reason.
            note: Words to keep with the record.
            by: Who says so.
            at: When, in seconds since 1970.
            key: Your own name for the record, by which it is recognized if it is sent twice.
        """
        number = number_of(suggestion)
        self._record(lambda state: e.Cancelled(id=number, why=why, note=note, by=by, at=at, key=key))

    def note(
        self,
        run: Suggestion | int | None,
        text: str,
        *,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> None:
        """Words about a run, or about the study.

        Args:
            run: The run, or its id; None for the study.
            text: The words.
            by: Who says so.
            at: When, in seconds since 1970.
            key: Your own name for the record, by which it is recognized if it is sent twice.
        """
        number = None if run is None else number_of(run)
        self._record(lambda state: e.Noted(id=number, note=text, by=by, at=at, key=key))

    def undo(
        self,
        ref: str | None = None,
        *,
        note: str | None = None,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> e.Event:
        """Take back an event; gives what was taken back.

        Args:
            ref: The event's name in the history, by default the last one.
            note: Words to keep with the record.
            by: Who says so.
            at: When, in seconds since 1970.
            key: Your own name for the record, by which it is recognized if it is sent twice.
        """
        found: list[e.Event] = []

        def make(state: State) -> e.Event:
            past = state.last if ref is None else next((event for event in state.history if event.ref == ref), None)
            if past is None:
                raise InvalidEventError("there is nothing to undo", "nothing has happened yet")
            found[:] = [past]
            return e.Undone(of=past.ref, note=note, by=by, at=at, key=key)

        self._record(make)
        return found[0]

    def _complete(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """``settings`` that are to be stored, with all that they name elsewhere."""
        return settings

    def amend(
        self,
        settings: Mapping[str, Any],
        defaults: Mapping[str, Any] | None = None,
        *,
        note: str | None = None,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> None:
        """Change settings.

        Args:
            settings: New values by name, as ``Settings.to_dict`` writes them.
            defaults: The values that older runs had of variables that are new.
            note: Words to keep with the record.
            by: Who says so.
            at: When, in seconds since 1970.
            key: Your own name for the record, by which it is recognized if it is sent twice.
        """

        settings = self._complete(settings)

        def make(state: State) -> e.Event:
            if settings.get("context_distribution") is not None:
                new = state.settings.changed(settings)
                check_distribution(new.context_distribution, new.space)
            return e.Amended(settings=_plain(settings), defaults=dict(defaults or {}), note=note, by=by, at=at, key=key)

        self._record(make)


def results_chart(state: State) -> Chart | None:
    """Results of the main outcome in their order, and the best so far; None without any. No model is asked."""
    settings, kept = state.settings, [run for run in state.runs.values() if run.value is not None and not run.dropped]
    if not kept:
        return None
    order, values = [float(k) for k in range(1, len(kept) + 1)], [float(run.value or 0.0) for run in kept]
    best = np.minimum.accumulate(values) if settings.direction == "minimize" else np.maximum.accumulate(values)
    axes = Axis.of("runs, in their order", span(order), whole=True), heading(settings.outcome, settings.unit)
    marks = (Line(order, best.tolist(), "grey", "best so far"), Points(order, values, label="result", faint=True))
    return Chart("Results", axes[0], Axis.of(axes[1], span(values)), marks)


def _columns_of_frame(given: Any) -> Columns | None:
    """Those of a data frame, or of one of its rows; None for anything else, of which nothing more is loaded."""
    if not hasattr(given, "to_numpy"):
        return None
    from edrbo.records.frame import columns_of_frame

    return columns_of_frame(given)


def _only_design(columns: Columns | None, given: Any) -> Any:
    """One design as a pandas row gives it; of a frame of designs alone there is nothing to report."""
    if columns is None:
        return given
    if any(len(column) != 1 for column in columns.values()):
        raise InvalidValueError("the data frame has no outcomes", "name a column 'value'")
    return {name: column[0] for name, column in columns.items()}


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """As they are stored; a distribution may be given as people do."""
    context_distribution = settings.get("context_distribution")
    return (
        {**settings, "context_distribution": context_distribution.to_dict()}
        if isinstance(context_distribution, KnownDistribution)
        else dict(settings)
    )
