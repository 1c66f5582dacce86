"""The server process: addresses, tokens, and connections that do not hold others up."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import re
import secrets
import socket
import time
from typing import Any, Literal
from urllib.parse import urlsplit

import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.h11_impl import H11Protocol

from edrbo.errors import InvalidValueError, StudyError
from edrbo.lab.web.security import HEALTH, App, Message, Receive, Rules, Scope, Send
from edrbo.lab.web.tokens import Tokens

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


class JsonFormatter(logging.Formatter):
    """A line of JSON a message, for programs that collect logs."""

    def format(self, record: logging.LogRecord) -> str:
        content = {"time": round(record.created, 3), "level": record.levelname.lower(), "logger": record.name}
        content |= getattr(record, "request", None) or {"message": record.getMessage().rstrip()}
        if record.exc_info:
            content["traceback"] = self.formatException(record.exc_info)
        return json.dumps(content)


class RequestLog:
    """An application around another: a message for each request, with who sent it, its answer and its time."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._log = logging.getLogger("edrbo.lab.web.requests")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] == HEALTH or not self._log.isEnabledFor(logging.INFO):
            await self._app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            content = {
                "method": scope["method"],
                "path": scope["path"],  # without the query, which may hold a token
                "status": status,
                "seconds": round(time.perf_counter() - begun, 4),
                "client": str((scope.get("client") or ("?",))[0]),
                "by": scope.get("edrbo", {}).get("by", ""),
            }
            self._log.info("request", extra={"request": content})


def _shown(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")


LogKind = Literal["text", "json"]


def _logs(kind: LogKind) -> dict[str, Any]:
    """Warnings and errors in words; as JSON every request too."""
    levels = {"uvicorn": "WARNING", "asyncio": "WARNING", "edrbo.lab.web": "INFO" if kind == "json" else "WARNING"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"text": {"()": LogFormatter}, "json": {"()": JsonFormatter}},
        "handlers": {"log": {"class": "logging.StreamHandler", "formatter": kind, "stream": "ext://sys.stderr"}},
        "loggers": {name: {"handlers": ["log"], "level": level, "propagate": False} for name, level in levels.items()},
    }


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def rules_for(
    host: str, port: int, token: str | None, *, people: Tokens | None = None, public_url: str | None = None
) -> Rules:
    """Who is let in. Whoever is not on this machine needs a token; one is made if none was given.

    Args:
        host: the address that the server listens on.
        port: the port.
        token: the server's own, which may do everything.
        people: tokens of persons; with them, or with a public URL, a token is needed on this machine too.
        public_url: the address of a proxy through which browsers come.
    """
    if token is not None and not re.fullmatch(rf"[A-Za-z0-9_-]{{{SHORTEST_TOKEN},200}}", token):
        hint = f"use at least {SHORTEST_TOKEN} letters, digits, - and _"
        raise InvalidValueError("this token cannot be used", hint)
    open_to_all = is_loopback(host) and public_url is None
    own = frozenset({"localhost", "127.0.0.1", "[::1]", host}) if is_loopback(host) else None
    if public_url is not None:
        own = frozenset({_host_of(public_url), "localhost", "127.0.0.1"})
    if token is None and people is None and not open_to_all:
        token = secrets.token_urlsafe(18)
    secure = public_url is not None and public_url.startswith("https:")
    return Rules(token, own, f"edrbo-{port}", people=people, secure=secure)


def _host_of(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
        raise InvalidValueError(f"{url!r} is not the address of a server", "write https://lab.example.org")
    return parts.hostname


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


def configured(
    app: App, header_seconds: float = SECONDS_FOR_HEADERS, *, proxy: str | None = None, log: LogKind = "text"
) -> uvicorn.Server:
    """A server of ``app``; ``run`` it with a socket that listens.

    Args:
        app: what answers.
        header_seconds: in which a client must say what it wants.
        proxy: addresses or networks, with commas between, whose word is taken for who the client is.
        log: words for people, or JSON for programs.
    """
    inner: Any = RequestLog(app)
    if proxy is not None:  # inside of ``heads``, which counts connections: those are the proxy's
        inner = ProxyHeadersMiddleware(inner, trusted_hosts=proxy)
    heads = Heads(inner)

    class Patient(PatientProtocol):
        def __init__(self, **parts: Any) -> None:
            super().__init__(H11Protocol(**parts), heads, header_seconds)

    config = uvicorn.Config(
        heads,
        http=Patient,
        ws="none",
        log_config=_logs(log),
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
