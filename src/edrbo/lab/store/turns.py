"""Turns: who computes a suggestion at the moment, where several processes ask at once.

Nothing depends on it but time. A suggestion is checked when it is stored (``Study.ask``): if another one was handed out
meanwhile, it is computed again, knowing that one. Where many ask at once that alone would compute each suggestion many
times over, so whoever was overtaken takes a turn, and who finds one taken waits for it. A process of this machine that
has ended is passed over at once; any other after ``PATIENCE`` seconds without a sign of life.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from edrbo.lab.claims import at_work, claim, has_ended, new_holder, release
from edrbo.lab.store.database import Row
from edrbo.lab.store.event_store import COUNT, EventStore

PATIENCE = 10.0  # seconds without a sign of life
PAUSE = 0.03  # seconds between two looks
SILENCE = 2.0  # seconds after which we say what we wait for
COMPUTING = -1  # in place of the number of a run: its next suggestion
LOOK = "SELECT holder, at FROM edrbo_claims WHERE study_id = ? AND run_id = ?"

logger = logging.getLogger("edrbo.lab")


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
        if not found or now - since > PATIENCE or has_ended(found[0][0]):
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
