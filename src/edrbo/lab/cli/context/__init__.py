"""``edrbo context …``: a file a command."""

from __future__ import annotations

import typer

from edrbo.lab.cli.context import add, tell

app = typer.Typer(help="Contexts: those seen without an outcome, and those that come late.", no_args_is_help=True)
for command in (add, tell):
    command.register(app)
