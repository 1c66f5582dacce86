"""What a place of studies is: a file or a database by URL, and what to say of one that is neither."""

from __future__ import annotations

import os
import stat
import warnings
from pathlib import Path

from edrbo.errors import NetworkFileWarning, StudyError, UnavailableError

SQLITE = b"SQLite format 3\x00"
APPLICATION_ID = 0x45445242  # "EDRB", in the header of our files
SECRETS = ("password", "passfile", "sslpassword", "sslkey")  # of a PostgreSQL URL's query
NETWORK = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "lustre", "gluster", "beegfs", "gpfs", "fuse.sshfs", "ncpfs")


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


def check_file(path: Path) -> bool:
    """Whether there is a study file at ``path``; False if nothing is there, or an empty file that can become one.

    What is something else is an error that says what it is. Only a regular file is ever opened.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink():
            raise StudyError(f"{path} is a link to a file that is not there", "name the study's file") from None
        return False
    except OSError as problem:
        raise UnavailableError(f"cannot open {path}: {problem.strerror}", "check the file and its folder") from None
    if stat.S_ISDIR(mode):
        raise StudyError(f"{path} is a folder", "name the study's file")
    if not stat.S_ISREG(mode):
        raise StudyError(f"{path} is not a regular file", "name the study's file")
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except OSError as problem:
        raise UnavailableError(f"cannot open {path}: {problem.strerror}", "check its permissions") from None
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


def create_private(path: Path) -> bool:
    """Make an empty file that only its owner may read; whether it was missing."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    except OSError as problem:
        hint = "free some space" if "space" in (problem.strerror or "") else "check the folder and its permissions"
        raise UnavailableError(f"cannot write {path}: {problem.strerror}", hint) from None
    return True


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
