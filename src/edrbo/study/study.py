"""A study: the events of an experiment, every one on disk or in a database before the call returns."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

from edrbo.errors import InvalidContextError, InvalidValueError, StudyError, UnreadableRecordWarning
from edrbo.records.events import Asked, Event, Failed, Told
from edrbo.records.recorder import Make, Recorder
from edrbo.records.settings import DEFAULT, Choices, Settings
from edrbo.records.state import State
from edrbo.records.suggestion import Suggestion
from edrbo.space import Space
from edrbo.study.ledger import Ledger
from edrbo.study.opening import Creation, open_study
from edrbo.study.owner import login
from edrbo.study.snapshot import Snapshot
from edrbo.study.storage import describe, is_url, open_storage
from edrbo.study.trials import Problem
from edrbo.study.turns import Turns

if TYPE_CHECKING:  # thinking needs the engine, keeping records does not
    from edrbo.optimizer.answer import Prediction
    from edrbo.optimizer.choice import AskWishes
    from edrbo.optimizer.front import Front
    from edrbo.optimizer.optimizer import Optimizer
    from edrbo.optimizer.recommendation import Recommendation
    from edrbo.optimizer.tradeoff import Tradeoff
    from edrbo.records.goals import Goal


class Study(Recorder):
    """A durable optimizer.

    >>> import tempfile
    >>> space = Space(design={"speed": (1, 9)}, context={"humidity": (0, 1)})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = Study.open(folder + "/coating.db", space)
    ...     suggestion = study.ask()
    ...     study.tell(suggestion, {"humidity": 0.4}, 1.7)

    The methods are those of ``Optimizer``. Any number of processes and threads may use one study at once: no
    suggestion is handed out twice, and each knows of those before it. A suggestion's id is its trial number.
    ``ledger`` reads and writes the records themselves; ``by`` is written beside what this object records.
    """

    def __init__(self, ledger: Ledger, settings: Settings, name: str, *, by: str | None = None) -> None:
        """The study whose records are in ``ledger``; ``Study.open`` finds it."""
        self.name = name
        self.ledger = ledger
        self.by = by
        self._settings = settings
        self._turns = Turns(ledger)
        self._thinking: Optimizer | None = None
        self._saved = 0  # rows of the fit stored last
        self._warned: set[Problem] = set()
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._snapshot = self._read()

    @classmethod
    def open(
        cls,
        where: str | Path,
        space: Space | None = None,
        *,
        name: str | None = None,
        method: Any = DEFAULT,
        by: str | None = None,
        **choices: Unpack[Choices],
    ) -> Study:
        """The study in a file, or in PostgreSQL by URL (``postgresql://user@host/database``).

        With a ``space`` it is made if it does not exist; if it does, its settings must be these. Without one it must
        exist. ``name`` tells several studies in one place apart; ``by`` says who works here (default: the login).
        """
        settings = None if space is None else Settings.of(space, method, choices)
        return cls.open_with(where, settings, name=name, by=by)

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
        """The same with ``settings`` in one piece, or None for a study that exists.

        ``create`` says when a missing one is made: never, only as the first of its storage, or always.
        """
        place = where if is_url(where) else Path(where).absolute()  # a change of folder later must not matter
        storage, study_id, stored = open_study(place, name, settings, create)
        ledger = Ledger(storage, study_id, stored, place)
        study = cls(ledger, stored, storage.get_study_name_from_id(study_id), by=login() if by is None else by)
        if settings is not None:
            study._check_settings(settings)
        return study

    def _check_settings(self, given: Settings) -> None:
        differences = given.differences(self.settings)
        if differences:
            raise StudyError(
                f"the study in {describe(self.ledger.where)} has other settings: {'; '.join(differences)}",
                "open it without a space to go on with its own, amend it, or make a new study",
            )

    def __repr__(self) -> str:
        return f"Study({self.name!r} in {describe(self.ledger.where)!r}, {len(self._snapshot.state.told)} observations)"

    # ---------------------------------------------------------------- what is known

    @property
    def state(self) -> State:
        with self._alone():
            return self._sync().state

    @property
    def state_now(self) -> State:
        """The state as it was read last, by opening or by the last call; nothing is read."""
        return self._snapshot.state

    @property
    def settings(self) -> Settings:
        """As they are now; amendments included."""
        return self._snapshot.state.settings

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Records that cannot be read and were set aside."""
        with self._alone():
            return self._sync().problems

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer behind the study, up to date; tell it nothing."""
        with self._alone():
            self._sync()
            return self._thinker()

    def _sync(self) -> Snapshot:
        """Begins every call: what others wrote is taken over, what an earlier call failed to write is dropped."""
        self._snapshot = self._read()
        return self._snapshot

    def _read(self) -> Snapshot:
        snapshot = self.ledger.read()
        for problem in snapshot.problems:
            if problem not in self._warned:
                self._warned.add(problem)
                warnings.warn(
                    f"a record of {self.name!r} cannot be read and is set aside; {problem} (see `edrbo check`)",
                    UnreadableRecordWarning,
                    stacklevel=4,
                )
        return snapshot

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time, in a process of its own."""
        if os.getpid() != self._process:
            self._reopen()
        with self._lock:
            yield

    def _reopen(self) -> None:
        """After a fork: the parent's connections, locks and place in the queue are not ours."""
        self._process, self._lock, self._thinking = os.getpid(), threading.RLock(), None
        storage = open_storage(self.ledger.where, create=False)
        self.ledger = Ledger(storage, self.ledger.study_id, self._settings, self.ledger.where)
        self._turns = Turns(self.ledger)

    # ---------------------------------------------------------------- thinking

    def _thinker(self) -> Optimizer:
        """The optimizer of the state read last, with the latest fit that any process made."""
        from edrbo.optimizer.optimizer import Optimizer
        from edrbo.optimizer.stored_fit import StoredFit

        state = self._snapshot.state
        if self._thinking is None:
            self._thinking = Optimizer.of(state)
        else:
            self._thinking.go_on(state)
        with suppress(InvalidValueError, KeyError, TypeError, ValueError):  # nothing is lost but time
            self._thinking.offer(StoredFit.from_dict(self.ledger.load_fit()))
        return self._thinking

    @contextmanager
    def _thought(self) -> Iterator[Optimizer]:
        """Think about the present state, and keep what was fitted meanwhile."""
        with self._alone():
            self._sync()
            thinker = self._thinker()
            yield thinker
            self._save_fit(thinker)

    def _save_fit(self, thinker: Optimizer) -> None:
        fit = thinker.fit
        if fit is None or fit.rows <= self._saved:
            return
        with suppress(StudyError):  # nothing is lost but time
            self.ledger.save_fit(fit.to_dict())
            self._saved = fit.rows

    # ---------------------------------------------------------------- ask

    @overload
    def ask(self, n: None = None, **wishes: Unpack[AskWishes]) -> Suggestion: ...
    @overload
    def ask(self, n: int, **wishes: Unpack[AskWishes]) -> list[Suggestion]: ...
    def ask(self, n: int | None = None, **wishes: Unpack[AskWishes]) -> Suggestion | list[Suggestion]:
        """As ``Optimizer.ask``; the suggestion is stored, and stays pending until somebody tells it."""
        if n is None:
            return self._ask(wishes)
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise InvalidValueError(f"cannot ask for {n!r} suggestions", "ask for one or more")
        return [self._ask(wishes) for _ in range(n)]

    def _ask(self, wishes: AskWishes) -> Suggestion:
        """Compute first, take a number next: a process killed while computing leaves nothing behind.

        If others took numbers meanwhile, wait for their designs and compute again, knowing them. If others are at it
        already, that would be so, and the first step is left out.
        """
        with self._thought() as thinker:
            before = self._snapshot
            suggestion = None if before.open else thinker.ask(**wishes)
            with self._turns.take() as number:
                if suggestion is None or number != suggestion.id:
                    self._snapshot = self._turns.wait(number)
                    thinker = self._thinker()
                    thinker.go_on(self._snapshot.before(number))
                    suggestion = thinker.ask(**wishes)
                asked = thinker.state.history[-1]
                assert isinstance(asked, Asked)
                event = replace(asked, by=self.by, at=time.time())
                self.ledger.publish(event, self.space_now, self._snapshot.clock + 1)
            return suggestion

    @property
    def space_now(self) -> Space:
        """The space as it was read last."""
        return self._snapshot.state.space

    # ---------------------------------------------------------------- tell

    def _record(self, make: Make) -> Event:
        """Check by applying, write, and see that it counted."""
        with self._alone():
            snapshot = self._sync()
            event = make(snapshot.state)
            event = replace(
                event, by=self.by if event.by is None else event.by, at=time.time() if event.at is None else event.at
            )
            event = snapshot.state.apply(replace(event, ref="new")).history[-1]  # in plain types
            ref = self.ledger.write(event, snapshot.state, snapshot.clock + 1)
            if ref in self._sync().overtaken:
                raise InvalidContextError(
                    "another process told something else at the same moment, and came first",
                    "look at the run, and correct it",
                )
            return replace(event, ref=ref)

    def take(self, events: Sequence[Event]) -> None:
        """Record several events, all checked before the first is written.

        Runs that are new in them are numbered by the storage, whatever number they have in ``events``.
        """
        with self._alone():
            start = self._sync().state
            tried = start.apply(*(replace(event, ref=f"new {i}") for i, event in enumerate(events)))
            events = tried.history[len(start.history) :]
            numbers = {key: key for key in start.runs}
            for event in events:
                self._take(event, numbers)

    def _take(self, event: Event, numbers: dict[int, int]) -> None:
        """Write one event; ``numbers`` are those of its runs in the study, and learns that of a new one."""
        snapshot = self._snapshot
        at, key = time.time() if event.at is None else event.at, getattr(event, "id", None)
        event = replace(event, by=event.by or self.by, at=at)
        if key is None or key in numbers:
            event = event if key is None else replace(event, id=numbers[key])  # type: ignore[call-arg]
            self.ledger.write(event, snapshot.state, snapshot.clock + 1)
        else:
            assert isinstance(event, Asked | Told | Failed)
            numbers[key] = self.ledger.create(event, snapshot.state.space, snapshot.clock + 1)
        self._sync()

    # ---------------------------------------------------------------- recommend

    def recommend(self, **arguments: Any) -> Recommendation:
        """As ``Optimizer.recommend``."""
        with self._thought() as thinker:
            return thinker.recommend(**arguments)

    def front(self, **arguments: Any) -> Front:
        """As ``Optimizer.front``."""
        with self._thought() as thinker:
            return thinker.front(**arguments)

    def predict(self, designs: Any, **arguments: Any) -> Prediction:
        """As ``Optimizer.predict``."""
        with self._thought() as thinker:
            return thinker.predict(designs, **arguments)

    def tradeoff(self, goal: Goal | str | None = None, **arguments: Any) -> Tradeoff:
        """As ``Optimizer.tradeoff``."""
        with self._thought() as thinker:
            return thinker.tradeoff(goal, **arguments)
