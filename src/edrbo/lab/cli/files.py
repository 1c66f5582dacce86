"""Files that commands write."""

from __future__ import annotations

import os
from pathlib import Path

from edrbo.errors import StudyError

EXISTS = "choose another name, or add --force"


def check_new(path: Path, force: bool) -> None:
    """StudyError if ``new_file`` would fail: to be known before an answer is worked out for it."""
    folder = path.parent
    if path.is_dir():
        raise StudyError(f"cannot write {path}: it is a folder", "name a file")
    if not folder.is_dir():
        raise StudyError(f"cannot write {path}: there is no folder {folder}", "make it, or choose another place")
    if path.exists() and not force:
        raise StudyError(f"{path} exists already", EXISTS)
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise StudyError(f"cannot write {path}: it is not allowed", "choose another place")


def safe_file_name(name: str) -> str:
    """A study's name as a file name in this folder, whatever is in it."""
    safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:80]
    return safe.strip("-") or "study"
