"""Files that commands write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from edrbo.errors import StudyError


def open_new(path: Path, force: bool) -> BinaryIO:
    """A new file with the permissions that the user's umask gives: others may need it."""
    flags = os.O_CREAT | os.O_WRONLY | (os.O_TRUNC if force else os.O_EXCL)
    try:
        return os.fdopen(os.open(path, flags, 0o666), "wb")
    except FileExistsError:
        raise StudyError(f"{path} exists already", "choose another name, or add --force") from None
    except OSError as problem:
        raise StudyError(f"cannot write {path}: {problem.strerror}") from None


def safe_file_name(name: str) -> str:
    """A study's name as a file name in this folder, whatever is in it."""
    safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:80]
    return safe.strip("-") or "study"
