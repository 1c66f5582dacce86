"""``edrbo serve``: the lab page."""

from __future__ import annotations

import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from edrbo.errors import MissingExtraError, StudyError
from edrbo.lab.cli.location import described_at
from edrbo.lab.cli.output import say


def serve(
    study: Annotated[
        str | None, typer.Argument(help="A .toml or .db file, a folder of them, or a PostgreSQL URL.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for the whole network.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = 8017,
    token: Annotated[
        str | None,
        typer.Option(envvar="EDRBO_TOKEN", help="What devices must know; made anew at every start if not given."),
    ] = None,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="Work out the next suggestion while a run is made, without its result.")
    ] = False,
    database: Annotated[
        list[str] | None,
        typer.Option(help="A PostgreSQL URL that the TOML files of a folder may name. Repeat for each."),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Show a study with invented data, kept nowhere.")] = False,
) -> None:
    """Open the study as a page, for a tablet beside the machine."""
    missing = [name for name in ("fastapi", "segno", "uvicorn") if find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"the page needs {missing[0]}", "pip install 'edrbo[web]'")
    from tempfile import TemporaryDirectory

    if demo == (study is not None):
        raise StudyError("what to show is not clear", "name a study, or add --demo for invented data")
    if study is not None:
        if study.endswith(".toml"):
            described_at(Path(study))
        _serve(study, host, port, token, prepare, tuple(database or ()))
        return
    from edrbo.lab.web.demo import make_demo

    with TemporaryDirectory(prefix="edrbo-demo-") as folder:
        say("making a study with invented data …", style="dim")
        _serve(make_demo(folder), host, port, token, prepare)


def _serve(where: str, host: str, port: int, token: str | None, prepare: bool, databases: tuple[str, ...] = ()) -> None:
    from edrbo.lab.web.app import make_app
    from edrbo.lab.web.registry import StudyRegistry
    from edrbo.lab.web.server import addresses, configured, is_loopback, listen, rules_for

    places = StudyRegistry(where, databases)
    for file, reason in places.problems().items():
        say(f"not served: {file}: {reason}", err=True)
    with listen(host, port) as bound:
        port = int(bound.getsockname()[1])
        rules = rules_for(host, port, token)
        found = addresses(host, port, rules.token)
        for address in found:
            say(address, style="bold")
        if not is_loopback(host):
            import segno

            say("scan this with the tablet's camera; whoever has the address can write to the study")
            typer.echo(_code(segno.make(found[0], micro=False)))
        say("Ctrl-C ends it; everything that was entered is stored", style="dim")
        threading.Thread(target=_warm_up, daemon=True).start()
        configured(make_app(places, rules, prepares=prepare)).run(sockets=[bound])


def _code(code: object) -> str:
    import io

    out = io.StringIO()
    code.terminal(out=out, compact=True)  # type: ignore[attr-defined]
    return out.getvalue()


def _warm_up() -> None:
    """The first suggestion should not wait for imports."""
    import edrbo.lab.report.page
    import edrbo.optimizer.optimizer  # noqa: F401
