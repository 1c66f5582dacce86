"""`edrbo serve` on the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edrbo.cli import app, serve
from edrbo.errors import MissingExtraError, StudyError


def fail(*words: str) -> BaseException:
    found = CliRunner().invoke(app, ["serve", *words])
    assert found.exception is not None
    return found.exception


def test_without_its_libraries_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda name: None if name == "uvicorn" else sys)
    problem = fail("x.db")
    assert isinstance(problem, MissingExtraError)
    assert "edrbo[web]" in (problem.hint or "")


def test_what_to_serve_must_be_said(tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    assert isinstance(fail(), StudyError)
    assert isinstance(fail("x.db", "--demo"), StudyError)
    assert "no study" in str(fail(str(tmp_path / "nothing.db")))


def test_the_network_gets_a_token_and_a_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi")
    from edrbo import Space, Study
    from edrbo.web import server

    Study.open(tmp_path / "x.db", Space({"x": (0, 1)}))

    class Stopped:
        def run(self, sockets: object) -> None:
            pass

    monkeypatch.setattr(server, "configured", lambda app: Stopped())
    monkeypatch.setattr(serve, "_warm_up", lambda: None)
    shown = CliRunner().invoke(app, ["serve", str(tmp_path / "x.db"), "--host", "0.0.0.0", "--port", "0"])
    assert shown.exit_code == 0, shown.output
    assert "?token=" in shown.output
    assert "█" in shown.output or "▀" in shown.output
    local = CliRunner().invoke(app, ["serve", str(tmp_path / "x.db"), "--port", "0"])
    assert "http://127.0.0.1:" in local.output
    assert "token" not in local.output
