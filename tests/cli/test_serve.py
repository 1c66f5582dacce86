"""`edrbo serve` on the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edrbo import Space, Study
from edrbo.lab.cli import serve

Command = Callable[..., Any]


def test_without_its_libraries_it_says_what_to_install(edrbo: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda name: None if name == "uvicorn" else sys)
    ended = edrbo("serve", "x.db")
    assert ended.code == 2
    assert "edrbo[web]" in ended.err


@pytest.mark.parametrize("words", [[], ["x.db", "--demo"], ["nothing.db"], ["x.db", "--token", "short"]])
def test_what_cannot_be_served_is_said(edrbo: Command, folder: Path, words: list[str]) -> None:
    pytest.importorskip("fastapi")
    Study.open(folder / "x.db", Space({"x": (0, 1)}))
    ended = edrbo("serve", *words)
    assert ended.code == 2
    assert "hint:" in ended.err


def test_the_network_gets_a_token_and_a_code(edrbo: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi")
    from edrbo.lab.web import server

    class Stopped:
        def run(self, sockets: object) -> None:
            pass

    monkeypatch.setattr(server, "configured", lambda app, **options: Stopped())
    monkeypatch.setattr(serve, "_warm_up", lambda: None)
    Study.open(folder / "x.db", Space({"x": (0, 1)}))
    shown = edrbo("serve", "x.db", "--host", "0.0.0.0", "--port", "0")
    assert shown.code == 0, shown.err
    assert "?token=" in shown.out
    assert "▀" in shown.out or "█" in shown.out
    local = edrbo("serve", "x.db", "--port", "0")
    assert "http://127.0.0.1:" in local.out
    assert "token" not in local.out
