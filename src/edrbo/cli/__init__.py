"""The command line: parse, call, print. A file a command; everything heavy loads inside the command that needs it."""

from __future__ import annotations

import sys

import typer
from rich.console import Console

from edrbo import __version__
from edrbo.cli import (
    amend,
    ask,
    bench,
    cancel,
    check,
    context,
    demo,
    drop,
    edit,
    export,
    import_table,
    new,
    note,
    recommend,
    report,
    restore,
    run,
    serve,
    show,
    studies,
    tell,
    tradeoff,
    undo,
)
from edrbo.cli.output import print_json, printable, wants_json
from edrbo.errors import EdrboError

COMMANDS = (
    *(demo, new, ask, tell, context, recommend, tradeoff, show, studies),
    *(edit, undo, drop, restore, cancel, note, amend),
    *(import_table, export, report, serve, run, check, bench),
)

# Typer brings its own Click in some versions and uses the installed one in others.
ClickException: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException" and issubclass(kind, Exception)
)

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


for command in COMMANDS:
    if hasattr(command, "app"):
        app.add_typer(command.app, name=command.__name__.rsplit(".", 1)[1])
    else:
        command.register(app)


def main() -> None:
    """Run the command line; errors we know of end in one line with a hint, not in a traceback."""
    try:
        sys.exit(app(standalone_mode=not wants_json()))
    except EdrboError as problem:
        _print_error(problem.message, problem.hint)
        sys.exit(2)
    except ClickException as problem:  # only under --json; else Click itself prints it
        _print_error(getattr(problem, "message", str(problem)), "see --help")
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("stopped", err=True)
        sys.exit(130)


def _print_error(message: str, hint: str | None) -> None:
    if wants_json():
        print_json({"error": message, "hint": hint})
        return
    console = Console(stderr=True)
    console.print("error:", style="bold red", end=" ", highlight=False)
    console.print(printable(message), markup=False, highlight=False, soft_wrap=True)
    if hint:
        console.print(f"hint: {printable(hint)}", markup=False, highlight=False, soft_wrap=True)
