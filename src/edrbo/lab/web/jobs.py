"""Computing takes seconds: a few threads do it for all studies, one job of a study at a time.

Who asks has a queue of its own. A free thread takes from the asker who has the fewest jobs running and was served
longest ago, and one asker never has all threads. A job has a time limit, and is stopped, or never begun, when nobody
asks for it any more.
"""

from __future__ import annotations

import itertools
import logging
import math
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from edrbo.cancellation import cancellable, checkpoint
from edrbo.errors import EdrboError, StoppedError, UnavailableError

log = logging.getLogger("edrbo.lab.web")

MOST_WAITING = 20  # of one asker, with those that are running
MOST_WAITING_IN_ALL = 400
MAX_ENDED_JOBS = 60  # jobs that have ended and can still be asked about
FIRST_GUESS = 5.0  # seconds, before a kind of job was ever done
PATIENCE = {"ask": 600.0, "prepare": 600.0, "answer": 180.0, "charts": 180.0, "import": 300.0}  # seconds it may take
# Seconds without a question, of which pages have one a second; longer for what is recorded in the end: a telephone may
# have been put away for a moment. What the server itself wants nobody asks for.
GONE_AFTER = {"ask": 60.0, "prepare": math.inf, "answer": 20.0, "charts": 20.0, "import": 60.0}
FIRST = ("ask",)  # before others of the same asker
NOBODY = "server"  # who asks for what the server itself wants


@dataclass
class Job:
    """Something being thought about; ``result`` once it is done, ``error`` if it could not be."""

    key: str
    kind: str
    words: str
    usual: float  # seconds that such a job took last time
    who: str = NOBODY
    asked: float = field(default_factory=time.monotonic)
    begun: float | None = None
    seen: float = field(default_factory=time.monotonic)  # when somebody asked for it last
    status: Literal["waiting", "running", "done", "failed"] = "waiting"
    seconds: float = 0.0
    result: Any = None
    error: str = ""
    hint: str = ""
    abandoned: bool = False  # it was stopped as nobody asked for it any more
    problem: EdrboError | None = None
    ended: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def open(self) -> bool:
        return self.status in ("waiting", "running")

    def elapsed(self) -> float:
        return time.monotonic() - self.asked if self.open else self.seconds

    def reason_to_stop(self) -> EdrboError | None:
        """Asked at every step of a computation."""
        now = time.monotonic()
        if now - self.seen > GONE_AFTER[self.kind]:
            self.abandoned = True
            return StoppedError(f"nobody waited for {self.words}", "ask again")
        if self.begun is not None and now - self.begun > PATIENCE[self.kind]:
            hint = "is there too much to choose from, or another program that needs the machine?"
            return StoppedError(f"{self.words} took longer than {PATIENCE[self.kind]:g} seconds", hint)
        return None


@dataclass
class _Waiting:
    job: Job
    do: Callable[[], Any]
    worker: Worker
    number: int


class Threads:
    """The threads that compute, for all studies of a server."""

    def __init__(self, count: int | None = None) -> None:
        self._count = count or max(2, min(4, os.cpu_count() or 2))
        self._changed = threading.Condition()
        self._waiting: list[_Waiting] = []
        self._running: list[_Waiting] = []
        self._served: dict[str, int] = {}  # asker → number of the last job that was begun for it
        self._numbers = itertools.count()
        self._started = 0
        self.stopped = False

    def stop(self) -> None:
        """The server ends: nothing is begun any more, and what runs is stopped."""
        self.stopped = True

    def put(self, job: Job, do: Callable[[], Any], worker: Worker) -> None:
        with self._changed:
            mine = sum(one.job.who == job.who for one in [*self._waiting, *self._running])
            if mine >= MOST_WAITING or len(self._waiting) >= MOST_WAITING_IN_ALL:
                raise UnavailableError(
                    "too much is being worked out", "wait for a suggestion or an answer, then ask again"
                )
            self._waiting.append(_Waiting(job, do, worker, next(self._numbers)))
            if self._started < self._count:
                self._started += 1
                threading.Thread(target=self._work, name=f"edrbo {self._started}", daemon=True).start()
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                while (found := self._next()) is None:
                    self._changed.wait()
                self._waiting.remove(found)
                self._running.append(found)
                self._served[found.job.who] = next(self._numbers)
            found.worker.run(found.job, found.do)
            with self._changed:
                self._running.remove(found)
                if not self._waiting:
                    self._served.clear()
                self._changed.notify_all()

    def _next(self) -> _Waiting | None:
        """What to begin now, if anything can be."""
        busy = {one.worker for one in self._running}
        has = {one.job.who: 0 for one in self._waiting}
        for one in self._running:
            has[one.job.who] = has.get(one.job.who, 0) + 1
        able = [one for one in self._waiting if one.worker not in busy and has[one.job.who] < self._count - 1]
        return min(
            able,
            key=lambda one: (
                has[one.job.who],
                self._served.get(one.job.who, -1),
                one.job.kind not in FIRST,
                one.number,
            ),
            default=None,
        )


