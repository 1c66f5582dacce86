"""``edrbo token create``, ``list`` and ``revoke``: who may use the page and the API of a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edrbo.lab.cli.options import JsonOption, YesOption
from edrbo.lab.cli.output import confirm, print_json, print_table, say

TokensOption = Annotated[
    Path | None,
    typer.Option("--tokens", envvar="EDRBO_TOKENS", help="The file that keeps them, hashed. Default: one of your own."),
]
NameArgument = Annotated[str, typer.Argument(help="The person or machine that uses it; it signs what they enter.")]


def create(
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


def revoke(name: NameArgument, tokens: TokensOption = None, yes: YesOption = False) -> None:
    """Let somebody in no longer; a server that is running knows at once."""
    from edrbo.lab.web.tokens import Tokens, default_path

    confirm(f"Take the token of {name} away?", yes=yes)
    Tokens(tokens or default_path()).revoke(name)
    say(f"{name} has no token any more")


_MAY = {"read": "look on", "run": "ask and report", "setup": "do everything"}

app = typer.Typer(help="Who may use the page and the API of a server.", no_args_is_help=True)
app.command("create")(create)
app.command("list")(list_tokens)
app.command("revoke")(revoke)
