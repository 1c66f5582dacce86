"""Claims: who computes a suggestion at the moment, where several processes ask at once, and who evaluates which run.

**Turns.** Nothing depends on it but time. A suggestion is checked when it is stored (``Study.ask``): if another one was
handed out meanwhile, it is computed again, knowing that one. Where many ask at once that alone would compute each
suggestion many times over, so whoever was overtaken takes a turn, and who finds one taken waits for it. Who computes
gives a sign of life every two seconds. A process of this machine that has ended is passed over at once; any other after
``PATIENCE`` seconds without a sign.

**Runs.** A worker of ``Study.optimize`` holds a claim on what it evaluates, from the transaction that handed it out,
and gives signs of life. A claim whose holder is gone, or silent for too long, is taken over by another worker, in a
transaction as well. Outcomes do not depend on it: a run is reported once, whoever held it.
"""

from __future__ import annotations

import logging
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
from edrbo.lab.store.database import Row, Statement, Value
from edrbo.lab.store.event_store import COUNT, EventStore

PATIENCE = 10.0  # seconds without a sign of life
HEARTBEAT = 2.0  # seconds between two of them
PAUSE = 0.03  # seconds between two looks
SILENCE = 2.0  # seconds after which we say what we wait for
COMPUTING = -1  # in place of the number of a run: its next suggestion
LOOK = "SELECT holder, at FROM edrbo_claims WHERE study_id = ? AND run_id = ?"
SIGN = "UPDATE edrbo_claims SET at = ? WHERE study_id = ? AND holder = ?"

logger = logging.getLogger("edrbo.lab")


def new_holder() -> str:
    """A name for somebody of this process, of which others can tell whether it lives."""
    return f"process {os.getpid()} on {socket.gethostname()} {uuid.uuid4().hex}"


def _has_ended(holder: str) -> bool:
    """Whether it was a process of this machine, which is gone; of others one cannot tell."""
    named = re.fullmatch(r"process (\d+) on (\S+) \w+", holder)
    if named is None or named[2] != socket.gethostname() or os.name != "posix":
        return False
    try:
        os.kill(int(named[1]), 0)
    except OSError as problem:  # another one means that it lives, under another user
        return isinstance(problem, ProcessLookupError)
    return False


# -------------------------------------------------------------------- turns


def is_taken(store: EventStore, study: int) -> bool:
    """Whether somebody computes a suggestion who was overtaken once, or waited."""
    return bool(store.database.read(LOOK, study, COMPUTING))


@contextmanager
def turn(store: EventStore, study: int) -> Iterator[None]:
    """Within, other processes leave computing to this one."""
    me = new_holder()
    _wait(store, study, me)
    with at_work(store, study, me):
        try:
            yield
        finally:
            release(store, study, COMPUTING, me)


def _wait(store: EventStore, study: int, me: str) -> None:
    """Until nobody else has the turn, and it is ours."""
    begun, said = time.monotonic(), False
    seen, since = list[Row](), begun  # the holder with the last sign of life, and when we saw it first
    while True:
        found, now = store.database.read(LOOK, study, COMPUTING), time.monotonic()
        if found != seen:
            seen, since = found, now
        if not found or now - since > PATIENCE or _has_ended(found[0][0]):
            with store.database.transaction() as run:
                run(COUNT + store.database.for_update, study)
                if run(LOOK, study, COMPUTING) == found:  # nobody else took it meanwhile
                    claim(run, study, COMPUTING, me)
                    return
            continue
        if now - begun > SILENCE and not said:
            said = True
            owner = ascii(found[0][0].rpartition(" ")[0]).strip("'")
            logger.warning(
                "waiting for %s, which computes a suggestion; without a sign of life for %d s I go on", owner, PATIENCE
            )
        time.sleep(PAUSE)


# -------------------------------------------------------------------- claims


@dataclass(frozen=True)
class Claim:
    """Who evaluates a suggestion, and the last sign of life, in seconds since 1970."""

    holder: str
    at: float

    def is_stale(self, after: float) -> bool:
        """Whether whoever holds it is gone, or was silent for longer than so many seconds."""
        return time.time() - self.at > after or _has_ended(self.holder)


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
