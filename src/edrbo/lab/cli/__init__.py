"""The command line: parse, call, print. Commands that belong together share a file; what is heavy loads inside the
command that needs it.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer
from rich.console import Console
from typer.models import OptionInfo

from edrbo import __version__
from edrbo.errors import EdrboError
from edrbo.lab.cli.output import print_json, printable, wants_json

# name → where its function or its own program is, in the order of the help
COMMANDS = {
    "demo": "run:demo",
    "new": "describe:new",
    "ask": "answers:ask",
    "tell": "entries:tell",
    "context": "entries:context_app",
    "recommend": "answers:recommend",
    "policy": "answers:policy",
    "sensitivity": "answers:sensitivity",
    "tradeoff": "answers:tradeoff",
    "front": "answers:front",
    "show": "show:show",
    "studies": "places:studies",
    "edit": "entries:edit",
    "undo": "entries:undo",
    "drop": "entries:drop",
    "restore": "entries:restore",
    "cancel": "entries:cancel",
    "note": "entries:note",
    "amend": "describe:amend",
    "import": "import_export:import_table",
    "export": "import_export:export",
    "report": "answers:report",
    "serve": "serve:serve",
    "token": "serve:token_app",
    "mcp": "serve:mcp",
    "run": "run:run",
    "check": "places:check",
    "backup": "places:backup",
    "copy": "places:copy",
    "bench": "bench:app",
}

# Commands whose words never name a file of their own: one that looks like a study is meant as one.
OF_A_STUDY = (
    "ask",
    "tell",
    "recommend",
    "policy",
    "sensitivity",
    "tradeoff",
    "front",
    "show",
    "studies",
    "report",
    "edit",
    "undo",
    "drop",
    "restore",
    "cancel",
    "check",
)

# Typer brings its own Click in some versions and uses the installed one in others.
ClickException: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException" and issubclass(kind, Exception)
)


OUTPUT_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def make_app(words: list[str]) -> typer.Typer:
    """The program for a command line; of the commands only the one that is called, if that is clear."""
    app = typer.Typer(
        help="Bayesian optimization when the world sets part of the input.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(edrbo)
    called = words[0] if words and "_EDRBO_COMPLETE" not in os.environ else None
    for name in [called] if called in COMMANDS else COMMANDS:
        module, function = COMMANDS[str(name)].split(":")
        command = getattr(import_module(f"edrbo.lab.cli.{module}"), function)
        if isinstance(command, typer.Typer):
            parts = [part.callback for part in command.registered_commands if part.callback is not None]
            app.add_typer(command, name=name)
        else:
            parts = [command]
            app.command(name)(command)
        for part in parts:
            _name_kinds(part)
    return app


KINDS = ((bool, ""), (int, "NUMBER"), (float, "NUMBER"), (Path, "FILE"))


def _name_kinds(command: Callable[..., Any]) -> None:
    """Say in the help what an option takes in words, not in types of Python."""
    hints = get_type_hints(command, include_extras=True)
    for hint in hints.values():
        about = next((one for one in getattr(hint, "__metadata__", ()) if isinstance(one, OptionInfo)), None)
        if about is not None and about.metavar is None:
            kinds = {hint.__origin__, *get_args(hint.__origin__)}
            about.metavar = next((word for kind, word in KINDS if kind in kinds), "TEXT")
    command.__annotations__ = hints  # as they were read: those that are texts would be read anew


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


def edrbo(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """Bayesian optimization when the world sets part of the input."""


def main() -> None:
    """Run the command line; errors we know of end in one line with a hint, not in a traceback."""
    try:
        _check_arguments(sys.argv[1:])
        sys.exit(make_app(sys.argv[1:])(standalone_mode=not wants_json()))
    except EdrboError as problem:
        _print_error(problem.message, problem.hint, problem.code)
        sys.exit(2)
    except ClickException as problem:  # only under --json; else Click itself prints it
        _print_error(str(getattr(problem, "format_message", problem.__str__)()), "see --help")
        sys.exit(2)
    except OSError as problem:
        if problem.errno not in OUTPUT_FULL:
            raise
        # Python tries once more at the end, which then has to be in vain without a word.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        hint = "free some space; what was to be recorded may be: see edrbo show"
        _print_error(f"cannot write the output: {problem.strerror}", hint, "unavailable")
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("stopped", err=True)
        sys.exit(130)


def _check_arguments(words: list[str]) -> None:
    """A study named without --study is the first thing people try, and --study before the command the second."""
    if words and words[0].partition("=")[0] in ("--study", "-s"):
        rest = words[1:] if "=" in words[0] else words[2:]
        command = rest[0] if rest and not rest[0].startswith("-") else "show"
        raise EdrboError(f"{words[0].partition('=')[0]} comes after the command", f"write edrbo {command} --study …")
    if not words or words[0] not in OF_A_STUDY:
        return
    for before, word in pairwise(words):
        is_url = word.startswith("postgresql")  # may hold a password: not to be repeated
        if (is_url or word.endswith((".toml", ".db"))) and not before.startswith("-"):
            shown = "the URL" if is_url else word
            raise EdrboError(f"{shown} stands alone", f"to name a study, write --study before {shown}")


def _print_error(message: str, hint: str | None, code: str = "usage") -> None:
    if wants_json():
        print_json({"error": message, "hint": hint, "code": code})
        return
    console = Console(stderr=True)
    console.print("error:", style="bold red", end=" ", highlight=False)
    console.print(printable(message), markup=False, highlight=False, soft_wrap=True)
    if hint:
        console.print(f"hint: {printable(hint)}", markup=False, highlight=False, soft_wrap=True)
