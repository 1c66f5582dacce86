"""What lies at a path, found out without opening anything that could hang, grow or do something when opened.

Everything that looks into a folder somebody else may write to asks ``file_kind`` first and reads with ``read_file``:
named pipes, devices, sockets, folders and links that lead nowhere are never opened, and no file is read past a limit.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from edrbo.errors import StudyError
from edrbo.lab.store.place import check_file

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
