"""Places that people name: files, found out without opening anything that could hang, grow or do something when opened,
databases by URL, and files that are written in whole or not at all.

Everything that looks into a folder somebody else may write to asks ``file_kind`` first and reads with ``read_file``:
named pipes, devices, sockets, folders and links that lead nowhere are never opened, and no file is read past a limit.

Nor is a study's file that this process has open already: closing it again, POSIX ends every lock that the process holds
on it. Another process could then think that it is the last one, and put SQLite's log away while this one writes to it.
"""

from __future__ import annotations

import os
import stat
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, Literal

from edrbo.errors import ExistsAlreadyError, NetworkFileWarning, StudyError, UnavailableError

Kind = Literal["study", "description", "empty", "other", "missing"]
Identity = tuple[int, int]  # a file's device and number

LARGEST_DESCRIPTION = 2**20  # bytes of a TOML file
NAMES = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)
SQLITE = b"SQLite format 3\x00"
APPLICATION_ID = 0x45445242  # "EDRB", in the header of our files
SECRETS = ("password", "passfile", "sslpassword", "sslkey")  # of a PostgreSQL URL's query
NETWORK = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "lustre", "gluster", "beegfs", "gpfs", "fuse.sshfs", "ncpfs")

_open_studies = Counter[Identity]()  # files that SQLite holds in this process
_looking = threading.Lock()
if hasattr(os, "register_at_fork"):  # a child process must not find it locked by a thread that it does not have
    os.register_at_fork(before=_looking.acquire, after_in_parent=_looking.release, after_in_child=_looking.release)


# -------------------------------------------------------------------- paths and URLs


def is_url(where: str | Path) -> bool:
    return "://" in str(where)


def describe(where: str | Path) -> str:
    """``where`` for people to read: a path, or a URL without its password, which may itself hold an @ or a /."""
    if not is_url(where):
        return str(where)
    kind, rest = str(where).split("://", 1)
    login, at, place = rest.rpartition("@")
    user = login.partition(":")[0] if at else ""
    if any(sign in user for sign in "/?"):  # not a name: whatever this is, it may be secret
        return f"{kind}://…"
    place, mark, query = place.partition("?")
    words = [
        word if word.partition("=")[0].lower() not in SECRETS else f"{word.partition('=')[0]}=***"
        for word in query.split("&")
    ]
    hidden = ":***" if ":" in login else ""
    return f"{kind}://{user}{hidden}{at}{place}{mark}{'&'.join(words)}"


def recovery(where: str | Path) -> str:
    """What to do about a damaged place."""
    if is_url(where):
        return "restore a backup of the database"
    return (
        f"restore a backup; without one, `edrbo copy --salvage {where} NEW.db` saves what can be read and says what "
        "cannot; if that fails too, what sqlite3's own .recover makes of it"
    )


def warn_of_network(path: Path, mounts: Path = Path("/proc/self/mounts")) -> None:
    """SQLite's locks and shared memory hold on one machine only."""
    kind = _file_system(path.absolute(), mounts)
    if kind.startswith(NETWORK):
        warnings.warn(
            f"{path} is on a network file system ({kind}), where SQLite cannot keep its promises: use it from one "
            "machine at a time, or PostgreSQL",
            NetworkFileWarning,
            stacklevel=8,  # who called Study.open
        )


