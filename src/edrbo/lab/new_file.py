"""Files that are there in whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from edrbo.errors import StudyError, UnavailableError


@contextmanager
def new_file(path: Path, *, force: bool = False, mode: int | None = None) -> Iterator[BinaryIO]:
    """A file to write, which takes its place when all is written. After an error, say on a full disk, nothing is left.

    Args:
        path: Where it will be.
        force: Replace a file that is there already.
        mode: Its permissions; by default those of the umask, or of the file it replaces.
    """
    if path.exists() and not force:
        raise StudyError(f"{path} exists already", "choose another name, or add --force")
    if path.exists() and mode is None:
        mode = path.stat().st_mode & 0o777
    target = path.resolve()  # of a link the file behind it is replaced
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        descriptor = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if mode is None else mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if mode is not None:
                    os.chmod(beside, mode)  # whatever the umask
                yield file
                file.flush()
                os.fsync(file.fileno())
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        hint = "free some space" if "space" in reason or "large" in reason else "check the folder and its permissions"
        raise UnavailableError(f"cannot write {path}: {reason}", hint) from None
