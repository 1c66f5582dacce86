"""The lock of a study file: safe against kill -9, and polite to other programs that write Optuna journals.

Optuna's own lock is a symbolic link beside the file. A process that is killed while holding it leaves the link behind,
and the next writer waits for half a minute. The kernel's ``flock`` ends with the process that holds it, so ours takes
that first: who has it and still finds a link of ours knows that its owner is dead. The link is taken as well, because
it is what optuna-dashboard and plain Optuna programs respect.

A process killed in the middle of a write, or a full disk, leaves a torn last line, which the next append would turn
into an unreadable one in the middle of the file. Under the lock it can be cut off safely: what it said was never
acknowledged.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from optuna.storages.journal import JournalFileOpenLock, JournalFileSymlinkLock

CHUNK = 65_536


def study_file_lock(path: str) -> JournalFileOpenLock | JournalFileSymlinkLock:
    """The lock for the journal at ``path``."""
    if sys.platform == "win32":  # neither flock nor links without a privilege
        return JournalFileOpenLock(path)
    return StudyFileLock(path)


class StudyFileLock(JournalFileSymlinkLock):
    """flock on the file itself, then Optuna's symbolic link."""

    def __init__(self, path: str) -> None:
        folder, name = os.path.split(os.path.abspath(path))
        # "/./" leads to the same file and marks the link as one made under flock.
        self._marked = os.path.join(folder, ".", name)
        self._link = self._marked + ".lock"
        self._descriptor = -1
        super().__init__(self._marked)

    def acquire(self) -> bool:
        descriptor = os.open(self._marked, os.O_RDWR)
        try:
            if _flock(descriptor):
                self._remove_link_of_the_dead()
            super().acquire()
            try:
                drop_torn_line(descriptor)
            except BaseException:
                super().release()
                raise
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        try:
            super().release()
        finally:
            if self._descriptor >= 0:  # Optuna also calls this to break a foreign lock while acquiring
                _unlock(self._descriptor)
                os.close(self._descriptor)
                self._descriptor = -1

    def _remove_link_of_the_dead(self) -> None:
        if os.path.islink(self._link) and os.readlink(self._link) == self._marked:
            os.unlink(self._link)


def _flock(descriptor: int) -> bool:
    """Whether the kernel's lock was taken; some network file systems have none, and the link must do."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        return False
    return True


def _unlock(descriptor: int) -> None:
    """Closing is not enough: a process forked meanwhile by another thread holds the same descriptor."""
    import fcntl

    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def drop_torn_line(descriptor: int) -> None:
    """Cut the file after its last newline."""
    size = end = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - CHUNK)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end < size:
        os.ftruncate(descriptor, end)
        os.fsync(descriptor)
