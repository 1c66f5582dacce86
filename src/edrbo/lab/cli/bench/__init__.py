"""``edrbo bench …``. Each command parses, calls and prints; what is heavy loads inside the command."""

from __future__ import annotations

import typer

from edrbo.lab.cli.bench.problems import list_problems, portfolio_data, show_problem
from edrbo.lab.cli.bench.results import export, plot, report, table
from edrbo.lab.cli.bench.run import run

app = typer.Typer(help="Problems with exact oracles, and benchmarks on them.", no_args_is_help=True)
app.command("problems")(list_problems)
app.command("show")(show_problem)
app.command("portfolio")(portfolio_data)
app.command("run")(run)
app.command("table")(table)
app.command("plot")(plot)
app.command("report")(report)
app.command("export")(export)
