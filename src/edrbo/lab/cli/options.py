"""The options that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edrbo.lab.cli.completion import complete_contexts, complete_designs, complete_ids, complete_pending

StudyOption = Annotated[
    str | None,
    typer.Option(
        "--study",
        "-s",
        envvar="EDRBO_STUDY",
        help="The study: its .toml file, its .db file or a PostgreSQL URL. Default: the only .toml file here.",
        show_envvar=True,
    ),
]
NameOption = Annotated[
    str | None, typer.Option("--name", help="Which study, where a storage holds several; see `edrbo studies`.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
ByOption = Annotated[str | None, typer.Option("--by", help="Who says so. Default: your login.")]
NoteOption = Annotated[str | None, typer.Option("--note", help="Words to keep with it.")]
WhyOption = Annotated[str | None, typer.Option("--why", help="The reason, kept with it.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask, just do it.")]
AtOption = Annotated[str | None, typer.Option("--at", help="When it happened, as 2026-03-14 15:30. Default: now.")]
ForecastOption = Annotated[
    Path | None,
    typer.Option("--forecast", help="CSV file of contexts: those to expect this time."),
]
FixOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fix",
        help="A variable that is held this time, as NAME=VALUE. Repeat for each.",
        autocompletion=complete_designs,
    ),
]
CandidatesOption = Annotated[
    Path | None,
    typer.Option("--candidates", help="CSV or Excel file of designs: choose one of these."),
]
ContextOption = Annotated[
    list[str] | None,
    typer.Option(
        "--context",
        "-c",
        help="A context variable, as NAME=VALUE. Repeat for each.",
        autocompletion=complete_contexts,
    ),
]
DesignOption = Annotated[
    list[str] | None,
    typer.Option(
        "--design",
        "-d",
        help="What was set, as NAME=VALUE. Repeat for each.",
        autocompletion=complete_designs,
    ),
]
RunArgument = Annotated[int, typer.Argument(metavar="ID", help="The number of a run.", autocompletion=complete_ids)]
PendingArgument = Annotated[
    int, typer.Argument(metavar="ID", help="The number of a suggestion.", autocompletion=complete_pending)
]
