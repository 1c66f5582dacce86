"""How much one address may ask of the server."""

from __future__ import annotations

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

    def has(self, who: str) -> bool:
        """Whether ``who`` may do one more, without taking it."""
        with self._lock:
            return self._now(who) >= 1.0

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
