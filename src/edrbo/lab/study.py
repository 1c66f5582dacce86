"""A study: the events of an experiment, every one on disk or in a database before the call returns."""

from __future__ import annotations

import logging
import math
import operator
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from edrbo.errors import (
    EdrboError,
    EdrboWarning,
    InvalidValueError,
    OtherSettingsError,
    RecordedAlreadyError,
    StudyError,
    UnknownStudyError,
    UnknownSuggestionError,
)
from edrbo.lab.claims import at_work, claim, claims, new_holder, release
from edrbo.lab.files import describe, is_url
from edrbo.lab.store.event_store import Also, EventStore, StoredStudy
from edrbo.records.earlier import EarlierStudy
from edrbo.records.events import Amended, Asked, Event, Undone
from edrbo.records.input_reading import pending_of, spell_checked
from edrbo.records.outcomes import Direction, Limit, Maximize, Minimize, OutcomeRange
from edrbo.records.recorder import Make, Recorder
from edrbo.records.reported import Function, check_function, evaluate
from edrbo.records.run import Suggestion
from edrbo.records.sanity import not_typed
from edrbo.records.scipy_distributions import check_distribution
from edrbo.records.settings import DEFAULT, INITIAL, LEAST_SUCCESS, Drift, NoiseModel, Outliers, Purpose, Settings
from edrbo.records.state import State
from edrbo.records.validation import read_number
from edrbo.space import Space

if TYPE_CHECKING:  # thinking needs the engine, keeping records does not
    from edrbo.acquisition.methods import Method
    from edrbo.lab.config import Description
    from edrbo.optimizer.answers import Prediction
    from edrbo.optimizer.optimizer import Optimizer
    from edrbo.optimizer.pareto import ParetoFront
    from edrbo.optimizer.policy import Policy
    from edrbo.optimizer.recommendation import Recommendation
    from edrbo.optimizer.sensitivity import Sensitivity
    from edrbo.optimizer.tradeoff import Tradeoff
    from edrbo.records.goals import Goal

Creation = Literal["never", "first", "always"]  # make a study that is missing: only in a new place, or anywhere
LONGEST_NAME = 512  # characters that PostgreSQL can index
MATTERS = (Asked, Amended, Undone)  # what a suggestion that is being computed must know of
WAIT = 0.2  # seconds between looks whether other workers are done, or dead
STALE = 60.0  # seconds without a sign of life after which a worker is taken for dead

logger = logging.getLogger("edrbo.lab")


class _OvertakenError(Exception):
    """Another suggestion was handed out, or the settings changed, while one was computed."""


class _EnoughError(Exception):
    """As many suggestions as are wanted have been evaluated, or are being evaluated."""


