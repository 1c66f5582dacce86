"""The command line: parse, call, print. Everything heavy loads inside the command that needs it."""

from __future__ import annotations

import sys

import typer
from rich.console import Console

from edrbo import __version__
from edrbo.cli import bench, demo, serve, study
from edrbo.errors import EdrboError

app = typer.Typer(
    help="Bayesian optimization when the world sets part of the input.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def edrbo(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """Bayesian optimization when the world sets part of the input."""


demo.register(app)
study.register(app)
serve.register(app)
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Run the command line; errors we know of end in one line with a hint, not in a traceback."""
    try:
        app()
    except EdrboError as problem:
        console = Console(stderr=True)
        console.print("error:", style="bold red", end=" ", highlight=False)
        console.print(problem.message, markup=False, highlight=False, soft_wrap=True)
        if problem.hint:
            console.print(f"hint: {problem.hint}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        sys.exit(130)
