"""Which process asked for a suggestion, and whether it still lives."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any


def this_process() -> dict[str, Any]:
    return {"host": socket.gethostname(), "pid": os.getpid()}


def is_dead(owner: Mapping[str, Any]) -> bool:
    """Whether ``owner`` ran on this machine and is gone. On another machine one cannot tell."""
    if owner["host"] != socket.gethostname():
        return False
    try:
        os.kill(int(owner["pid"]), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it lives, under another user
        return False
    return False
