"""Thinking takes seconds: one worker thread a study does it, in the order in which it was asked."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from edrbo.errors import EdrboError, StudyError

log = logging.getLogger("edrbo.web")

MOST_WAITING = 30
KEPT = 60  # jobs that have ended and can still be asked about
FIRST_GUESS = 5.0  # seconds, before a kind of job was ever done


@dataclass
class Job:
    """Something being thought about; ``result`` once it is done, ``error`` if it could not be."""

    key: str
    kind: str
    words: str
    usual: float  # seconds that such a job took last time
    asked: float = field(default_factory=time.monotonic)
    status: Literal["waiting", "running", "done", "failed"] = "waiting"
    seconds: float = 0.0
    result: Any = None
    error: str = ""
    hint: str = ""
    problem: EdrboError | None = None
    ended: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def open(self) -> bool:
        return self.status in ("waiting", "running")

    def elapsed(self) -> float:
        return time.monotonic() - self.asked if self.open else self.seconds


class Worker:
    """Does jobs one after another in a thread of its own; a job that is asked for twice is done once."""

    def __init__(self, name: str) -> None:
        self._queue: queue.Queue[tuple[Job, Callable[[], Any]]] = queue.Queue()
        self._jobs: dict[str, Job] = {}
        self._usual: dict[str, float] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._name = name
        self.changes = 0

    def submit(self, key: str, kind: str, words: str, do: Callable[[], Any]) -> Job:
        """The job of that ``key``: begun now, or earlier by the same key."""
        with self._lock:
            if key in self._jobs:
                return self._jobs[key]
            if sum(job.open for job in self._jobs.values()) >= MOST_WAITING:
                raise StudyError("too much is being thought about", "wait for a suggestion, then ask again")
            job = self._jobs[key] = Job(key, kind, words, self._usual.get(kind, FIRST_GUESS))
            self._forget_old()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=f"edrbo {self._name}", daemon=True)
                self._thread.start()
            self.changes += 1
        self._queue.put((job, do))
        return job

    def get(self, key: str) -> Job | None:
        with self._lock:
            return self._jobs.get(key)

    def open_jobs(self, *kinds: str) -> list[Job]:
        with self._lock:
            return [job for job in self._jobs.values() if job.open and job.kind in kinds]

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

    def _forget_old(self) -> None:
        ended = [key for key, job in self._jobs.items() if not job.open]
        for key in ended[: max(0, len(ended) - KEPT)]:
            del self._jobs[key]

    def _work(self) -> None:
        while True:
            job, do = self._queue.get()
            job.status, started = "running", time.monotonic()
            self.changes += 1
            try:
                job.result = do()
                status: Literal["done", "failed"] = "done"
                self._usual[job.kind] = time.monotonic() - started
            except EdrboError as problem:
                status, job.error, job.hint, job.problem = "failed", problem.message, problem.hint or "", problem
            except Exception:  # the thread must live on, and a stranger learns nothing of our insides
                log.exception("a job failed")
                status, job.error, job.hint = "failed", "something went wrong on the server", "its log says what"
            job.seconds = time.monotonic() - job.asked
            job.status = status
            self.changes += 1
            job.ended.set()
