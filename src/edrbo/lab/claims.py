"""Claims: who computes or evaluates what at the moment, with signs of life.

A worker of ``Study.optimize`` holds a claim on what it evaluates, from the transaction that handed it out, and gives
signs of life. A claim whose holder is gone, or silent for too long, is taken over by another worker, in a transaction
as well. Outcomes do not depend on it: a run is reported once, whoever held it.
"""

from __future__ import annotations

import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from edrbo.errors import StudyError
from edrbo.lab.store.database import Statement, Value
from edrbo.lab.store.event_store import EventStore

HEARTBEAT = 2.0  # seconds between two signs of life
SIGN = "UPDATE edrbo_claims SET at = ? WHERE study_id = ? AND holder = ?"


def new_holder() -> str:
    """A name for somebody of this process, of which others can tell whether it lives."""
    return f"process {os.getpid()} on {socket.gethostname()} {uuid.uuid4().hex}"


def has_ended(holder: str) -> bool:
    """Whether it was a process of this machine, which is gone; of others one cannot tell."""
    named = re.fullmatch(r"process (\d+) on (\S+) \w+", holder)
    if named is None or named[2] != socket.gethostname() or os.name != "posix":
        return False
    try:
        os.kill(int(named[1]), 0)
    except OSError as problem:  # another one means that it lives, under another user
        return isinstance(problem, ProcessLookupError)
    return False


@dataclass(frozen=True)
class Claim:
    """Who evaluates a suggestion, and the last sign of life, in seconds since 1970."""

    holder: str
    at: float

    def is_stale(self, after: float) -> bool:
        """Whether whoever holds it is gone, or was silent for longer than so many seconds."""
        return time.time() - self.at > after or has_ended(self.holder)


def claims(store: EventStore, study: int) -> dict[int, Claim]:
    """By run; those of runs that were reported since are there until their holders look again."""
    rows = store.database.read("SELECT run_id, holder, at FROM edrbo_claims WHERE study_id = ? AND run_id >= 0", study)
    return {int(run): Claim(str(holder), float(at)) for run, holder, at in rows}


def claim(run: Statement, study: int, number: int, holder: str) -> None:
    """Within a transaction: run ``number`` is evaluated by ``holder`` from now on."""
    run("DELETE FROM edrbo_claims WHERE study_id = ? AND run_id = ?", study, number)
    run("INSERT INTO edrbo_claims VALUES (?, ?, ?, ?)", study, number, holder, time.time())


def release(store: EventStore, study: int, number: int, holder: str) -> None:
    """What was reported needs no holder; a claim that stays is passed over."""
    _try(store, "DELETE FROM edrbo_claims WHERE study_id = ? AND run_id = ? AND holder = ?", study, number, holder)


@contextmanager
def at_work(store: EventStore, study: int, holder: str) -> Iterator[None]:
    """Within, ``holder`` gives signs of life. What it holds in the end can be taken over at once."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(HEARTBEAT):
            _try(store, SIGN, time.time(), study, holder)

    heart = threading.Thread(target=beat, daemon=True)
    heart.start()
    try:
        yield
    finally:
        done.set()
        heart.join()
        _try(store, SIGN, 0.0, study, holder)


def _try(store: EventStore, statement: str, *values: Value) -> None:
    """What cannot be said is no reason to stop: others wait for their patience at most."""
    with suppress(StudyError), store.database.transaction() as run:
        run(statement, *values)
