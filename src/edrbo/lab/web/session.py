"""A study as it is served: one object for records, one for inference, and a queue of jobs."""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from edrbo.errors import EdrboError, InvalidValueError, RecordedAlreadyError, StudyError
from edrbo.lab.study import Study
from edrbo.lab.web.jobs import Job, Threads, Worker
from edrbo.lab.web.registry import StudyRegistry
from edrbo.records import events as e
from edrbo.records.run import Suggestion
from edrbo.records.state import State

LOOK_AGAIN = 2.0  # seconds until a place is searched for new studies again
SAYS_NOTHING_OF_VALUES = (e.Asked, e.Noted, e.Cancelled)


class StudySession:
    """``study`` records at once; ``inference``, the same study opened again, is for jobs alone.

    A study holds its lock while it thinks. With two objects an entry never waits for a suggestion.
    """

    def __init__(self, word: str, opener: Callable[[], Study], threads: Threads, *, prepares: bool) -> None:
        self.word = word
        self.study = opener()
        self.worker = Worker(threads)
        self.prepares = prepares
        self._opener = opener
        self._inference: Study | None = None
        self._writing = threading.Lock()
        self.importer = Worker(threads)  # a table does not wait for a suggestion
        self._rows = (0, 1)
        self._book: Study | None = None

    @property
    def state(self) -> State:
        return self.study.state

    @property
    def title(self) -> str:
        """The name for people."""
        return self.study.settings.title or self.study.name

    @property
    def outcome(self) -> tuple[str, str]:
        """What is measured, and its unit."""
        settings = self.study.settings
        return ("Result" if settings.outcome == "value" else settings.outcome), settings.unit

    # ---------------------------------------------------------------- what has changed

    def version(self, state: State) -> str:
        """Another text whenever something was recorded or a job moved on."""
        return f"{_mark(state.history)}-{self.worker.changes}"

    def evidence(self, state: State) -> str:
        """Another text whenever something was recorded that an answer hangs on."""
        return _mark([event for event in state.history if not isinstance(event, SAYS_NOTHING_OF_VALUES)])

    # ---------------------------------------------------------------- writing

    def once(self, key: str, write: Callable[[], Any]) -> tuple[e.Event, bool]:
        """Record something under ``key``, unless that was done before; gives the event and whether it is new.

        The records themselves remember the key, so this holds for a server that was killed and started again.
        """
        with self._writing:
            found = _with_key(self.state, key)
            if found is not None:
                return found, False
            with suppress(RecordedAlreadyError):  # by another server, just now
                write()
            found = _with_key(self.study.state_now, key)  # a write ends with reading it back
        if found is None:
            raise StudyError("what was sent cannot be found among the records", "look at the runs")
        return found, True

    def book(self) -> Study:
        """For the importer's thread only: an entry does not wait until a table is written."""
        if self._book is None:
            self._book = self._opener()
        return self._book

    def progress(self, done: int, of: int) -> None:
        """How many rows were checked of the table that is being stored: one at a time."""
        self._rows = done, of

    def progress_of(self, job: Job) -> tuple[int, int] | None:
        return self._rows if job.kind == "import" and job.status == "running" else None

    def job(self, key: str) -> Job | None:
        """A job by its key, whoever does it."""
        return self.worker.get(key) or self.importer.get(key)

    # ---------------------------------------------------------------- thinking

    def inference(self, by: str | None = None) -> Study:
        """For jobs only, of which a study has one at a time."""
        if self._inference is None:
            self._inference = self._opener()
        self._inference.by = by or self.study.by
        return self._inference

    def ask(self, key: str, count: int, request: Mapping[str, Any], by: str | None, who: str) -> Job:
        """``request``: what else ``Study.ask`` is to know."""

        def do() -> list[dict[str, Any]]:
            found = self.inference(by).ask(count, **request)
            self.prepare()
            return [_suggestion_of(one) for one in found]

        words = "the next suggestion" if count == 1 else f"the next {count} suggestions"
        return self.worker.submit(f"ask {key}", "ask", words, do, who)

    def claim(self, key: str, stale_after: float, who: str) -> Job:
        """Take up a suggestion that nobody seems to evaluate; none, if there is none."""

        def do() -> list[dict[str, Any]]:
            found = self.inference().claim(stale_after=stale_after)
            return [] if found is None else [_suggestion_of(found)]

        return self.worker.submit(f"claim {key}", "ask", "a suggestion that waits", do, who)

    def prepare(self) -> None:
        """If that is wanted: with one run being made, work out the next, which cannot know how this one ends."""
        if not self.prepares or self.worker.open_jobs("prepare"):
            return
        state = self.state
        if len(state.pending) != 1:
            return
        (made,) = state.pending

        def do() -> int:
            inference = self.inference()
            if len(inference.state.pending) != 1:
                return 0
            suggestion = inference.ask()
            inference.note(suggestion.id, f"prepared while run {made} was being made, without its result")
            return 1

        self.worker.submit(f"prepare {_mark(state.history)}", "prepare", "the suggestion after this one", do)

    def answer(
        self,
        context: Mapping[str, float] | None,
        who: str,
        goal: str | None = None,
        fixed: Mapping[str, Any] | None = None,
    ) -> Job:
        """The recommendation for the learned distribution, or for one context; of several main outcomes the front.
        ``fixed`` are settings that are held."""
        from edrbo.lab.web.answer import answer_of, front_of

        if self.study.settings.has_front and goal is not None:
            raise InvalidValueError("a front has the goals of its outcomes", "leave the goal out")

        def think() -> dict[str, Any]:
            inference = self.inference()
            if self.study.settings.has_front:
                return front_of(inference, context, fixed)
            return answer_of(inference, context, goal, fixed)

        marks = [repr(sorted(part.items())) for part in (context, fixed) if part]
        key = f"answer {self.evidence(self.state)} {' '.join(marks)}{'' if goal is None else f' {goal!r}'}"
        key += " held" * bool(fixed)
        return self.worker.submit(key, "answer", "the answer", think, who)

    def predict(
        self,
        design: Mapping[str, Any],
        context: Mapping[str, Any] | None,
        goal: str | None,
        outcome: str | None,
        who: str,
    ) -> Job:
        """What is believed of one design."""
        from edrbo.lab.web.answer import predict_of

        asked = (design, context, goal, outcome)
        key = f"predict {self.evidence(self.state)} {asked!r}"
        return self.worker.submit(key, "answer", "what to expect", lambda: predict_of(self.inference(), *asked), who)

    def tradeoff(self, goal: str | None, who: str) -> Job:
        """Designs between the best on average and the best under a goal."""
        from edrbo.lab.web.answer import tradeoff_of

        key = f"tradeoff {self.evidence(self.state)} {goal!r}"
        return self.worker.submit(key, "answer", "the trade-off", lambda: tradeoff_of(self.inference(), goal), who)

    def policy(self, known: Sequence[str], who: str) -> Job:
        """The best design for each context, where the variables of these names are known before, or all."""
        from edrbo.lab.web.answer import policy_of

        key = f"policy {self.evidence(self.state)} {sorted(known)!r}"
        return self.worker.submit(key, "answer", "the policy", lambda: policy_of(self.inference(), known), who)

    def sensitivity(self, outcome: str | None, who: str) -> Job:
        """What matters for an outcome, by default for the main one."""
        from edrbo.lab.web.answer import sensitivity_of

        key = f"sensitivity {self.evidence(self.state)} {outcome!r}"
        return self.worker.submit(key, "answer", "what matters", lambda: sensitivity_of(self.inference(), outcome), who)

    def charts(self, who: str) -> Job:
        from edrbo.lab.web.answer import charts_of

        key = f"charts {self.evidence(self.state)}"
        return self.worker.submit(key, "charts", "the charts", lambda: charts_of(self.inference()), who)

    def pair(self, names: tuple[str, str], who: str) -> Job:
        """The map of two variables."""
        from edrbo.lab.web.answer import pair_of

        key = f"pair {self.evidence(self.state)} {names!r}"
        return self.worker.submit(key, "charts", "the map", lambda: pair_of(self.inference(), *names), who)


