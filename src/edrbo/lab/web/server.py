"""The server process: addresses, tokens, and connections that do not hold others up."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import secrets
import socket
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from edrbo.errors import InvalidValueError, StudyError
from edrbo.lab.web.security import App, Receive, Rules, Scope, Send

Client = tuple[str, int]  # address and port

SECONDS_FOR_HEADERS = 10.0
MOST_CONNECTIONS = 400
SHORTEST_TOKEN = 12


class Heads:
    """How many requests have arrived on a connection, by the address and port of its client; an application around
    another, which sees a request when its head is complete."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._arrived: dict[Client, int] = {}
        self._answering: set[Client] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope.get("client") is None:
            await self._app(scope, receive, send)
            return
        client = (str(scope["client"][0]), int(scope["client"][1]))
        self._arrived[client] = self.arrived(client) + 1
        self._answering.add(client)
        try:
            await self._app(scope, receive, send)
        finally:
            self._answering.discard(client)

    def arrived(self, client: Client) -> int:
        return self._arrived.get(client, 0)

    def answering(self, client: Client) -> bool:
        return client in self._answering

    def forget(self, client: Client) -> None:
        self._arrived.pop(client, None)


class PatientProtocol(asyncio.Protocol):
    """Around the server's protocol: who does not say in time what it wants is cut off; uvicorn itself waits for ever.

    A client has ``seconds`` from its call, or from the first byte of a later request, until the head is complete. How
    long it may be silent between requests is uvicorn's to say (``timeout_keep_alive``).
    """

    def __init__(self, inner: asyncio.Protocol, heads: Heads, seconds: float) -> None:
        self._inner, self._heads, self._seconds = inner, heads, seconds
        self._client: Client = ("", 0)
        self._timer: asyncio.TimerHandle | None = None
        self._before = 0  # requests that had arrived when the timer was set

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self._client = (str(peer[0]), int(peer[1]))
        self._inner.connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        waits = self._timer is not None and self._heads.arrived(self._client) == self._before
        if not waits and not self._heads.answering(self._client):
            self._expect()
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._heads.forget(self._client)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def _expect(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._before = self._heads.arrived(self._client)
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._heads.arrived(self._client) == self._before:
            self._transport.close()


class LogFormatter(logging.Formatter):
    """One line a message, whatever is in it; the lines of a traceback are indented. So nothing that a client sends can
    look like a message of ours, or be a code for the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        lines = [f"{record.levelname}: {record.getMessage().rstrip()}"]
        if record.exc_info:
            lines += [f"    {line}" for line in self.formatException(record.exc_info).splitlines()]
        return "\n".join("".join(map(_shown, line)) for line in lines)


def _shown(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")


LOGS: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"escaped": {"()": LogFormatter}},
    "handlers": {"errors": {"class": "logging.StreamHandler", "formatter": "escaped", "stream": "ext://sys.stderr"}},
    "loggers": {
        name: {"handlers": ["errors"], "level": "WARNING", "propagate": False}
        for name in ("uvicorn", "asyncio", "edrbo.lab.web")
    },
}


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def rules_for(host: str, port: int, token: str | None) -> Rules:
    """Whoever is not on this machine needs a token; one is made if none was given."""
    if token is not None and not re.fullmatch(rf"[A-Za-z0-9_-]{{{SHORTEST_TOKEN},200}}", token):
        hint = f"use at least {SHORTEST_TOKEN} letters, digits, - and _"
        raise InvalidValueError("this token cannot be used", hint)
    if is_loopback(host):
        names = frozenset({"localhost", "127.0.0.1", "[::1]", host})
        return Rules(token, names, f"edrbo-{port}")
    return Rules(token or secrets.token_urlsafe(18), None, f"edrbo-{port}")


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except (OSError, OverflowError) as problem:
        bound.close()
        reason = getattr(problem, "strerror", None) or "it is not an address of this machine"
        raise StudyError(f"cannot listen on {host}, port {port}: {reason}", "choose another --port or --host") from None
    bound.listen(256)
    return bound


def addresses(host: str, port: int, token: str | None) -> list[str]:
    """Where browsers find the page, the token included."""
    names = [host] if host not in ("0.0.0.0", "::") else [*_own_addresses(), socket.gethostname()]
    tail = "" if token is None else f"?token={token}"
    return [f"http://{f'[{name}]' if ':' in name else name}:{port}/{tail}" for name in names]


def _own_addresses() -> list[str]:
    """The address of this machine on the network it would use; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address for documentation
            return [str(probe.getsockname()[0])]
        except OSError:
            return []


def configured(app: App, header_seconds: float = SECONDS_FOR_HEADERS) -> uvicorn.Server:
    """A server of ``app``; ``run`` it with a socket that listens."""
    heads = Heads(app)

    class Patient(PatientProtocol):
        def __init__(self, **parts: Any) -> None:
            super().__init__(H11Protocol(**parts), heads, header_seconds)

    config = uvicorn.Config(
        heads,
        http=Patient,
        ws="none",
        log_config=LOGS,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=3,
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=32 * 1024,
    )
    return uvicorn.Server(config)