class Worker:
    """The jobs of one study; one that is asked for twice is done once."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._jobs: dict[str, Job] = {}
        self._usual: dict[str, float] = {}
        self._lock = threading.Lock()
        self.changes = 0

    def submit(self, key: str, kind: str, words: str, do: Callable[[], Any], who: str = NOBODY) -> Job:
        """The job of that ``key``: begun now, or earlier by the same key. One that was abandoned begins
        again."""
        with self._lock:
            known = self._jobs.get(key)
            if known is not None and not (known.abandoned and not known.open):
                known.seen = time.monotonic()
                return known
            job = Job(key, kind, words, self._usual.get(kind, FIRST_GUESS), who)
            self._threads.put(job, do, self)
            self._jobs.pop(key, None)
            self._jobs[key] = job
            self._forget_old()
            self.changes += 1
        return job

    def get(self, key: str) -> Job | None:
        with self._lock:
            found = self._jobs.get(key)
            if found is not None:
                found.seen = time.monotonic()
            return found

    def open_jobs(self, *kinds: str) -> list[Job]:
        """Those of these kinds, for somebody who waits for them."""
        with self._lock:
            found = [job for job in self._jobs.values() if job.open and job.kind in kinds]
            for job in found:
                job.seen = time.monotonic()
            return found

    def wait(self, seconds: float) -> None:
        """Until the job that was asked for last has ended, if one is open; at most so long."""
        with self._lock:
            last = next((job for job in reversed(self._jobs.values()) if job.open), None)
        if last is not None:
            last.ended.wait(seconds)

    def last_failed(self, kind: str) -> Job | None:
        """The last job of its kind, if it went wrong."""
        with self._lock:
            of_kind = [job for job in self._jobs.values() if job.kind == kind]
        return of_kind[-1] if of_kind and of_kind[-1].status == "failed" else None

    def _reason_to_stop(self, job: Job) -> EdrboError | None:
        return StoppedError("the server was stopped") if self._threads.stopped else job.reason_to_stop()

    def _forget_old(self) -> None:
        ended = [key for key, job in self._jobs.items() if not job.open]
        for key in ended[: max(0, len(ended) - MAX_ENDED_JOBS)]:
            del self._jobs[key]

    def run(self, job: Job, do: Callable[[], Any]) -> None:
        """In a thread of ``Threads``."""
        started = time.monotonic()
        job.status, job.begun = "running", started
        self.changes += 1
        status: Literal["done", "failed"] = "failed"
        try:
            with cancellable(lambda: self._reason_to_stop(job)):
                checkpoint()
                job.result = do()
            status = "done"
            self._usual[job.kind] = time.monotonic() - started
        except EdrboError as problem:
            job.error, job.hint, job.problem = problem.message, problem.hint or "", problem
        except Exception:  # the thread must live on, and a stranger learns nothing of our insides
            if not self._threads.stopped:  # of a process that ends parts are gone already
                log.exception("a job failed")
            job.error, job.hint = "something went wrong on the server", "its log says what"
        job.seconds = time.monotonic() - job.asked
        job.status = status
        self.changes += 1
        job.ended.set()
