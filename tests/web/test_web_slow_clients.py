"""Clients that do not say what they want are cut off, and hold nobody up meanwhile."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from live import Client, serving

from edrbo import Study
from edrbo.web.app import make_app
from edrbo.web.guard import Rules
from edrbo.web.places import Places
from edrbo.web.server import PatientProtocol


class Watched(PatientProtocol):
    """Looks when it is told to, instead of every ten seconds."""

    header_seconds = 3600.0
    made: ClassVar[list[Watched]] = []

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.made.append(self)

    @property
    def has_begun(self) -> bool:
        """Whether the beginning of a request has come."""
        return bool(self.conn.trailing_data[0])

    def look(self) -> None:
        self.loop.call_soon_threadsafe(self._look)


def until(true: Callable[[], bool]) -> None:
    pause = threading.Event()
    while not true():
        pause.wait(0.01)


def test_slow_clients_are_cut_off_and_hold_nobody_up(study: Study, tmp_path: Path) -> None:
    app = make_app(Places(str(tmp_path / "coating.db")), Rules(body_seconds=0.2))
    Watched.made.clear()
    with serving(app, Watched) as port:
        slow = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(50)]
        for wire in slow[:25]:
            wire.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        head = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n"
        for wire in slow[25:]:
            wire.sendall(head.encode())
        assert Client(port).get("/s/coating/").status == 200
        for wire in slow[25:]:
            assert b"408" in wire.recv(200)
        until(lambda: sum(one.has_begun for one in Watched.made) == 25)
        for one in Watched.made:
            one.look()
        for wire in slow[:25]:
            assert wire.recv(200) == b""
        for wire in slow:
            wire.close()


def test_a_second_request_that_does_not_end_is_cut_off_too(study: Study, tmp_path: Path) -> None:
    app = make_app(Places(str(tmp_path / "coating.db")), Rules())
    Watched.made.clear()
    with serving(app, Watched) as port, socket.create_connection(("127.0.0.1", port), timeout=60) as wire:
        wire.sendall(b"GET /api/studies HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        answer = b""
        while not answer.endswith(b"]"):
            answer += wire.recv(4096)
        (server,) = Watched.made
        server.look()  # between two requests one may wait
        wire.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
        until(lambda: server.has_begun)
        for _ in range(2):
            server.look()
        assert wire.recv(4096) == b""


def test_who_says_nothing_is_cut_off(study: Study, tmp_path: Path) -> None:
    class Impatient(PatientProtocol):
        header_seconds = 0.1

    app = make_app(Places(str(tmp_path / "coating.db")), Rules())
    with serving(app, Impatient) as port, socket.create_connection(("127.0.0.1", port), timeout=60) as wire:
        assert wire.recv(200) == b""
