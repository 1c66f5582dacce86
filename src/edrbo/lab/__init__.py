"""Studies: an optimizer whose every step is on disk, or in a database, before the call returns, and all around it.

store       the events of a study, durable
tables      CSV and Excel, in and out
report      a study as one HTML page
web         the lab page
cli         the command line
config      a study described in a TOML file
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edrbo.lab.study import Study

__all__ = ["Study"]


def __getattr__(name: str) -> Any:
    if name != "Study":
        raise AttributeError(f"module 'edrbo.lab' has no attribute {name!r}")
    from edrbo.lab.study import Study

    return Study
