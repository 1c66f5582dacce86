"""Which process asked for a suggestion, and whether it still lives."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def this_process() -> dict[str, Any]:
    return {"host": socket.gethostname(), "pid": os.getpid(), "started": _started(os.getpid())}


def login() -> str | None:
    """Who works here, as the system knows them."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None


def whose(owner: Mapping[str, Any]) -> str:
    """An owner for people to read."""
    words = f"process {owner.get('pid')} on {owner.get('host')}"
    return words if words.isprintable() else ascii(words)


def is_dead(owner: Mapping[str, Any]) -> bool:
    """Whether ``owner`` ran on this machine and is gone, or was stopped. On another machine one cannot tell."""
    if owner.get("host") != socket.gethostname():
        return False
    pid = int(owner["pid"])
    if Path("/proc/self/stat").exists():
        # Numbers of processes are used again, in a container always the same: the time of birth tells them apart.
        return _started(pid) is None or owner.get("started") not in (None, _started(pid))
    return not _answers(pid)


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it lives, under another user
        return True
    return True


def _started(pid: int) -> str | None:
    """When a process was born, in ticks since the machine was; None if it is gone or stopped, or on other systems."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # its name, in brackets, may hold anything
    return None if fields[0] in "ZXTt" else fields[19]
