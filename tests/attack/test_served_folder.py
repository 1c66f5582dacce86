"""The attack on what is served: files of other programs and of strangers in a folder of studies."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
import typer
from test_fuzz import tally
from typer.testing import CliRunner

pytest.importorskip("fastapi", reason="needs edrbo[web]")

from live import study_server

from edrbo import Space, Study
from edrbo.errors import EdrboError
from edrbo.lab.cli import make_app
from edrbo.lab.config import read_toml, write_toml
from edrbo.lab.files import file_kind
from edrbo.lab.store.event_store import EventStore
from edrbo.lab.web.registry import StudyRegistry
from edrbo.records.settings import Settings

SPACE = Space({"speed": (1.0, 9.0)})
STRANGER = "postgresql://lab@stranger.example:5432/lab"


def other_sqlite(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE bookmarks (address TEXT)")


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        folder = os.getcwd()
        os.chdir(path.parent)  # the name of a socket must be short
        try:
            one.bind(path.name)
        finally:
            os.chdir(folder)


KINDS = {
    "other.db": other_sqlite,
    "Thumbs.db": lambda path: path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" * 64),
    "folder.db": lambda path: path.mkdir(),
    "dangling.db": lambda path: path.symlink_to("nowhere"),
    "garbage.db": lambda path: path.write_bytes(os.urandom(500)),
    "braces.db": lambda path: path.write_bytes(b"{" * 5000),
    "json.db": lambda path: path.write_text('{"op_code": 77, "worker_id": []}\n' * 3),
    "pipe.db": lambda path: os.mkfifo(path),
    "zero.db": lambda path: path.symlink_to("/dev/zero"),
    "socket.db": listening,
    "locked.db": lambda path: (path.write_text("{}"), path.chmod(0)),
    "loop.db": lambda path: path.symlink_to("loop.db"),
    "pipe.toml": lambda path: os.mkfifo(path),
    "folder.toml": lambda path: path.mkdir(),
    "deep.toml": lambda path: path.write_text("design = " + "[" * 100_000),
    "large.toml": lambda path: path.write_text("design = 1\n" + "#" * 2**21),
    "not.toml": lambda path: path.write_bytes(b"design = \xff\xfe"),
    "zero.toml": lambda path: path.symlink_to("/dev/zero"),
    "outside.toml": lambda path: path.write_text("storage = '../outside.db'\n[design]\nx = [0, 1]\n"),
    "absolute.toml": lambda path: path.write_text(f"storage = '{path.parent.parent}/a.db'\n[design]\nx = [0, 1]\n"),
    "through.toml": lambda path: path.write_text("storage = 'way/a.db'\n[design]\nx = [0, 1]\n"),
    "notes.toml": lambda path: path.write_text("storage = 'notes.txt'\n[design]\nx = [0, 1]\n"),
    "new.toml": lambda path: path.write_text("storage = '.bashrc'\n[design]\nx = [0, 1]\n"),
    "database.toml": lambda path: path.write_text(f"storage = '{STRANGER}'\n[design]\nx = [0, 1]\n"),
}
SILENT = {
    "pyproject.toml": lambda path: path.write_text("[project]\nname = 'x'\n"),
    "empty.db": lambda path: path.touch(),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "lab"
    folder.mkdir()
    Study.open(folder / "kiln.db", SPACE, name="Kiln")
    write_toml(folder / "line.toml", "line.db", "Line", Settings(SPACE))
    (tmp_path / "elsewhere").mkdir()
    (folder / "way").symlink_to(tmp_path / "elsewhere")
    (folder / "notes.txt").write_text("mine")
    Study.open(tmp_path / "elsewhere" / "secret.db", SPACE, name="Secret")
    (folder / "link.db").symlink_to(tmp_path / "elsewhere" / "secret.db")
    return folder


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_cannot_be_opened_is_listed_and_the_rest_is_served(
    folder: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edrbo.lab.web.session.LOOK_AGAIN", -1.0)
    make = {**KINDS, **SILENT}
    if os.getuid() == 0:  # to whom nothing is locked
        del make["locked.db"]
    if when == "before":
        for name, one in make.items():
            one(folder / name)
    with study_server(folder) as client:
        if when == "after":
            assert {found["name"] for found in client.get("/api/v1/studies").json} == {"Kiln", "Line"}
            for name, one in make.items():
                one(folder / name)
        Study.open(folder / "zz.db", SPACE, name="Last")
        assert {found["name"] for found in client.get("/api/v1/studies").json} == {"Kiln", "Line", "Last"}
        page = client.get("/").text
        for word in ("kiln", "line", "last"):
            assert client.get(f"/s/{word}/").status == 200
    listed = {name for name in [*make, "link.db"] if f"<li>{name}: " in page}
    assert listed == (set(make) | {"link.db"}) - set(SILENT)
    assert (folder / "notes.txt").read_text() == "mine"
    made = {str(path.relative_to(folder.parent)) for path in folder.parent.rglob("*") if path.is_file()}
    assert not made & {"outside.db", "a.db", "elsewhere/a.db", "lab/.bashrc"}
    tally(f"a served folder, files put there {when}", Counter({"kinds listed with a reason": len(listed)}))


def test_each_kind_alone_is_an_error_of_ours(tmp_path: Path) -> None:
    """Named on the command line, which leads where it wants to."""
    counts = Counter[str]()
    own = {"outside.toml", "absolute.toml", "through.toml", "notes.toml", "new.toml", "database.toml"}
    locked = {"locked.db"} if os.getuid() == 0 else set()
    for name in set(KINDS) - own - locked:
        KINDS[name](tmp_path / name)
        with pytest.raises(EdrboError):
            StudyRegistry(str(tmp_path / name)).open("x")
        if name.endswith(".toml"):
            with pytest.raises(EdrboError):
                read_toml(tmp_path / name)
        counts["refused"] += 1
    tally("served alone", counts)


def test_a_database_of_a_folder_must_be_named(folder: Path) -> None:
    (folder / "pg.toml").write_text(f"storage = '{STRANGER}'\n[design]\nx = [0, 1]\n")
    assert "name that with --database" in StudyRegistry(str(folder)).problems()["pg.toml"]
    places = StudyRegistry(str(folder), (STRANGER,))
    assert "pg.toml" not in places.problems()
    assert "pg" in places.names()


@pytest.mark.parametrize("storage", ["../outside.db", STRANGER])
@pytest.mark.parametrize("command", ["show", "ask", "check", "studies", "recommend", "amend", "serve"])
def test_a_file_of_a_stranger_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: str, command: str
) -> None:
    """Nobody can be asked here: so nothing is opened, and the error says where it leads."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    called: list[object] = []
    monkeypatch.setattr(EventStore, "__init__", lambda store, *given, **more: called.append(given))
    (tmp_path / "lab").mkdir()
    file = tmp_path / "lab" / "theirs.toml"
    file.write_text(f"storage = '{storage}'\n[design]\nx = [0, 1]\n")
    words = [command, *([str(file), "--port", "0"] if command == "serve" else ["--study", str(file)])]
    found = CliRunner().invoke(make_app(words), words)
    assert found.exit_code != 0
    said = found.output + str(found.exception)
    assert "outside of its folder" in said
    assert ("stranger.example" if "://" in storage else "outside.db") in said
    assert not called
    assert not (tmp_path / "outside.db").exists()


def test_a_yes_is_remembered_until_the_file_leads_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from edrbo.lab.cli.read_arguments import described_at

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "lab").mkdir()
    file = tmp_path / "lab" / "mine.toml"
    file.write_text("storage = '../a.db'\n[design]\nx = [0, 1]\n")
    asked: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda words, **_: asked.append(words) or True)
    for _ in range(3):
        assert described_at(file).storage.endswith("a.db")
    assert len(asked) == 1
    file.write_text("storage = '../b.db'\n[design]\nx = [0, 1]\n")
    described_at(file)
    assert len(asked) == 2
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    file.write_text("storage = '../c.db'\n[design]\nx = [0, 1]\n")
    with pytest.raises(typer.Exit):
        described_at(file)


def test_a_file_that_was_made_here_is_not_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "lab").mkdir()
    file = tmp_path / "lab" / "mine.toml"
    words = ["new", str(file), "-d", "x=0:1", "--storage", str(tmp_path / "kept.db")]
    assert CliRunner().invoke(make_app(words), words).exit_code == 0
    words = ["show", "--study", str(file)]
    assert CliRunner().invoke(make_app(words), words).exit_code == 0


def test_a_pipe_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert file_kind(tmp_path / "pipe").reason.endswith("is a named pipe")
