"""Whose turn it is to compute a suggestion, where several processes ask at once.

Nothing depends on it but time. A suggestion is checked when it is stored (``Study.ask``): if another one was handed out
meanwhile, it is computed again, knowing that one. Where many ask at once that alone would compute each suggestion many
times over, so whoever was overtaken takes a turn, and who finds one taken waits for it. Who computes gives a sign of
life every two seconds. A process of this machine that has ended is passed over at once; any other after ``PATIENCE``
seconds without a sign.
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

from edrbo.errors import StudyError
from edrbo.lab.store.database import Row
from edrbo.lab.store.event_store import EventStore

PATIENCE = 10.0  # seconds without a sign of life
HEARTBEAT = 2.0  # seconds between two of them
PAUSE, LONGEST_PAUSE = 0.01, 0.05  # seconds between looks
SILENCE = 2.0  # seconds after which we say what we wait for

logger = logging.getLogger("edrbo.lab")


def is_taken(store: EventStore, study: int) -> bool:
    """Whether somebody computes a suggestion who was overtaken once, or waited."""
    return bool(store.database.read("SELECT holder FROM edrbo_turns WHERE study_id = ?", study))


@contextmanager
def turn(store: EventStore, study: int) -> Iterator[None]:
    """Within, other processes leave computing to this one."""
    me = f"process {os.getpid()} on {socket.gethostname()} {uuid.uuid4().hex}"
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
