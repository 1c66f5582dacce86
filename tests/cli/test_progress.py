"""Who waits at a terminal is shown what for; scripts are not, and nobody waits for a file that cannot be written."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from edrbo.errors import StudyError
from edrbo.lab import Study
from edrbo.lab.cli import progress as shown

Edrbo = Callable[..., Any]

# The command line, with answers that wait for a byte from the test and a line that does not wait.
WAITING = """
import os, select, sys
from edrbo.lab.cli import main, progress
from edrbo.lab import Study
progress.DELAY = 0.0
answer, gate = Study.recommend, int(sys.argv[1])
def recommend(*words, **named):
    "--json" in sys.argv or os.write(2, b"asked ")
    while not select.select([gate], [], [], 0.05)[0]:  # so that Ctrl-C is looked at whatever the moment
        pass
    return answer(*words, **named)
Study.recommend = recommend
sys.argv = ["edrbo", *sys.argv[2:]]
main()
"""
HIDE_CURSOR, SHOW_CURSOR = b"\x1b[?25l", b"\x1b[?25h"


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "edrbo" / "seconds.json"


@pytest.fixture
def coating(edrbo: Edrbo, folder: Path) -> Path:
    made = edrbo(
        "new", "coating.toml", "-d", "speed=1:9", "-c", "humidity=0:1", "--method", "erbo", "--goal", "cvar:0.2"
    )
    assert made.code == 0, made.err
    for speed, value in ((2, 1.0), (5, 2.0), (8, 0.5)):
        assert edrbo("tell", "-d", f"speed={speed}", "-v", value, "-c", "humidity=0.5").code == 0
    return folder


@dataclass
class Terminal:
    """A child at a terminal of its own; ``go`` lets its answer begin."""

    child: int
    screen: int
    gate: int
    seen: bytes = b""

    def until(self, words: bytes) -> None:
        while words not in self.seen:
            part = self.read()
            assert part, self.seen
            self.seen += part

    def read(self) -> bytes:
        try:
            return os.read(self.screen, 4096)
        except OSError:  # the other end was closed
            return b""

    def go(self) -> None:
        os.write(self.gate, b"g")

    def press(self, keys: bytes) -> None:
        os.write(self.screen, keys)

    def end(self) -> int:
        """All that is shown to the end; gives the code."""
        while part := self.read():
            self.seen += part
        _, status = os.waitpid(self.child, 0)
        return os.waitstatus_to_exitcode(status)


@pytest.fixture
def at_terminal(coating: Path) -> Iterator[Callable[..., Terminal]]:
    pty = pytest.importorskip("pty")
    made: list[Terminal] = []

    def start(*words: str) -> Terminal:
        out, into = os.pipe()
        os.set_inheritable(out, True)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TERM": "xterm", "COLUMNS": "100"}
        child, screen = pty.fork()
        if child == 0:
            os.execve(sys.executable, [sys.executable, "-c", WAITING, str(out), *words], environment)
        os.close(out)
        made.append(Terminal(child, screen, into))
        return made[-1]

    yield start
    for one in made:
        os.close(one.screen)
        os.close(one.gate)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_line_says_what_is_going_on_and_is_gone_at_the_end(
    at_terminal: Callable[..., Terminal], memory: Path
) -> None:
    memory.parent.mkdir(parents=True)
    memory.write_text('{"recommend": 7}')
    terminal = at_terminal("recommend")
    terminal.until(b"working out the answer")
    terminal.until(b"last time 7 s")
    terminal.go()
    assert terminal.end() == 0
    before, _, after = terminal.seen.rpartition(SHOW_CURSOR)
    assert HIDE_CURSOR in before
    assert b"what to expect" in after
    assert b"working out" not in after
    assert set(json.loads(memory.read_text())) == {"recommend"}


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_stopping_ends_it_cleanly(at_terminal: Callable[..., Terminal], memory: Path) -> None:
    terminal = at_terminal("recommend")
    terminal.until(b"working out the answer")
    terminal.until(b"asked")  # while modules are imported Python may lose a Ctrl-C
    terminal.press(b"\x03")
    assert terminal.end() == 130
    after = terminal.seen.rpartition(SHOW_CURSOR)[2]
    assert b"stopped" in after, terminal.seen
    assert b"Traceback" not in terminal.seen
    assert not memory.exists()  # how long it would have taken is not known


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_json_is_for_scripts_at_a_terminal_too(at_terminal: Callable[..., Terminal]) -> None:
    terminal = at_terminal("recommend", "--json")
    terminal.go()
    assert terminal.end() == 0
    assert HIDE_CURSOR not in terminal.seen
    assert json.loads(terminal.seen)["observations"] == 3


@pytest.mark.parametrize(("terminal", "words"), [(False, []), (True, ["--json"])])
def test_scripts_see_nothing(
    terminal: bool, words: list[str], monkeypatch: pytest.MonkeyPatch, memory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["edrbo", "recommend", *words])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with shown.progress("working", "recommend") as advance:
        assert "edrbo progress" not in [thread.name for thread in threading.enumerate()]
        advance(1, 2)
    assert capsys.readouterr() == ("", "")
    assert not memory.exists()


def test_a_line_that_comes_too_late_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    line = shown._Line("working", None)
    line.hide()
    line.show()
    assert capsys.readouterr() == ("", "")


def test_steps_are_counted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    line = shown._Line("copying \x1b[31m", 9.0)
    line.advance(3, 12)
    line.show()
    line.advance(12, 12)
    line.hide()
    err = capsys.readouterr().err
    assert "copying \\x1b[31m" in err
    assert "12 of 12" in err
    assert "last time" not in err  # the bar knows better


@pytest.mark.parametrize("text", ["", "[]", "no", '{"recommend": "x"}', '{"recommend": -3}', '{"recommend": NaN}'])
def test_a_spoilt_memory_is_none(text: str, memory: Path) -> None:
    memory.parent.mkdir(parents=True)
    memory.write_text(text)
    assert shown.usual_seconds("recommend") is None
    shown.remember_seconds("recommend", 2.0)
    assert shown.usual_seconds("recommend") == 2.0


def test_without_a_place_nothing_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    shown.remember_seconds("recommend", 2.0)
    assert shown.usual_seconds("recommend") is None


@pytest.fixture
def nothing_is_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*words: Any, **named: Any) -> Any:
        raise AssertionError("worked out before the target was looked at")

    for name in ("recommend", "tradeoff"):
        monkeypatch.setattr(Study, name, refuse)
    monkeypatch.setattr("edrbo.lab.tables.csv_export.export_csv", refuse)
    monkeypatch.setattr("edrbo.lab.tables.spreadsheet.export_xlsx", refuse)


TARGETS = [("report", "--out"), ("tradeoff", "--out"), ("export",)]


@pytest.mark.usefixtures("nothing_is_worked_out")
@pytest.mark.parametrize("words", TARGETS)
def test_targets_are_looked_at_first(words: tuple[str, ...], edrbo: Edrbo, coating: Path) -> None:
    (coating / "there.png").write_text("mine")
    assert "there is no folder" in edrbo(*words, "nowhere/there.png").err
    assert "it is a folder" in edrbo(*words, coating).err
    assert "exists already" in edrbo(*words, "there.png").err
    assert (coating / "there.png").read_text() == "mine"
    assert not (coating / "nowhere").exists()


@pytest.mark.usefixtures("nothing_is_worked_out")
@pytest.mark.parametrize("words", TARGETS)
def test_what_may_not_be_written(
    words: tuple[str, ...], edrbo: Edrbo, coating: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode, **more: mode != os.W_OK and allowed(path, mode, **more))
    assert "it is not allowed" in edrbo(*words, "new.png").err


@pytest.mark.usefixtures("nothing_is_worked_out")
def test_a_picture_of_an_unknown_kind(edrbo: Edrbo, coating: Path) -> None:
    assert "cannot draw a .docx file" in edrbo("tradeoff", "--out", "picture.docx").err


def test_a_target_that_can_be_written(tmp_path: Path) -> None:
    from edrbo.lab.cli.output import check_new

    check_new(tmp_path / "new.html", force=False)
    (tmp_path / "old.html").write_text("")
    check_new(tmp_path / "old.html", force=True)
    with pytest.raises(StudyError):
        check_new(tmp_path / "old.html", force=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.html"]
