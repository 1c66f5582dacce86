"""Commands of durable studies."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Filled in by the study commands."""
