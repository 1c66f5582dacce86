"""The server process: addresses, tokens, and connections that do not hold others up."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import secrets
import socket
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from edrbo.errors import InvalidValueError, StudyError
from edrbo.web.guard import App, Rules

SECONDS_FOR_HEADERS = 10.0
MOST_CONNECTIONS = 400
SHORTEST_TOKEN = 12


class PatientProtocol(H11Protocol):
    """Who does not say in time what it wants is cut off; uvicorn itself would wait for ever."""

    header_seconds = SECONDS_FOR_HEADERS
    _check: asyncio.TimerHandle | None = None
    _late = False  # the beginning of a request was there at the last check already

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._check = self.loop.call_later(self.header_seconds, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._check is not None:
            self._check.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        cycle: Any = self.cycle  # declared as if there always were one
        begun = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        if cycle is None or (begun and self._late):
            self.transport.close()
            return
        self._late = begun
        self._check = self.loop.call_later(self.header_seconds, self._look)


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


def configured(app: App, protocol: type[PatientProtocol] = PatientProtocol) -> uvicorn.Server:
    """A server of ``app``; ``run`` it with a socket that listens."""
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        log_level="warning",
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