class Study(Recorder):
    """A durable optimizer.

    >>> import tempfile
    >>> space = Space(design={"speed": (1, 9)}, context={"humidity": (0, 1)})
    >>> with tempfile.TemporaryDirectory() as folder, Study.open(folder + "/coating.db", space) as study:
    ...     suggestion = study.ask()
    ...     study.tell(suggestion, {"humidity": 0.4}, 1.7)

    The methods are those of ``Optimizer``. Any number of processes and threads may use one study at once: no
    suggestion is handed out twice, and each knows of those before it. What is acknowledged counts; what came too
    late is refused with an error. ``by`` is written beside what this object records.
    """

    def __init__(self, store: EventStore, stored: StoredStudy, *, by: str | None = None) -> None:
        """The study ``stored`` in ``store``; ``Study.open`` finds it."""
        if not isinstance(store, EventStore):
            raise InvalidValueError("a study is opened and not made", 'write Study.open("coating.db", space)')
        self.name = stored.name
        self.by = by
        self._store, self._id = store, stored.id
        self._thinking: Optimizer | None = None
        self._saved = 0  # rows of the fit stored last
        self._lock = threading.RLock()
        self._state = State.start(stored.settings)
        self._sync()

    @classmethod
    @spell_checked
    def open(
        cls,
        where: str | Path,
        space: Space | None = None,
        *,
        name: str | None = None,
        by: str | None = None,
        method: str | Method = DEFAULT,
        direction: Direction = "maximize",
        seed: int = 0,
        context_half_life: float | None = None,
        initial: int = INITIAL,
        goal: Goal | str = "expected",
        aim: Purpose = "operate",
        evaluations: int | None = None,
        least_success: float = LEAST_SUCCESS,
        outliers: Outliers = "robust",
        drift: Drift = None,
        noise_model: NoiseModel = "auto",
        outcome: str = "value",
        unit: str = "",
        title: str = "",
        outcome_range: OutcomeRange | str | tuple[float | None, float | None] | None = None,
        outcomes: Mapping[str, Maximize | Minimize | Limit] | None = None,
        context_distribution: Any = None,
        cost: str | Callable[[dict[str, Any]], float] | None = None,
        earlier: Any = None,
    ) -> Study:
        """The study in a file, or in PostgreSQL by URL.

        With a ``space`` it is made if it does not exist; if it does, its settings must be these. Without one it must
        exist, and has its own settings.

        Args:
            where: A file, or ``postgresql://user@host/database``.
            space: What is set and what the world sets.
            name: Which of several studies in one place; by default the only one, or the name of the file.
            by: Who works here, written beside what this object records; by default the login.
            method: How designs are chosen: a name of ``edrbo.method_names()``, or a ``Method``.
            direction: "maximize" or "minimize".
            seed: Seed of everything random: the same seed and data give the same suggestions.
            context_half_life: A context's weight halves with every so many later ones; None: all count alike.
            initial: Quasi-random designs before the model takes over.
            goal: What best means: a text such as "cvar:0.1", or a ``Goal``.
            aim: "operate" if every run counts, "identify" if only the design in the end does.
            evaluations: How many runs there will be, if that is known; for "identify".
            least_success: Designs that succeed with less probability are not recommended.
            outliers: "robust": single outcomes absurdly far from all others are not learned from; "keep": they are.
            drift: f itself changes: after so many runs what it was counts half; "learned": the data say how fast.
            noise_model: "auto": noise varies over designs and contexts if the data say so; "constant": it does not.
            outcome: What is measured, as "gloss".
            unit: The unit of what is measured.
            title: A name for people.
            outcome_range: What the outcome can be at all, as (0, 100) or (0, None): answers are held to it.
            outcomes: What each of several outcomes is for: ``Maximize``, ``Minimize`` or ``Limit`` by name.
            context_distribution: The distribution of contexts, if you know it: a text such as "humidity = norm(55,
                12)", distributions by name, or samples.
            cost: What a run costs, in what you set: a text such as "1 + 9 * x", or a function of a design.
            earlier: Studies of related machines, campaigns or a simulator to learn from: files, studies or
                ``EarlierStudy``; each counts as much as it is like this one.
        """
        if space is None:
            return cls.open_with(where, None, name=name, by=by)
        return cls.open_with(where, Settings.of_call(locals()), name=name, by=by)

    @classmethod
    def described(cls, description: Description, create: Creation = "first", *, by: str | None = None) -> Study:
        """The study that a TOML file describes; a file that was changed since it was made is an error that says what
        changed.

        By default it is made if its storage is new. ``"always"`` also makes it beside others: not by default, since a
        name that was changed in the file would begin an empty study in silence.

        Args:
            description: What the file says, as ``edrbo.lab.config.read_toml`` gives it.
            create: When a study that is not there is made.
            by: Who signs what is entered.
        """
        return cls.open_with(description.storage, description.settings, name=description.name, by=by, create=create)

    @classmethod
    def open_with(
        cls,
        where: str | Path,
        settings: Settings | None,
        *,
        name: str | None = None,
        by: str | None = None,
        create: Creation = "always",
    ) -> Study:
        """The same with all settings in one piece.

        Args:
            where: A file, or ``postgresql://user@host/database``.
            settings: The settings, or None for a study that exists.
            name: Which of several studies in one place; by default the only one, or the name of the file.
            by: Who works here; by default the login.
            create: When a missing study is made: "never", only as the "first" of its place, or "always".
        """
        if settings is not None:
            settings.to_dict()  # refuses what cannot be stored before anything is written
        if name is not None:
            _check_name(name)
        store = EventStore(where, create=settings is not None and create != "never")
        try:
            stored = _find(store, name, settings, create)
        except EdrboError:
            store.discard()
            raise
        study = cls(store, stored, by=login() if by is None else by)
        if settings is not None:
            study._check_settings(settings)
        return study

    def _check_settings(self, given: Settings) -> None:
        differences = given.differences(self.settings)
        if differences:
            raise OtherSettingsError(
                f"the study in {describe(self.where)} has other settings: {'; '.join(differences)}",
                "open it without a space to go on with its own, amend it, or make a new study",
            )

    def __repr__(self) -> str:
        return f"Study({self.name!r} in {describe(self.where)!r}, {len(self._state.reported)} observations)"

    def __reduce__(self) -> tuple[Callable[..., Study], tuple[str | Path, str, str | None]]:
        """For ``pickle`` between processes: the place and the name, by which the other process opens it."""
        return _opened_again, (self.where, self.name, self.by)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        raise StudyError(
            "a study cannot be copied: both would be one record",
            "copy.deepcopy(study.optimizer) is for trying something; Study.open opens the study again",
        )

    def __copy__(self) -> Self:
        return self.__deepcopy__({})

    def close(self) -> None:
        """Give file or connection back. That happens by itself when nobody holds the study any more."""
        self._store.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---------------------------------------------------------------- what is known

    @property
    def where(self) -> str | Path:
        """The file, or the URL of the database, that it is kept in."""
        return self._store.where

    @property
    def state(self) -> State:
        with self._lock:
            return self._sync()

    @property
    def state_now(self) -> State:
        """The state as it was read last, by opening or by the last call; nothing is read."""
        return self._state

    @property
    def settings(self) -> Settings:
        """As they are now; amendments included."""
        return self._state.settings

    @property
    def space_now(self) -> Space:
        """The space as it was read last."""
        return self._state.space

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer behind the study, up to date; tell it nothing."""
        with self._lock:
            self._sync()
            return self._inference()

    def _sync(self) -> State:
        """Begins every call: what others wrote is taken over."""
        new = self._store.read(self._id, len(self._state.history))
        self._state = self._followed(self._state, new)
        return self._state

    def _followed(self, state: State, events: Sequence[Event]) -> State:
        """The state after stored events, each of which was accepted when it was stored."""
        try:
            return state.replay(events)
        except EdrboError as problem:
            raise self._store.damaged(f"its events do not fit together: {problem.message}") from None

    def _complete(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        if settings.get("earlier") is None:
            return settings
        new = with_earlier_read(self.state.settings.changed(settings)).earlier
        return {**settings, "earlier": None if new is None else new.to_dict()}

    # ---------------------------------------------------------------- thinking

    def _inference(self) -> Optimizer:
        """The optimizer of the state read last, with the latest fit that any process made."""
        from edrbo.optimizer.optimizer import Optimizer
        from edrbo.optimizer.outcome_model import StoredFit

        if self._thinking is None:
            self._thinking = Optimizer.of(self._state)
        else:
            self._thinking.go_on(self._state)
        with suppress(InvalidValueError, KeyError, TypeError, ValueError):  # nothing is lost but time
            self._thinking.offer(StoredFit.from_dict(self._store.load_fit(self._id)))
        return self._thinking

    @contextmanager
    def _inferred(self) -> Iterator[Optimizer]:
        """Think about the present state, and keep what was fitted meanwhile."""
        with self._lock:
            self._sync()
            inference = self._inference()
            yield inference
            self._save_fit(inference)

    def _save_fit(self, inference: Optimizer) -> None:
        fit = inference.fit
        if fit is None or fit.rows <= self._saved:
            return
        with suppress(StudyError):  # nothing is lost but time
            self._store.save_fit(self._id, fit.to_dict())
            self._saved = fit.rows

    # ---------------------------------------------------------------- ask

    @overload
    def ask(
        self,
        n: None = None,
        *,
        forecast: Any = None,
        context: Any = None,
        fixed: Mapping[str, Any] | None = None,
        candidates: Any = None,
        repeat: bool | None = None,
    ) -> Suggestion: ...
    @overload
    def ask(
        self,
        n: int,
        *,
        forecast: Any = None,
        context: Any = None,
        fixed: Mapping[str, Any] | None = None,
        candidates: Any = None,
        repeat: bool | None = None,
    ) -> list[Suggestion]: ...
    def ask(
        self,
        n: int | None = None,
        *,
        forecast: Any = None,
        context: Any = None,
        fixed: Mapping[str, Any] | None = None,
        candidates: Any = None,
        repeat: bool | None = None,
    ) -> Suggestion | list[Suggestion]:
        """The next design, or a list of ``n``; stored, and pending until somebody tells it.

        Args:
            n: How many; None: one, which is not in a list.
            forecast: Samples of the contexts to expect, in place of the distribution that is estimated.
            context: The context that will be met, or some of it.
            fixed: Variables that are held, values by name.
            candidates: The only designs to choose from: dicts, rows or a data frame.
            repeat: Whether a candidate may be suggested that was reported already; by default as it makes sense: not
                without contexts, or where the same one is met again.
        """
        try:
            count = 1 if n is None else 0 if isinstance(n, bool) else operator.index(n)
        except TypeError:
            count = 0
        if count < 1:
            raise InvalidValueError(f"cannot ask for {n!r} suggestions", "ask for one or more")

        def compute(inference: Optimizer) -> Suggestion:
            return inference.ask(forecast=forecast, context=context, fixed=fixed, candidates=candidates, repeat=repeat)

        found = [self._ask(compute) for _ in range(count)]
        return found[0] if n is None else found

    def _ask(
        self,
        compute: Callable[[Optimizer], Suggestion],
        admit: Callable[[State], None] = lambda state: None,
        holder: str | None = None,
    ) -> Suggestion:
        """Compute, then store, if nothing came in between that the suggestion must know of. A process that is killed
        while it computes leaves nothing behind.

        Who was overtaken computes again when it is its turn, so that many who ask at once do not waste their work.
        """
        from edrbo.lab.store.turns import is_taken, turn

        with self._lock:
            overtaken = is_taken(self._store, self._id)
            while True:
                with turn(self._store, self._id) if overtaken else nullcontext(), suppress(_OvertakenError):
                    return self._suggest(compute, admit, holder)
                overtaken = True

    def _suggest(
        self,
        compute: Callable[[Optimizer], Suggestion],
        admit: Callable[[State], None],
        holder: str | None,
    ) -> Suggestion:
        with self._inferred() as inference:
            admit(self._state)  # before it costs time …
            known = len(self._state.history)
            suggestion = compute(inference)
            asked = inference.state.history[-1]
            assert isinstance(asked, Asked)
            number = suggestion.id

            def make(state: State) -> list[Event]:
                nonlocal number
                admit(state)  # … and when it counts
                if any(isinstance(event, MATTERS) for event in state.history[known:]):
                    raise _OvertakenError
                number = state.next_id  # a run of somebody's own may have taken that of the suggestion
                return [replace(asked, id=number)]

            self._append(make, lambda run: None if holder is None else claim(run, self._id, number, holder))
            return replace(suggestion, id=number)

    # ---------------------------------------------------------------- workers

    def optimize(
        self,
        f: Function,
        evaluations: int,
        *,
        workers: int = 1,
        stale_after: float = STALE,
        most_errors: int | None = 3,
        progress: Callable[[Study], None] | None = None,
    ) -> int:
        """Evaluate suggestions with ``f`` until so many of this study have been evaluated, together with whoever else
        calls this: any number of threads, processes and machines. Never more are evaluated than that.

        What a process was evaluating that was killed is evaluated by another one, or by the next call. Suggestions that
        were asked for otherwise are left alone (``claim`` takes them up). Ctrl-C ends it after the evaluations that are
        being made, whose outcomes are kept.

        Args:
            f: Takes a design and returns ``(context, value)``, both as the world gave them; for a space without
                contexts, the value alone. An exception, and a number that is NaN or infinite, count as a failed
                evaluation and are passed on as a warning.
            evaluations: How many suggestions are to be evaluated in all, those before this call included; failed ones
                count.
            workers: Threads that call ``f`` at the same time, for a function that waits or computes outside of Python.
                For others start the program several times.
            stale_after: So many seconds without a sign of life, and a worker on another machine is taken for dead; on
                this machine that is known at once.
            most_errors: So many failures in a row end it; None: never.
            progress: Called with the study after every evaluation.

        Returns:
            How many evaluations this call made.
        """
        found = _Workers(self, f, workers=workers, stale_after=stale_after, most_errors=most_errors, progress=progress)
        return found.run(evaluations)

    def claim(self, *, stale_after: float = STALE) -> Suggestion | None:
        """A suggestion that waits for its outcome and that nobody seems to evaluate, to be evaluated here.

        None if there is none. Nobody else gets it for the next ``stale_after`` seconds.

        Args:
            stale_after: Passed over is what was handed out less than so many seconds ago, and what a worker evaluates
                that gave a sign of life since.
        """
        return self._take_up(new_holder(), _seconds(stale_after), asked_by_others=True)

    def _take_up(self, holder: str, stale_after: float, *, asked_by_others: bool = False) -> Suggestion | None:
        """The first pending suggestion whose holder is gone; or, if wanted, that was asked for long enough ago."""
        found: list[Suggestion] = []

        def look(state: State) -> list[Event]:
            held = claims(self._store, self._id)
            old = time.time() - stale_after
            asked = {e.id: e.at for e in state.history if isinstance(e, Asked)} if asked_by_others else {}
            for one in pending_of(state):
                mine = held.get(one.id)
                if mine.is_stale(stale_after) if mine else asked_by_others and (asked.get(one.id) or 0.0) < old:
                    found[:] = [one]
                    break
            return []

        self._append(look, lambda run: None if not found else claim(run, self._id, found[0].id, holder))
        return found[0] if found else None

    def _next_for(self, holder: str, evaluations: int, stale_after: float) -> tuple[Suggestion | None, bool]:
        """What a worker of ``optimize`` is to evaluate next; if nothing, whether others still evaluate something, which
        they may leave behind.

        holder        who evaluates it, of ``new_holder``
        evaluations   how many are wanted in all
        stale_after   seconds without a sign of life after which a worker is taken for dead
        """

        def admit(state: State) -> None:
            held = claims(self._store, self._id).keys() & state.pending.keys()
            if _count_evaluated(state) + len(held) >= evaluations:
                raise _EnoughError

        left = self._take_up(holder, stale_after)
        if left is not None:
            return left, False
        with suppress(_EnoughError):
            return self._ask(lambda inference: inference.ask(), admit, holder), False
        held = claims(self._store, self._id)
        return None, any(held[key].holder != holder for key in held.keys() & self.state.pending.keys())

    def _release(self, suggestion: Suggestion, holder: str) -> None:
        """Its outcome is recorded."""
        release(self._store, self._id, suggestion.id, holder)

    # ---------------------------------------------------------------- record

    def _record(self, make: Make) -> Event:
        return self._append(lambda state: [make(state)])[0]

    def record_all(self, make: Callable[[State], Sequence[Event]]) -> Sequence[Event]:
        """Record the events that ``make`` gives for the present state, all of them or none.

        Nobody records anything between the state that ``make`` sees and its events. Others wait meanwhile, so read
        files and check cells before. ``ref`` of the events is given here.

        Args:
            make: From the state to the events that follow it, in order.

        Returns:
            The events as they were stored.
        """
        return self._append(make)

    def _append(self, make: Callable[[State], Sequence[Event]], also: Also = lambda run: None) -> Sequence[Event]:
        """Check by applying, and store, in one transaction, with what ``also`` writes beside the events."""
        with self._lock:
            after, count = self._state, 0

            def decide(new: list[Event]) -> Sequence[Event]:
                nonlocal after, count
                state = self._followed(self._state, new)
                events = [self._stamped(event, state, k) for k, event in enumerate(make(state))]
                after, count = state.apply(*events), len(events)
                return after.history[len(after.history) - count :]  # in plain types

            self._store.append(self._id, len(self._state.history), decide, also)
            self._state = after
            return after.history[len(after.history) - count :]

    def _stamped(self, event: Event, state: State, k: int) -> Event:
        """With its name, and who and when; what was sent twice is refused."""
        if event.key is not None and any(event.key == past.key for past in state.history):
            raise RecordedAlreadyError(f"the entry {event.key!r} is recorded already", "look at the list of runs")
        by, at = self.by if event.by is None else event.by, time.time() if event.at is None else event.at
        return replace(event, ref=str(len(state.history) + k), by=by, at=at)

    # ---------------------------------------------------------------- recommend

    def recommend(
        self,
        *,
        goal: Goal | str | None = None,
        radius: float = 0.1,
        forecast: Any = None,
        context: Any = None,
        fixed: Mapping[str, Any] | None = None,
        candidates: Any = None,
    ) -> Recommendation:
        """The design that is best under the goal. What else is to be said of it is computed when it is read.

        Args:
            goal: Another goal than the study's own, for the same data.
            radius: How far the distribution of contexts may move, for the worst case: a fraction of the context range.
            forecast: Samples of the contexts to expect, in place of the distribution that is estimated.
            context: The context that will be met, or some of it.
            fixed: Variables that are held, values by name.
            candidates: The only designs to choose from: dicts, rows or a data frame.
        """
        with self._inferred() as inference:
            return inference.recommend(
                goal=goal, radius=radius, forecast=forecast, context=context, fixed=fixed, candidates=candidates
            )

    def front(
        self,
        *,
        reference: Mapping[str, float] | None = None,
        forecast: Any = None,
        context: Any = None,
        fixed: Mapping[str, Any] | None = None,
        candidates: Any = None,
    ) -> ParetoFront:
        """Designs of which none is better than another in all main outcomes.

        Args:
            reference: Values by main outcome down to which the hypervolume counts; by default just behind the front.
            forecast: Samples of the contexts to expect, in place of the distribution that is estimated.
            context: The context that will be met, or some of it.
            fixed: Variables that are held, values by name.
            candidates: The only designs to choose from: dicts, rows or a data frame.
        """
        with self._inferred() as inference:
            return inference.front(
                reference=reference, forecast=forecast, context=context, fixed=fixed, candidates=candidates
            )

    def predict(
        self,
        designs: Any,
        *,
        goal: Goal | str | None = None,
        forecast: Any = None,
        context: Any = None,
        outcome: str | None = None,
    ) -> Prediction:
        """What is believed of the mean and the goal's value of designs.

        Args:
            designs: A dict, dicts, rows or a data frame.
            goal: Another goal than the study's own, for the same data.
            forecast: Samples of the contexts to expect, in place of the distribution that is estimated.
            context: The context that will be met, or some of it.
            outcome: One of several, the main one by default.
        """
        with self._inferred() as inference:
            return inference.predict(designs, goal=goal, forecast=forecast, context=context, outcome=outcome)

    def policy(
        self,
        *,
        known: str | Sequence[str] | None = None,
        contexts: Any = None,
        goal: Goal | str | None = None,
        forecast: Any = None,
        fixed: Mapping[str, Any] | None = None,
        candidates: Any = None,
    ) -> Policy:
        """The best design for each context, and what it is worth to know the context before choosing.

        Args:
            known: The context variables that are known before the design is chosen; by default all.
            contexts: Those of the table, as dicts, rows or a data frame; by default a grid over those seen.
            goal: Another goal than the study's own, for the same data.
            forecast: Samples of the contexts to expect, in place of the distribution that is estimated.
            fixed: Variables that are held, values by name.
            candidates: The only designs to choose from: dicts, rows or a data frame.
        """
        with self._inferred() as inference:
            return inference.policy(
                known=known, contexts=contexts, goal=goal, forecast=forecast, fixed=fixed, candidates=candidates
            )

    def sensitivity(self, *, outcome: str | None = None, forecast: Any = None) -> Sensitivity:
        """What matters: Sobol' indices of every design and context variable, and what the variance of an outcome comes
        from: designs, contexts, both together, noise.

        Args:
            outcome: One of several, the main one by default.
            forecast: Samples of the contexts to expect, in place of the distribution that is estimated.
        """
        with self._inferred() as inference:
            return inference.sensitivity(outcome=outcome, forecast=forecast)

    def tradeoff(self, goal: Goal | str | None = None, *, forecast: Any = None) -> Tradeoff:
        """Designs between the best on average and the best under a goal.

        Args:
            goal: The goal, by default the study's own, or the mean of the worst 10 % of contexts.
            forecast: Samples of the contexts to expect, in place of the distribution that is estimated.
        """
        with self._inferred() as inference:
            return inference.tradeoff(goal, forecast=forecast)


def _find(store: EventStore, name: str | None, settings: Settings | None, create: Creation) -> StoredStudy:
    """The study ``name``, or the only one; made from ``settings`` if it is missing and ``create`` allows it."""
    names = store.names()
    if name is None and len(names) > 1:
        hint = f"name one: {', '.join(map(repr, names))}"
        raise StudyError(f"there are {len(names)} studies in {describe(store.where)}", hint)
    if name is None:
        name = names[0] if names else "edrbo" if is_url(store.where) else _named_after(Path(store.where))
    stored = store.find(name)
    if stored is not None:
        return stored
    if settings is None or create == "never" or (create == "first" and names):
        hint = f"studies there: {', '.join(map(repr, names)) or 'none'}"
        hint += "; a new one beside them is made by `edrbo new`" if settings is not None and names else ""
        raise UnknownStudyError(f"there is no study {name!r} in {describe(store.where)}", hint)
    _check_name(name)
    check_distribution(settings.context_distribution, settings.space)
    settings = with_earlier_read(settings)
    store.adopt(StoredStudy(0, name, time.time(), settings), ())
    made = store.find(name)  # by another process, if that was quicker
    assert made is not None
    return made


def with_earlier_read(settings: Settings) -> Settings:
    """``settings`` with the runs of earlier studies that they only name."""
    earlier = settings.earlier
    if earlier is None or earlier.is_read:
        return settings
    parts = [part if part.is_read else _read_earlier(part) for part in earlier.parts]
    return replace(settings, earlier=parts)  # type: ignore[arg-type]


def _read_earlier(part: EarlierStudy) -> EarlierStudy:
    place, _, name = part.where.partition("#")
    if not is_url(place):
        place = str(Path(place).absolute())
    if place.endswith(".toml"):
        from edrbo.lab.config import read_toml

        described = read_toml(Path(place))
        place, name = described.storage, name or described.name
    try:
        with Study.open(place, name=name or None) as study:
            return EarlierStudy.of(study, name=part.name, where=part.where)
    except StudyError as problem:
        raise StudyError(f"the earlier study {part.where} cannot be read: {problem.message}", problem.hint) from None


def _named_after(path: Path) -> str:
    """A name for the study of a file, whatever bytes the file's own is made of."""
    stem = os.fsencode(path.stem).decode("utf-8", "replace")[:LONGEST_NAME]
    return stem if _shows(stem) else "edrbo"


