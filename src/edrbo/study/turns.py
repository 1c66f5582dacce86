"""Who computes next: suggestions are made one after another, in the order in which their numbers were taken.

Taking a number creates a trial, which Optuna's storages do atomically. Its owner then waits until every earlier number
has its design. A number whose owner died or was stopped is abandoned: at once if that can be seen, else when there was
no sign of life for a while. Who computes for long gives one from time to time. An owner that was only slow loses
nothing by it; the others just did not know its design.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from edrbo.errors import StudyError
from edrbo.study.ledger import Ledger
from edrbo.study.owner import is_dead, whose
from edrbo.study.snapshot import Snapshot

PATIENCE = 60.0  # seconds without a sign of life
HEARTBEAT = 15.0  # seconds between two of them
PAUSE, LONGEST_PAUSE = 0.01, 0.5  # seconds between looks
SILENCE = 2.0  # seconds after which we say what we wait for

logger = logging.getLogger("edrbo.study")


class Turns:
    """The queue of a study."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lost: set[int] = set()  # numbers of ours that could not even be abandoned: the storage failed

    @contextmanager
    def take(self) -> Iterator[int]:
        """A number of our own; abandoned if its design is not stored in the end."""
        number = self._ledger.take_number()
        done = threading.Event()
        heart = threading.Thread(target=self._live, args=(number, done), daemon=True)
        heart.start()
        try:
            yield number
        except BaseException:
            self._lost.add(number)
            with suppress(StudyError):
                self._ledger.abandon(number)
            raise
        finally:
            done.set()
            heart.join()

    def _live(self, number: int, done: threading.Event) -> None:
        """Signs of life until ``done``; one that cannot be given is no reason to stop."""
        count = 0
        while not done.wait(HEARTBEAT):
            count += 1
            with suppress(StudyError):
                self._ledger.beat(number, count)

    def wait(self, number: int) -> Snapshot:
        """The study to compute suggestion ``number`` from, once all numbers before it have their designs."""
        begun, pause, told = time.monotonic(), PAUSE, False
        signs: dict[int, tuple[Mapping[str, Any], float]] = {}  # the last of each owner, and when we first saw it
        before = -1
        while True:
            snapshot = self._ledger.read()
            earlier = {key: owner for key, owner in snapshot.open.items() if key < number}
            if not earlier:
                return snapshot
            now = time.monotonic()
            if len(earlier) != before:  # somebody was served: the next one begins only now
                before, pause, signs = len(earlier), PAUSE, {}
            for key, owner in earlier.items():
                if key not in signs or signs[key][0] != owner:
                    signs[key] = (owner, now)
                if key in self._lost or is_dead(owner) or now - signs[key][1] > PATIENCE:
                    self._ledger.abandon(key)
            if now - begun > SILENCE and not told:
                told = True
                first = min(earlier)
                logger.warning("waiting for suggestion %d, which %s is computing", first, whose(earlier[first]))
            # The next in line looks often; the others leave the storage and the machine to those before them.
            time.sleep(min(pause * len(earlier), LONGEST_PAUSE))
            pause = min(1.3 * pause, LONGEST_PAUSE)
