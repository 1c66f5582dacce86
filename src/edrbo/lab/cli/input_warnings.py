"""Ask before something implausible is stored."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from edrbo.lab.cli.output import confirm, say, wants_json, warn


def settle(found: Sequence[str], *, yes: bool) -> None:
    """Show doubts about what is to be stored, and ask; where nobody can be asked they are warnings."""
    if not found or yes:
        return
    if wants_json() or not sys.stdin.isatty():
        for doubt in found:
            warn(f"{doubt} (stored as it is)")
        return
    for doubt in found:
        say(doubt, style="yellow")
    confirm("Store it as it is?", yes=yes)