def _file_system(path: Path, mounts: Path) -> str:
    """The kind of file system at ``path``, as the table of ``mounts`` names it; empty where there is no such table."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    found = [fields for fields in (line.split() for line in lines) if len(fields) > 2 and fields[1].startswith("/")]
    holds = [(len(fields[1]), fields[2]) for fields in found if path.is_relative_to(fields[1].replace("\\040", " "))]
    return max(holds, default=(0, ""))[1]


# -------------------------------------------------------------------- what lies at a path


@dataclass(frozen=True)
class FileKind:
    """``reason`` says why it can be no study, empty if it can be one."""

    kind: Kind
    reason: str = ""


def file_kind(path: Path) -> FileKind:
    """What ``path`` is, by its beginning."""
    try:
        if path.suffix == ".toml":
            with open_regular(path):
                return FileKind("description")
        if check_file(path):
            return FileKind("study")
        return FileKind("empty") if path.exists() else FileKind("missing", "there is no such file")
    except FileNotFoundError:
        return FileKind("missing", "a link that leads nowhere" if path.is_symlink() else "there is no such file")
    except OSError as problem:
        return FileKind("other", problem.strerror or "it cannot be read")
    except StudyError as problem:
        return FileKind("other", problem.message)


def check_file(path: Path) -> bool:
    """Whether there is a study file at ``path``; False if nothing is there, or an empty file that can become one.

    What is something else is an error that says what it is.
    """
    try:
        with _looking:
            if identity_of(path) in _open_studies:
                return True
            with open_regular(path) as file:
                header = file.read(100)
    except FileNotFoundError:
        if path.is_symlink():
            raise StudyError(f"{path} is a link that leads nowhere", "name the study's file") from None
        return False
    except ValueError:
        raise StudyError(f"{str(path)!r} cannot be the name of a file", "leave out NUL") from None
    except OSError as problem:
        raise UnavailableError(
            f"cannot open {path}: {problem.strerror}", "check the permissions of the file and its folder"
        ) from None
    if not header:
        return False
    if header.startswith(b'{"') and b"op_code" in header:
        raise StudyError(
            f"{path} is a study of edrbo 0.2 or of Optuna's journal",
            "0.2 was never published; open it with that version, export it as CSV, and import that here",
        )
    if not header.startswith(SQLITE):
        raise StudyError(f"{path} is not a study file", "choose another file name, or restore a backup of it")
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise StudyError(f"{path} is an SQLite database of another program", "choose another file name")
    return True


def identity_of(path: Path) -> Identity | None:
    """Which file it is, whatever its name; None if it cannot be found."""
    with suppress(OSError, ValueError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


def remove_study(path: Path) -> None:
    """A study's file, and those that SQLite keeps beside it."""
    for ending in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):  # of a name that is too long by that it is not there
            Path(f"{path}{ending}").unlink(missing_ok=True)


def may_write(path: Path) -> bool:
    """Whether one may change a file, and make others beside it."""
    effective = os.access in os.supports_effective_ids
    return all(os.access(one, os.W_OK, effective_ids=effective) for one in (path, path.parent))


def hold(path: Path) -> Identity | None:
    """SQLite has this study's file open from now on, so that nothing here opens it beside SQLite."""
    with _looking:
        identity = identity_of(path)
        if identity is not None:
            _open_studies[identity] += 1
        return identity


def release(identity: Identity | None) -> None:
    """SQLite has closed it once."""
    with _looking:
        if identity is not None:
            _open_studies[identity] -= 1
            if not _open_studies[identity]:
                del _open_studies[identity]


def open_regular(path: Path) -> BinaryIO:
    """``path`` for reading, if it is a regular file or a link to one.

    Raises:
        OSError: it cannot be opened.
        StudyError: it is something else, or a study that this process has open; it was not opened.
    """
    _check_regular(path, os.stat(path))
    if identity_of(path) in _open_studies:
        raise ExistsAlreadyError(f"{path} is a study in use", "name another file")
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


# -------------------------------------------------------------------- files that are made


def _sync_folder(folder: Path) -> None:
    """A new name in it is on the disk afterwards, where folders are files that may be read."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


@contextmanager
def new_file(path: Path, *, force: bool = False, mode: int | None = None) -> Iterator[BinaryIO]:
    """A file to write, which takes its place when all is written. After an error, say on a full disk, nothing is left.

    Args:
        path: Where it will be.
        force: Replace a file that is there already.
        mode: Its permissions; by default those of the umask, or of the file it replaces.
    """
    if path.exists() and not force:
        raise ExistsAlreadyError(f"{path} exists already", "choose another name, or add --force")
    if path.exists() and mode is None:
        mode = path.stat().st_mode & 0o777
    target = path.resolve()  # of a link the file behind it is replaced
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        try:
            with open(beside, "xb", opener=partial(os.open, mode=0o666 if mode is None else mode)) as file:
                if mode is not None:
                    os.chmod(beside, mode)  # whatever the umask
                yield file
                file.flush()
                os.fsync(file.fileno())
            beside.replace(target)
            _sync_folder(target.parent)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        hint = "free some space" if "space" in reason or "large" in reason else "check the folder and its permissions"
        raise UnavailableError(f"cannot write {path}: {reason}", hint) from None