def _shows(name: str) -> bool:
    return any(letter.isprintable() and not letter.isspace() for letter in name)


def _check_name(name: str) -> None:
    if not 0 < len(name) <= LONGEST_NAME:
        raise StudyError("this cannot name a study", f"use 1 to {LONGEST_NAME} characters")
    if "\x00" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
        raise StudyError("this cannot name a study", "leave out NUL and half characters")
    if not _shows(name):
        raise StudyError("this cannot name a study", "nothing of it can be seen")


def _opened_again(where: str | Path, name: str, by: str | None) -> Study:
    return Study.open(where, name=name, by=by)


def _count_evaluated(state: State) -> int:
    """Suggestions that gave an outcome, or failed."""
    return sum(run.suggested and run.status in ("reported", "failed") for run in state.runs.values())


def _seconds(given: Any) -> float:
    if not (math.isfinite(seconds := read_number(given)) and seconds > 0):
        raise InvalidValueError(f"stale_after is {given!r}", "give seconds above zero")
    return seconds


class _Workers:
    """Calls ``f`` for suggestions of ``study``, in several threads; the arguments are those of ``Study.optimize``."""

    def __init__(
        self,
        study: Study,
        f: Function,
        *,
        workers: int,
        stale_after: float,
        most_errors: int | None,
        progress: Callable[[Study], None] | None,
    ) -> None:
        for name, given in (("workers", workers), ("most_errors", most_errors)):
            if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 1):
                raise InvalidValueError(f"{name} is {given!r}", "it is a whole number from 1")
        if workers is None:
            raise InvalidValueError("workers is None", "it is a whole number from 1")
        check_function(f)
        self._study, self._f, self._count = study, f, workers
        self._stale_after, self._most_errors, self._progress = _seconds(stale_after), most_errors, progress
        self._holder = new_holder()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._made, self._errors = 0, 0  # evaluations; failures in a row

    def run(self, evaluations: int) -> int:
        """Until so many suggestions have been evaluated, by whomever; gives how many were evaluated here."""
        if isinstance(evaluations, bool) or not isinstance(evaluations, int) or evaluations < 1:
            raise InvalidValueError(f"evaluations is {evaluations!r}", "at least one evaluation is needed")
        study = self._study
        before = _count_evaluated(study.state)
        if before >= evaluations:
            logger.warning("nothing is left to do: %d suggestions of %s have been evaluated", before, study.name)
            return 0
        with at_work(study._store, study._id, self._holder), ThreadPoolExecutor(self._count) as pool:
            futures = [pool.submit(self._work, evaluations) for _ in range(self._count)]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            except KeyboardInterrupt:
                logger.warning("stopping after the evaluations that are being made")
            finally:
                self._stopped.set()
        for future in futures:
            future.result()
        return self._made

    def _work(self, evaluations: int) -> None:
        while not self._stopped.is_set():
            suggestion, others = self._study._next_for(self._holder, evaluations, self._stale_after)
            if suggestion is not None:
                self._evaluate(suggestion)
            elif not others:
                return
            else:
                self._stopped.wait(WAIT)

    def _evaluate(self, suggestion: Suggestion) -> None:
        study = self._study
        found = evaluate(self._f, suggestion.design, study.space_now)
        try:
            with not_typed():
                study.tell(
                    suggestion,
                    found.context,
                    None if found.problem is not None else found.value,
                    failed=found.problem is not None,
                    why=found.why,
                )
        except UnknownSuggestionError:
            logger.warning("run %d was reported by somebody else, who took it up meanwhile", suggestion.id)
            return
        finally:
            if suggestion.id not in study.state_now.pending:
                study._release(suggestion, self._holder)
        if found.problem is not None:
            warnings.warn(f"evaluation {suggestion.id} failed: {found.why}", EdrboWarning, stacklevel=2)
        with self._lock:
            self._made += 1
            self._errors = 0 if found.problem is None else self._errors + 1
            if self._progress is not None:
                self._progress(study)
            if self._errors == self._most_errors:
                self._stopped.set()
                words = f"the function failed {self._errors} times in a row, last with {found.why}"
                if not len(study):  # as ``maximize``: outcomes are worth an answer
                    raise EdrboError(words, "mend it, or say most_errors=None if most designs may fail")
                warnings.warn(f"{words}; stopped", EdrboWarning, stacklevel=2)


def all_studies(where: str | Path) -> list[Study]:
    """The studies in a file or a database; none is made."""
    store = EventStore(where)
    found = [store.find(name) for name in store.names()]
    return [Study(store, stored) for stored in found if stored is not None]


def login() -> str | None:
    """Who works here, as the system knows them."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None
