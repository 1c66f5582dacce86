"""Named random streams: every use of chance has its own child of the one seed, so none can disturb another."""

from __future__ import annotations

import hashlib
import math

import numpy as np

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def stream_seed(seed: int, *names: str | int) -> int:
    """A 63-bit seed for the stream ``names`` of ``seed``; the same on every machine."""
    text = "/".join(str(part) for part in (seed, *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """A generator for the stream ``names`` of ``seed``."""
    return np.random.default_rng(stream_seed(seed, *names))


def in_turn(number: int) -> float:
    """A share in [0, 1) for every whole number: those of any stretch of numbers are spread evenly."""
    return GOLDEN * number % 1.0
