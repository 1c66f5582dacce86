"""Who computes next: suggestions are made one after another, in the order in which their numbers were taken.

Taking a number creates a trial, which Optuna's storages do atomically. Its owner then waits until every earlier number
has its design. A number whose owner died is abandoned: at once if that can be seen, else when nothing has moved for a
while. An owner that was only slow loses nothing by it; the others just did not know its design.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from edrbo.errors import StudyError
from edrbo.records.state import State
from edrbo.study.ledger import Ledger
from edrbo.study.owner import is_dead

PATIENCE = 60.0  # seconds without any progress of those before us
PAUSE = 0.005  # seconds between looks of the next in line


class Turns:
    """The queue of a study."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lost: set[int] = set()  # numbers of ours that could not even be abandoned: the storage failed

    @contextmanager
    def take(self) -> Iterator[int]:
        """A number of our own; abandoned if its design is not stored in the end."""
        number = self._ledger.take_number()
        try:
            yield number
        except BaseException:
            self._lost.add(number)
            with suppress(StudyError):
                self._ledger.abandon(number)
            raise

    def wait(self, number: int) -> State:
        """The state to compute suggestion ``number`` from, once all numbers before it have their designs."""
        waiting, since = -1, time.monotonic()
        while True:
            begun = time.monotonic()
            snapshot = self._ledger.read()
            took = time.monotonic() - begun
            earlier = {key: owner for key, owner in snapshot.open.items() if key < number}
            if not earlier:
                return replace(snapshot.state, asked=number)
            if len(earlier) != waiting:
                waiting, since = len(earlier), time.monotonic()
            for key, owner in earlier.items():
                if key in self._lost or is_dead(owner) or time.monotonic() - since > PATIENCE:
                    self._ledger.abandon(key)
            # The next in line looks often; the others leave the storage and the machine to those before them.
            time.sleep(PAUSE + 3.0 * took * (len(earlier) - 1))
