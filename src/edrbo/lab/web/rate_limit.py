"""How much one address may ask of the server, and how many secrets it may guess."""

from __future__ import annotations

import hashlib
import math
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

ADDRESSES = 4096  # remembered at once; who is forgotten begins anew


class Allowance:
    """Every address may do ``burst`` things at once and ``per_second`` in the long run."""

    def __init__(self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = per_second, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, who: str) -> int:
        """Seconds until ``who`` may do one more."""
        with self._lock:
            missing = 1.0 - self._now(who)
        return 0 if missing <= 0.0 else min(3600, math.ceil(missing / self._rate)) if self._rate else 3600

    def take(self, who: str) -> bool:
        """Whether ``who`` may do one more; if so it is taken."""
        with self._lock:
            left = self._now(who)
            self._left[who] = (max(0.0, left - 1.0) if left >= 1.0 else left, self._clock())
            self._left.move_to_end(who)
            if len(self._left) > ADDRESSES:
                self._left.popitem(last=False)
            return left >= 1.0

    def _now(self, who: str) -> float:
        left, at = self._left.get(who, (self._burst, self._clock()))
        return min(self._burst, left + self._rate * (self._clock() - at))


class Guesses:
    """Wrong secrets that an address has given. The same one again is no guess: a page that was left open sends its own
    for ever, and learns nothing by it."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self._key = secrets.token_bytes(32)
        self._known: OrderedDict[tuple[str, bytes], None] = OrderedDict()
        self._lock = threading.Lock()

    def wrong(self, who: str, secret: str) -> bool:
        """Count a wrong secret; False if it was one too many."""
        mark = (who, hashlib.blake2b(secret.encode(), key=self._key, digest_size=16).digest())
        with self._lock:
            if mark in self._known:
                self._known.move_to_end(mark)
                return True
            if not self._allowance.take(who):
                return False
            self._known[mark] = None
            if len(self._known) > ADDRESSES:
                self._known.popitem(last=False)
            return True

    def wait(self, who: str) -> int:
        return self._allowance.wait(who)
