"""Whose turn it is to compute a suggestion, where several processes ask at once; and who evaluates which.

**Turns.** Nothing depends on it but time. A suggestion is checked when it is stored (``Study.ask``): if another one was
handed out meanwhile, it is computed again, knowing that one. Where many ask at once that alone would compute each
suggestion many times over, so whoever was overtaken takes a turn, and who finds one taken waits for it. Who computes
gives a sign of life every two seconds. A process of this machine that has ended is passed over at once; any other after
``PATIENCE`` seconds without a sign.

**Claims.** A worker of ``Study.optimize`` holds a claim on what it evaluates, from the transaction that handed it out,
and gives signs of life. A claim whose holder is gone, or silent for too long, is taken over by another worker, in a
transaction as well. Outcomes do not depend on it: a run is reported once, whoever held it.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from edrbo.errors import StudyError
from edrbo.lab.store.database import Row, Statement
from edrbo.lab.store.event_store import EventStore

PATIENCE = 10.0  # seconds without a sign of life
HEARTBEAT = 2.0  # seconds between two of them
PAUSE, LONGEST_PAUSE = 0.01, 0.05  # seconds between looks
SILENCE = 2.0  # seconds after which we say what we wait for

logger = logging.getLogger("edrbo.lab")


def is_taken(store: EventStore, study: int) -> bool:
    """Whether somebody computes a suggestion who was overtaken once, or waited."""
    return bool(store.database.read("SELECT holder FROM edrbo_turns WHERE study_id = ?", study))


def new_holder() -> str:
    """A name for somebody of this process, of which others can tell whether it lives."""
    return f"process {os.getpid()} on {socket.gethostname()} {uuid.uuid4().hex}"


@contextmanager
def turn(store: EventStore, study: int) -> Iterator[None]:
    """Within, other processes leave computing to this one."""
    me = new_holder()
    _wait(store, study, me)
    done = threading.Event()
    heart = threading.Thread(target=_beat, args=(store, study, me, done), daemon=True)
    heart.start()
    try:
        yield
    finally:
        done.set()
        heart.join()
        with suppress(StudyError), store.database.transaction() as run:  # if not, others wait for PATIENCE
            run("DELETE FROM edrbo_turns WHERE study_id = ? AND holder = ?", study, me)


def _wait(store: EventStore, study: int, me: str) -> None:
    begun, pause, said = time.monotonic(), PAUSE, False
    seen: Row | None = None  # the holder and its last sign of life, …
    since = begun  # … and when we saw it first
    while True:
        rows = store.database.read("SELECT holder, beat FROM edrbo_turns WHERE study_id = ?", study)
        now = time.monotonic()
        row = rows[0] if rows else None
        if row != seen:
            seen, since = row, now
        if row is None or now - since > PATIENCE or _has_ended(str(row[0])):
            if _take(store, study, me, row):
                return
            continue
        if now - begun > SILENCE and not said:
            said = True
            owner = ascii(str(row[0]).rpartition(" ")[0]).strip("'")
            logger.warning(
                "waiting for %s, which computes a suggestion; without a sign of life for %d s I go on", owner, PATIENCE
            )
        time.sleep(pause)
        pause = min(1.3 * pause, LONGEST_PAUSE)


def _take(store: EventStore, study: int, me: str, before: Row | None) -> bool:
    """Whether the turn is ours now: nobody else took it since we saw it free, or with a holder who is gone."""
    with store.database.transaction() as run:
        run(f"SELECT id FROM edrbo_studies WHERE id = ?{store.database.for_update}", study)
        rows = run("SELECT holder, beat FROM edrbo_turns WHERE study_id = ?", study)
        if (rows[0] if rows else None) != before:
            return False
        run("DELETE FROM edrbo_turns WHERE study_id = ?", study)
        run("INSERT INTO edrbo_turns VALUES (?, ?, ?)", study, me, 0)
        return True


def _beat(store: EventStore, study: int, me: str, done: threading.Event) -> None:
    """Signs of life until ``done``; one that cannot be given is no reason to stop."""
    while not done.wait(HEARTBEAT):
        with suppress(StudyError), store.database.transaction() as run:
            run("UPDATE edrbo_turns SET beat = beat + 1 WHERE study_id = ? AND holder = ?", study, me)


def _has_ended(holder: str) -> bool:
    """Whether it was a process of this machine, which is gone; of others one cannot tell."""
    words = holder.split(" ")
    if os.name != "posix" or len(words) < 5 or words[3] != socket.gethostname() or not words[1].isdigit():
        return False
    try:
        os.kill(int(words[1]), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it lives, under another user
        return False
    return False


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
    rows = store.database.read("SELECT run_id, holder, at FROM edrbo_claims WHERE study_id = ?", study)
    return {int(run): Claim(str(holder), float(at)) for run, holder, at in rows}


def claim(run: Statement, study: int, number: int, holder: str) -> None:
    """Within a transaction: run ``number`` is evaluated by ``holder`` from now on."""
    run("DELETE FROM edrbo_claims WHERE study_id = ? AND run_id = ?", study, number)
    run("INSERT INTO edrbo_claims VALUES (?, ?, ?, ?)", study, number, holder, time.time())


def release(store: EventStore, study: int, number: int, holder: str) -> None:
    """What was reported needs no holder; a claim that stays is passed over."""
    with suppress(StudyError), store.database.transaction() as run:
        run("DELETE FROM edrbo_claims WHERE study_id = ? AND run_id = ? AND holder = ?", study, number, holder)


@contextmanager
def at_work(store: EventStore, study: int, holder: str) -> Iterator[None]:
    """Within, ``holder`` gives signs of life. What it holds in the end can be taken over at once."""
    done = threading.Event()
    heart = threading.Thread(target=_signs, args=(store, study, holder, done), daemon=True)
    heart.start()
    try:
        yield
    finally:
        done.set()
        heart.join()
        _sign(store, study, holder, 0.0)


def _signs(store: EventStore, study: int, holder: str, done: threading.Event) -> None:
    while not done.wait(HEARTBEAT):
        _sign(store, study, holder, time.time())


def _sign(store: EventStore, study: int, holder: str, at: float) -> None:
    """One that cannot be given is no reason to stop."""
    with suppress(StudyError), store.database.transaction() as run:
        run("UPDATE edrbo_claims SET at = ? WHERE study_id = ? AND holder = ?", at, study, holder)
