"""``edrbo mcp``: studies for agents."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from edrbo.errors import EdrboWarning, MissingExtraError
from edrbo.lab.cli.location import described_at
from edrbo.lab.cli.options import ByOption
from edrbo.lab.cli.output import say


def mcp(
    study: Annotated[str, typer.Argument(help="A .toml or .db file, a folder of them, or a PostgreSQL URL.")],
    write: Annotated[
        bool, typer.Option("--write", help="Let the agent ask for suggestions and enter results.")
    ] = False,
    by: ByOption = None,
    database: Annotated[
        list[str] | None,
        typer.Option(help="A PostgreSQL URL that the TOML files of a folder may name. Repeat for each."),
    ] = None,
) -> None:
    """Let an agent read a study, over the Model Context Protocol on standard input and output."""
    if find_spec("mcp") is None:
        raise MissingExtraError("the server needs the package mcp", "pip install 'edrbo[mcp]'")
    from edrbo.integrations.mcp import make_server
    from edrbo.lab.study import login
    from edrbo.lab.web.registry import StudyRegistry

    if study.endswith(".toml"):
        described_at(Path(study))
    places = StudyRegistry(study, tuple(database or ()))
    for file, reason in places.problems().items():
        say(f"not served: {file}: {reason}", err=True)
    server = make_server(places, by or login() or "somebody", writes=write)
    warnings.simplefilter("ignore", EdrboWarning)  # they are in the answers; the filter is the process's
    server.run()
