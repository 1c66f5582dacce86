"""``edrbo serve``, ``token``, ``mcp``: studies for others, as page, API and for agents, and who may use them."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer

from edrbo.errors import EdrboWarning, InvalidValueError, MissingExtraError, StudyError
from edrbo.lab.cli.options import ByOption, JsonOption, YesOption
from edrbo.lab.cli.output import confirm, print_json, print_table, say
from edrbo.lab.cli.read_arguments import described_at


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
    tokens: Annotated[
        Path | None,
        typer.Option(envvar="EDRBO_TOKENS", help="The file of `edrbo token`: each person has a token and a role."),
    ] = None,
    public_url: Annotated[
        str | None,
        typer.Option(envvar="EDRBO_PUBLIC_URL", help="Where browsers find a proxy before it: https://lab.example.org."),
    ] = None,
    proxy: Annotated[
        str | None,
        typer.Option(envvar="EDRBO_PROXY", help="Addresses of that proxy, which says who the client is."),
    ] = None,
    log: Annotated[str, typer.Option(envvar="EDRBO_LOG", help="text, or json with a line for each request.")] = "text",
    demo: Annotated[bool, typer.Option("--demo", help="Show a study with invented data, kept nowhere.")] = False,
) -> None:
    """Open the study as a page, for a tablet beside the machine."""
    missing = [name for name in ("fastapi", "segno", "uvicorn") if find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"the page needs {missing[0]}", "pip install 'edrbo[web]'")
    from tempfile import TemporaryDirectory

    if log not in ("text", "json"):
        raise InvalidValueError(f"--log is {log!r}", "write text or json")
    access = _Access(host, port, token, tokens, public_url, proxy, "json" if log == "json" else "text")
    if demo == (study is not None):
        raise StudyError("what to show is not clear", "name a study, or add --demo for invented data")
    if study is not None:
        if study.endswith(".toml"):
            described_at(Path(study))
        _serve(study, access, prepare, tuple(database or ()))
        return
    from edrbo.lab.web.demo import make_demo

    with TemporaryDirectory(prefix="edrbo-demo-") as folder:
        say("making a study with invented data …", style="dim")
        _serve(make_demo(folder), access, prepare)


@dataclass(frozen=True)
class _Access:
    """Where the server listens, and whom it lets in."""

    host: str
    port: int
    token: str | None
    tokens: Path | None
    public_url: str | None
    proxy: str | None
    log: Literal["text", "json"]


def _serve(where: str, access: _Access, prepare: bool, databases: tuple[str, ...] = ()) -> None:
    from edrbo.lab.web.app import make_app
    from edrbo.lab.web.registry import StudyRegistry
    from edrbo.lab.web.server import addresses, configured, is_loopback, listen, rules_for
    from edrbo.lab.web.tokens import Tokens, default_path

    places = StudyRegistry(where, databases)
    for file, reason in places.problems().items():
        say(f"not served: {file}: {reason}", err=True)
    people = None if access.tokens is None else Tokens(access.tokens)
    if people is None and not is_loopback(access.host) and default_path().exists():
        people = Tokens(default_path())
    with listen(access.host, access.port) as bound:
        port = int(bound.getsockname()[1])
        rules = rules_for(access.host, port, access.token, people=people, public_url=access.public_url)
        tail = "" if rules.token is None else f"?token={rules.token}"
        found = addresses(access.host, port, rules.token)
        if access.public_url is not None:
            found = [f"{access.public_url.rstrip('/')}/{tail}"]
        for address in found:
            say(address, style="bold")
        if people is not None:
            count = len(people.people())
            say(f"{count} {'person has' if count == 1 else 'persons have'} a token: {people.path}", style="dim")
        if not is_loopback(access.host) and rules.token is not None:
            import segno

            say("scan this with the tablet's camera; whoever has the address can write to the study")
            typer.echo(_code(segno.make(found[0], micro=False)))
        say("Ctrl-C ends it; everything that was entered is stored", style="dim")
        threading.Thread(target=_warm_up, daemon=True).start()
        app = make_app(places, rules, prepares=prepare)
        configured(app, proxy=access.proxy, log=access.log).run(sockets=[bound])


def _code(code: object) -> str:
    import io

    out = io.StringIO()
    code.terminal(out=out, compact=True)  # type: ignore[attr-defined]
    return out.getvalue()


def _warm_up() -> None:
    """The first suggestion should not wait for imports."""
    import edrbo.lab.report.page
    import edrbo.optimizer.optimizer  # noqa: F401


TokensOption = Annotated[
    Path | None,
    typer.Option("--tokens", envvar="EDRBO_TOKENS", help="The file that keeps them, hashed. Default: one of your own."),
]
NameArgument = Annotated[str, typer.Argument(help="The person or machine that uses it; it signs what they enter.")]


def create_token(
    name: NameArgument,
    role: Annotated[
        str, typer.Option(help="read looks on; run asks and reports too; setup also makes and changes studies.")
    ] = "run",
    tokens: TokensOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token and print it. It cannot be shown again."""
    from edrbo.errors import InvalidValueError
    from edrbo.lab.web.tokens import ROLES, Tokens, default_path

    chosen = next((one for one in ROLES if one == role), None)
    if chosen is None:
        raise InvalidValueError(f"there is no role {role!r}", f"choose one of {', '.join(ROLES)}")
    keeper = Tokens(tokens or default_path())
    token = keeper.create(name, chosen)
    if as_json:
        print_json({"name": name, "role": chosen, "token": token})
        return
    say(token, style="bold")
    say(f"for {name}, who may {_MAY[chosen]}; it is not shown again", err=True)
    say(f"edrbo serve … --tokens {keeper.path} lets them in; for the page add /?token= and it to the address", err=True)


def list_tokens(tokens: TokensOption = None, as_json: JsonOption = False) -> None:
    """Who has a token, with which role, since when."""
    from edrbo.lab.entry import local_text
    from edrbo.lab.web.tokens import Tokens, default_path

    keeper = Tokens(tokens or default_path())
    people = keeper.people()
    if as_json:
        print_json([{"name": one.name, "role": one.role, "created": one.created} for one in people])
        return
    rows = [(one.name, one.role, local_text(one.created)) for one in people]
    print_table(f"tokens in {keeper.path}", ["name", "role", "since"], rows)


def revoke_token(name: NameArgument, tokens: TokensOption = None, yes: YesOption = False) -> None:
    """Let somebody in no longer; a server that is running knows at once."""
    from edrbo.lab.web.tokens import Tokens, default_path

    confirm(f"Take the token of {name} away?", yes=yes)
    Tokens(tokens or default_path()).revoke(name)
    say(f"{name} has no token any more")


_MAY = {"read": "look on", "run": "ask and report", "setup": "do everything"}

token_app = typer.Typer(help="Who may use the page and the API of a server.", no_args_is_help=True)
token_app.command("create")(create_token)
token_app.command("list")(list_tokens)
token_app.command("revoke")(revoke_token)


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
