"""Searches for best designs, which take from a moment to minutes: announced as they begin, and kept on disk.

Outside of ``remembering`` a search is just made. Within, what was found for the same problem (by its values), question
and code is read from a folder of the user's, and who waits hears of every search that has to be made.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import edrbo
from edrbo.bench.problems.oracle.distributions import Array

ENVIRONMENT_VARIABLE = "EDRBO_CACHE"


@dataclass(frozen=True)
class _Memory:
    folder: Path
    tell: Callable[[str], None]


_memory: ContextVar[_Memory | None] = ContextVar("memory", default=None)


def cache_folder() -> Path:
    """``EDRBO_CACHE``, or the user's folder for such things."""
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    if named:
        return Path(named)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "edrbo" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "edrbo"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "edrbo"


@contextmanager
def remembering(tell: Callable[[str], None]) -> Iterator[None]:
    """Within, searches are kept on disk; ``tell`` is given a sentence at the beginning of each that is made."""
    before = _memory.set(_Memory(cache_folder() / "best-designs", tell))
    try:
        yield
    finally:
        _memory.reset(before)


def searched(what: str, identity: Callable[[], str], d_x: int, search: Callable[[], Array]) -> Array:
    """The best design (d_x,) that ``search`` finds, or found before when ``identity`` was the same."""
    memory = _memory.get()
    if memory is None:
        return search()
    key = hashlib.sha256("\n".join([edrbo.__version__, _code(), identity(), what]).encode()).hexdigest()
    path = memory.folder / f"{key}.json"
    found = _read(path, d_x)
    if found is None:
        memory.tell(f"looking for the best design of {what}")
        found = search()
        _write(path, found)
    found.flags.writeable = False
    return found


@cache
def _code() -> str:
    """A digest of what searches: found by other code is not found by this."""
    folder = Path(__file__).parent
    files = [folder.parent / "problem.py", *sorted(folder.glob("*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def _read(path: Path, d_x: int) -> Array | None:
    """None if there is nothing, or nothing that makes sense: then it is looked for again."""
    try:
        found = np.array(json.loads(path.read_text(encoding="utf-8")), dtype=np.float64)
    except (OSError, ValueError, TypeError):
        return None
    return found if found.shape == (d_x,) and bool(((found >= 0) & (found <= 1)).all()) else None


def _write(path: Path, x: Array) -> None:
    """A folder that cannot be written to costs the memory, not the run."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps(x.tolist()), encoding="utf-8")
        new.replace(path)
    except OSError:
        return
