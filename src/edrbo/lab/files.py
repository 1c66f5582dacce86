"""Files of people: what lies at a path, found out without opening anything that could hang, grow or do something when
opened; and files that are written in whole or not at all.

Everything that looks into a folder somebody else may write to asks ``file_kind`` first and reads with ``read_file``:
named pipes, devices, sockets, folders and links that lead nowhere are never opened, and no file is read past a limit.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from edrbo.errors import StudyError, UnavailableError
from edrbo.lab.store.place import check_file


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


Kind = Literal["study", "description", "empty", "other", "missing"]

LARGEST_DESCRIPTION = 2**20  # bytes of a TOML file
NAMES = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)


@dataclass(frozen=True)
class FileKind:
    """``reason`` says why it can be no study, empty if it can be one."""

    kind: Kind
    reason: str = ""


def file_kind(path: Path) -> FileKind:
    """What ``path`` is, by its beginning; what study files look like, ``check_file`` of the store knows."""
    try:
        with open_regular(path):
            pass
        if path.suffix == ".toml":
            return FileKind("description")
        return FileKind("study" if check_file(path) else "empty")
    except FileNotFoundError:
        return FileKind("missing", "a link that leads nowhere" if path.is_symlink() else "there is no such file")
    except OSError as problem:
        return FileKind("other", problem.strerror or "it cannot be read")
    except StudyError as problem:
        return FileKind("other", problem.message)


def open_regular(path: Path) -> BinaryIO:
    """``path`` for reading, if it is a regular file or a link to one.

    Raises:
        OSError: it cannot be opened.
        StudyError: it is something else; it was not opened.
    """
    _check_regular(path, os.stat(path))
    # Something else may stand there by now; without O_NONBLOCK a named pipe would wait for its writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    file = os.fdopen(os.open(path, flags), "rb")
    try:
        _check_regular(path, os.fstat(file.fileno()))
    except StudyError:
        file.close()
        raise
    return file


def read_file(path: Path, largest: int) -> bytes:
    """All of a regular file of at most ``largest`` bytes; raises as ``open_regular``."""
    with open_regular(path) as file:
        data = file.read(largest + 1)
    if len(data) > largest:
        raise StudyError(f"{path} is too large", f"at most {largest // 1024} kB are read")
    return data


def _check_regular(path: Path, found: os.stat_result) -> None:
    if stat.S_ISREG(found.st_mode):
        return
    name = next((name for is_one, name in NAMES if is_one(found.st_mode)), "not a file")
    raise StudyError(f"{path} is {name}", "name a file")
