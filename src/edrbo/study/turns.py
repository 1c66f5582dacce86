"""Who computes next: suggestions are made one after another, in the order in which their numbers were taken.

Taking a number creates a trial, which Optuna's storages do atomically. Its owner then waits until every earlier number
has its design. A number whose owner died is abandoned: at once if that can be seen, else after a while. An owner that was only slow loses nothing by it; the others just did not know its design.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from edrbo.errors import StudyError
from edrbo.state import State
from edrbo.study.ledger import Ledger
from edrbo.study.owner import is_dead

PATIENCE = 60.0  # seconds for the one before us
PAUSE = 0.01  # seconds between looks


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
        while True:
            snapshot = self._ledger.read()
            earlier = [key for key in snapshot.open if key < number]
            if not earlier:
                return replace(snapshot.state, asked=number)
            # Who stands right before us waits for all the others in turn; so it is enough to look at that one.
            self._wait_for(max(earlier), snapshot.open[max(earlier)])

    def _wait_for(self, number: int, owner: Mapping[str, Any]) -> None:
        begun = time.monotonic()
        while self._ledger.is_open(number):
            if number in self._lost or is_dead(owner) or time.monotonic() - begun > PATIENCE:
                self._ledger.abandon(number)
                return
            time.sleep(PAUSE)
