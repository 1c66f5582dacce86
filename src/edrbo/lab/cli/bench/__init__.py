"""``edrbo bench …``: a file a command. Each parses, calls and prints; what is heavy loads inside the command."""

from __future__ import annotations

import typer

from edrbo.lab.cli.bench import export, plot, portfolio, problems, report, run, show, table

COMMANDS = (problems, show, portfolio, run, table, plot, report, export)

app = typer.Typer(help="Problems with exact oracles, and benchmarks on them.", no_args_is_help=True)
for command in COMMANDS:
    command.register(app)
