"""How many threads the matrices of the engine take: one, unless the environment variable EDRBO_THREADS says more.

They are small: a second thread mostly waits for the first, and burns the time of a core while it does. On a machine
that does other things both wait for the scheduler as well, and a suggestion takes forty times as long
(docs/speed.md#one-thread). Sums over several threads also round differently, so that a suggestion would hang on how
many cores there are.

PyTorch keeps the number of threads once for each Python thread, beside one for the process with which threads begin
that have not used it yet; ``torch.set_num_threads`` sets both. Here only the one of the calling thread is changed, and
only as long as a call lasts.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

from edrbo.errors import InvalidValueError

VARIABLE = "EDRBO_THREADS"

_setting = threading.Lock()  # while the number of the process is not what it should be


class _Here(threading.local):
    inside = False  # a call of the engine, in this thread


_here = _Here()


class _NumPys:
    """The threads of NumPy's OpenBLAS, which has one number for the whole process: set by the first call that is under
    way, put back by the last."""

    def __init__(self) -> None:
        self._lock, self._calls = threading.Lock(), 0
        self._limits: Any = None

    def enter(self, count: int) -> None:
        with self._lock:
            if self._calls == 0:
                self._limits = _libraries().limit(limits=count, user_api="blas")
            self._calls += 1

    def leave(self) -> None:
        with self._lock:
            self._calls -= 1
            if self._calls == 0:
                self._limits.restore_original_limits()


_numpys = _NumPys()


@cache
def _libraries() -> Any:
    """NumPy's and SciPy's, each with an OpenBLAS of its own: one that is loaded later would not be found."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def wanted_threads() -> int:
    """What the environment asks for; one by default. InvalidValueError if it is no number of threads."""
    given = os.environ.get(VARIABLE, "").strip() or "1"
    if not (given.isascii() and given.isdigit() and int(given) > 0):
        raise InvalidValueError(f"{VARIABLE} is {given!r}", "give a number of threads, 1 or more")
    return int(given)


@contextmanager
def engine_threads(count: int | None = None) -> Iterator[None]:
    """Run what is inside on ``count`` threads; also a decorator.

    Calls may lie inside one another and run in several Python threads at once. Afterwards, and in all other threads,
    PyTorch's own number is what it was.

    Args:
        count: By default what a call around this one has, or else as many as the environment asks for.
    """
    import torch

    outer, before = _here.inside, torch.get_num_threads()
    wanted = count or (before if outer else wanted_threads())
    if before != wanted:
        _set_here(wanted)
    if not outer:
        _numpys.enter(wanted)
    _here.inside = True
    try:
        yield
    finally:
        _here.inside = outer
        if not outer:
            _numpys.leave()
        if before != wanted:
            _set_here(before)


def _set_here(count: int) -> None:
    """``torch.set_num_threads`` for the calling thread alone.

    The number of the process is read and put back by a thread that has not used PyTorch before: it begins with that.
    """
    import torch

    with _setting, ThreadPoolExecutor(1, "edrbo threads") as fresh:
        of_process = fresh.submit(torch.get_num_threads).result()
        torch.set_num_threads(count)
        fresh.submit(torch.set_num_threads, of_process).result()
