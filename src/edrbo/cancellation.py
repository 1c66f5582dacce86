"""Stopping a computation that nobody waits for any more, or that takes too long, from outside its thread.

The searches of the engine call ``checkpoint`` wherever they evaluate; nothing is recorded in between, so a study is the
same after a computation was stopped as before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from edrbo.errors import EdrboError

_check: ContextVar[Callable[[], EdrboError | None] | None] = ContextVar("edrbo_check", default=None)


@contextmanager
def cancellable(check: Callable[[], EdrboError | None]) -> Iterator[None]:
    """Within it, a checkpoint raises the error that ``check`` gives, if it gives one.

    Args:
        check: called often, so it should be cheap; gives the reason to stop, or None.
    """
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)


def checkpoint() -> None:
    """Stop here if somebody asked for it."""
    check = _check.get()
    if check is not None and (reason := check()) is not None:
        raise reason