class StudySessions:
    """The sessions of all studies of a registry, opened when they are first wanted."""

    def __init__(self, places: StudyRegistry, *, prepares: bool = False) -> None:
        self.places = places
        self._prepares = prepares
        self._sessions: dict[str, StudySession] = {}
        self._threads = Threads()
        self._lock = threading.Lock()
        self._looked = time.monotonic()
        self._checked, self._reachable = -LOOK_AGAIN, True

    def get(self, word: str) -> StudySession:
        with self._lock:
            if word not in self._sessions:
                self._sessions[word] = StudySession(
                    word, lambda: self.places.open(word), self._threads, prepares=self._prepares
                )
            return self._sessions[word]

    def stop(self) -> None:
        """The server ends."""
        self._threads.stop()

    def reachable(self) -> bool:
        """Whether the place of the studies can be read; looked up at most every other second."""
        with self._lock:
            if time.monotonic() - self._checked > LOOK_AGAIN:
                self._checked = time.monotonic()
                try:
                    self.places.look()
                    self._reachable = True
                except EdrboError:
                    self._reachable = False
            return self._reachable

    def names(self) -> dict[str, str]:
        """Also those that somebody else made meanwhile."""
        with self._lock:
            if time.monotonic() - self._looked > LOOK_AGAIN:
                self._looked = time.monotonic()
                with suppress(EdrboError):  # what was found before is still shown, and says what is wrong when opened
                    self.places.look()
        return self.places.names()


def _suggestion_of(one: Suggestion) -> dict[str, Any]:
    return {"id": one.id, "design": one.design, "cost": one.cost}


def _with_key(state: State, key: str) -> e.Event | None:
    return next((event for event in reversed(state.history) if event.key == key), None)


def _mark(history: Any) -> str:
    return f"{len(history)}.{zlib.crc32(history[-1].ref.encode()):x}" if len(history) else "0"
