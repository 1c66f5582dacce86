"""Clients that do not say what they want are cut off, and hold nobody up meanwhile."""

from __future__ import annotations

import socket
from pathlib import Path

from live import Client, serving

from edrbo import Study
from edrbo.lab.web.app import make_app
from edrbo.lab.web.registry import StudyRegistry
from edrbo.lab.web.security import Rules


def test_slow_clients_are_cut_off_and_hold_nobody_up(study: Study, tmp_path: Path) -> None:
    app = make_app(StudyRegistry(str(tmp_path / "coating.db")), Rules(body_seconds=0.2))
    with serving(app, header_seconds=0.5) as port:
        slow = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(50)]
        for wire in slow[:25]:
            wire.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        head = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n"
        for wire in slow[25:]:
            wire.sendall(head.encode())
        assert Client(port).get("/s/coating/").status == 200
        for wire in slow[25:]:
            assert b"408" in wire.recv(200)
        for wire in slow[:25]:
            assert wire.recv(200) == b""
        for wire in slow:
            wire.close()


def test_a_second_request_that_does_not_end_is_cut_off_too(study: Study, tmp_path: Path) -> None:
    app = make_app(StudyRegistry(str(tmp_path / "coating.db")), Rules())
    with serving(app, header_seconds=1.0) as port, socket.create_connection(("127.0.0.1", port), timeout=60) as wire:
        for _ in range(2):  # between two requests one may wait
            wire.sendall(b"GET /api/v1/studies HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            answer = b""
            while not answer.endswith(b"]"):
                answer += wire.recv(4096)
        wire.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
        assert wire.recv(4096) == b""


def test_one_byte_now_and_then_does_not_help(study: Study, tmp_path: Path) -> None:
    app = make_app(StudyRegistry(str(tmp_path / "coating.db")), Rules())
    with serving(app, header_seconds=0.5) as port, socket.create_connection(("127.0.0.1", port), timeout=0.05) as wire:
        sent = 0
        while sent < 1000:
            try:
                wire.sendall(b"G" if sent else b"GET /")
                sent += 1
                if wire.recv(200) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        assert 1 < sent < 1000


def test_who_says_nothing_is_cut_off(study: Study, tmp_path: Path) -> None:
    app = make_app(StudyRegistry(str(tmp_path / "coating.db")), Rules())
    with serving(app, header_seconds=0.1) as port, socket.create_connection(("127.0.0.1", port), timeout=60) as wire:
        assert wire.recv(200) == b""
